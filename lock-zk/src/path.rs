//! Where locks and claims are in ZooKeeper's tree, and what of it is ours.

use lock_core::{Claim, ClaimId, LockKind, LockName, Namespace, decode_name};

/// The node that everything is under, below the chroot.
pub(crate) const ROOT: &str = "/leasehold";

/// The empty namespace, since no node has an empty name. No encoding has a `%` before what is no digit.
const NO_NAMESPACE: &str = "%none";

/// The directory of the locks of one namespace and kind.
pub(crate) fn locks(namespace: &Namespace, kind: LockKind) -> String {
    let space = if namespace.as_str().is_empty() { NO_NAMESPACE } else { namespace.encoded() };
    format!("{ROOT}/{space}/{}", kind.family())
}

/// The directory of one lock.
pub(crate) fn lock(namespace: &Namespace, kind: LockKind, name: &LockName) -> String {
    format!("{}/{}", locks(namespace, kind), name.encoded())
}

/// The directory of the lock that a claim is for.
pub(crate) fn of_claim(claim: &Claim) -> String {
    lock(&claim.namespace, claim.kind, &claim.name)
}

/// The lock's name that a directory stands for; None for a foreign one.
pub(crate) fn name_of(child: &str) -> Option<LockName> {
    LockName::new(&decode_name(child)?).ok()
}

/// A claim's node, as its name tells: the claim's id, and the number that the server put behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) id: ClaimId,
    pub(crate) number: i32,
    pub(crate) name: String,
}

impl Child {
    /// The claim of this node; None for a foreign one.
    pub(crate) fn parse(name: String) -> Option<Self> {
        let (id, number) = name.split_at_checked(ClaimId::LEN)?;
        let id = id.parse().ok()?;
        let number: i64 = number.strip_prefix('-')?.parse().ok()?;
        Some(Child { id, number: wrapped(number), name })
    }
}

/// What a claim's node is named before the server adds its number.
pub(crate) fn prefix(directory: &str, id: ClaimId) -> String {
    format!("{directory}/{id}-")
}

/// Numbers wrap around where they have 32 bits; where they have 64, the lower 32 order as well as all of them.
#[expect(clippy::cast_possible_truncation, reason = "cutting off the upper half is what is wanted")]
pub(crate) fn wrapped(number: i64) -> i32 {
    number as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claims_node_reads_back_and_foreign_ones_do_not() {
        let id = ClaimId::random();
        for (written, number) in
            [("0000000007", 7), ("2147483647", i32::MAX), ("-2147483648", i32::MIN), ("0000000004294967303", 7)]
        {
            let child = Child::parse(format!("{id}-{written}")).expect("ours");
            assert_eq!((child.id, child.number), (id, number));
        }
        for name in [
            String::new(),
            "lock-0000000001".to_owned(),
            id.to_string(),
            format!("{id}-"),
            format!("{id}-x"),
            format!("{id}0000000001"),
            format!("{}-0000000001", id.to_string().to_uppercase().replace('0', "G")),
            "é".repeat(40),
        ] {
            assert_eq!(Child::parse(name.clone()), None, "{name:?}");
        }
    }

    #[test]
    fn the_empty_namespace_is_a_node_that_no_other_namespace_has() {
        let empty = Namespace::default();
        assert_eq!(locks(&empty, LockKind::Exclusive), "/leasehold/%none/lock");
        for name in ["%none", "none", "%", "."] {
            let other = Namespace::new(name).expect("a namespace");
            assert_ne!(locks(&other, LockKind::Exclusive), locks(&empty, LockKind::Exclusive));
        }
        let name = LockName::new("a/b .").expect("a name");
        assert_eq!(lock(&empty, LockKind::Exclusive, &name), "/leasehold/%none/lock/a%2Fb%20%2E");
        assert_eq!(name_of("a%2Fb%20%2E"), Some(name));
        assert_eq!(name_of("a%2fb"), None);
    }
}
