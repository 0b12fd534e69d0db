//! Rows as every dialect reads them, and what core makes of them.

use std::time::{Duration, SystemTime};

use lock_core::{ClaimId, FencingToken, Holder, HolderInfo, LockKind, LockName, LockRecord, Namespace};

use crate::units::duration;

/// A claim in force, as its row shows it.
#[derive(Clone, Debug)]
pub(crate) struct HolderRow {
    pub(crate) name: Vec<u8>,
    pub(crate) claim: ClaimId,
    pub(crate) token: u64,
    pub(crate) since_us: Option<i64>,
    pub(crate) remaining_us: i64,
    pub(crate) info: HolderInfo,
}

impl HolderRow {
    /// The holder that the row tells of.
    pub(crate) fn holder(&self) -> Holder {
        let mut holder = Holder::new(self.claim, FencingToken::new(self.token), &self.info);
        holder.since = self
            .since_us
            .and_then(|us| u64::try_from(us).ok())
            .and_then(|us| SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(us)));
        holder.remaining = Some(duration(self.remaining_us));
        holder
    }
}

/// One record for each name, from rows in the order of names.
pub(crate) fn records(namespace: &Namespace, kind: LockKind, rows: &[HolderRow]) -> Vec<LockRecord> {
    rows.chunk_by(|a, b| a.name == b.name)
        .filter_map(|of_one_name| {
            // A name that core could not have written is someone else's row, and shows nothing of ours (L17).
            let name = LockName::new(std::str::from_utf8(&of_one_name.first()?.name).ok()?).ok()?;
            let holders = of_one_name.iter().map(HolderRow::holder).collect();
            Some(LockRecord::new(namespace, &name, kind, holders))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &[u8], token: u64) -> HolderRow {
        HolderRow {
            name: name.to_vec(),
            claim: ClaimId::random(),
            token,
            since_us: Some(1_000_000),
            remaining_us: 2_000_000,
            info: HolderInfo::of_this_process(),
        }
    }

    #[test]
    fn holders_of_one_name_are_one_record() {
        let rows = [row(b"a", 1), row(b"a", 2), row(b"b", 3)];
        let records = records(&Namespace::default(), LockKind::Exclusive, &rows);
        let tokens: Vec<Vec<u64>> =
            records.iter().map(|record| record.holders.iter().map(|holder| holder.token.get()).collect()).collect();
        assert_eq!(tokens, [vec![1, 2], vec![3]]);
        assert_eq!(records[0].holders[0].since, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1)));
        assert_eq!(records[0].holders[0].remaining, Some(Duration::from_secs(2)));
    }

    #[test]
    fn names_that_nobody_can_claim_are_not_ours() {
        let rows = [row(b"", 1), row(b"\xFF", 2), row(&[b'x'; 513], 3)];
        assert!(records(&Namespace::default(), LockKind::Exclusive, &rows).is_empty());
    }
}
