//! The line of claims before one lock, in the order in which their nodes were created.

use lock_core::ClaimId;

use crate::path::Child;

/// The claims of one lock, as a listing of its directory showed them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    children: Vec<Child>,
}

/// Who stands before a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before<'a> {
    /// The one that holds.
    pub(crate) first: &'a Child,
    /// The nearest.
    pub(crate) next: &'a Child,
}

impl Line {
    /// The claims among these nodes; foreign ones are left out (L17).
    pub(crate) fn of(names: Vec<String>) -> Self {
        Line { children: names.into_iter().filter_map(Child::parse).collect() }
    }

    /// The claims behind the one with this number, in their order.
    pub(crate) fn behind(&self, number: i32) -> Vec<ClaimId> {
        let mut behind: Vec<_> = self.children.iter().filter(|child| child.number != number).collect();
        behind.sort_by_key(|child| child.number.wrapping_sub(number));
        behind.into_iter().map(|child| child.id).collect()
    }

    /// Whether this node is in the line.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name == name)
    }

    /// The nodes of this claim. More than one only after an answer was lost.
    pub(crate) fn of_claim(&self, id: ClaimId) -> impl Iterator<Item = &Child> {
        self.children.iter().filter(move |child| child.id == id)
    }

    /// Who stands before the claim with this number; None if it is the first, not counting nodes of its own.
    ///
    /// Numbers wrap, so that only differences tell: all claims of one moment are far fewer than half of the numbers.
    pub(crate) fn before(&self, id: ClaimId, number: i32) -> Option<Before<'_>> {
        let ahead = |child: &&Child| child.id != id && number.wrapping_sub(child.number) > 0;
        let distance = |child: &&Child| number.wrapping_sub(child.number);
        let next = self.children.iter().filter(ahead).min_by_key(distance)?;
        let first = self.children.iter().filter(ahead).max_by_key(distance)?;
        Some(Before { first, next })
    }

    /// The one that holds.
    pub(crate) fn first(&self) -> Option<&Child> {
        let any = self.children.first()?;
        self.children.iter().min_by_key(|child| child.number.wrapping_sub(any.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(numbers: &[i32]) -> (Line, Vec<ClaimId>) {
        let ids: Vec<_> = (1..=numbers.len()).map(|id| ClaimId::from_u128(id as u128)).collect();
        let names = ids.iter().zip(numbers).map(|(id, number)| format!("{id}-{number:010}"));
        (Line::of(names.chain(["foreign".to_owned()]).collect()), ids)
    }

    #[test]
    fn each_claim_stands_behind_the_one_created_before_it() {
        let (line, ids) = line(&[12, 7, 9]);
        assert_eq!(line.children.len(), 3);
        assert_eq!(line.first().map(|child| child.number), Some(7));
        assert_eq!(line.before(ids[1], 7), None);
        let before = line.before(ids[0], 12).expect("two are before it");
        assert_eq!((before.first.number, before.next.number), (7, 9));
    }

    #[test]
    fn the_order_goes_on_where_numbers_wrap() {
        let (line, ids) = line(&[i32::MIN + 1, i32::MAX - 1, i32::MIN, i32::MAX]);
        assert_eq!(line.first().map(|child| child.number), Some(i32::MAX - 1));
        assert_eq!(line.before(ids[1], i32::MAX - 1), None);
        let next = |id, number| line.before(id, number).map(|before| before.next.number);
        assert_eq!(next(ids[3], i32::MAX), Some(i32::MAX - 1));
        assert_eq!(next(ids[2], i32::MIN), Some(i32::MAX));
        assert_eq!(next(ids[0], i32::MIN + 1), Some(i32::MIN));
    }

    #[test]
    fn nodes_of_ones_own_do_not_count() {
        let id = ClaimId::random();
        let line = Line::of(vec![format!("{id}-0000000001"), format!("{id}-0000000002")]);
        assert_eq!(line.before(id, 2), None);
        assert_eq!(line.of_claim(id).count(), 2);
        assert!(line.has(&format!("{id}-0000000002")));
    }

    #[test]
    fn those_behind_are_in_their_order_also_where_numbers_wrap() {
        let child = |id: u128, number: i32| Child { id: ClaimId::from_u128(id), number, name: String::new() };
        let line = Line { children: vec![child(3, i32::MIN), child(1, i32::MAX - 1), child(2, i32::MAX)] };
        let first = line.first().expect("not empty");
        assert_eq!(line.behind(first.number), [ClaimId::from_u128(2), ClaimId::from_u128(3)]);
    }
}
