//! Rows as every dialect reads them, and what core makes of them.

use std::time::{Duration, SystemTime};

use lock_core::{ClaimId, FencingToken, Holder, HolderInfo, LockKind, LockName, LockRecord, Namespace};
use sqlx::{ColumnIndex, Decode, Row, Type};

use crate::{dialect::ClaimedRow, units::duration};

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

/// The form of a claim's id in its row: 16 bytes, the most significant first, so that `hex(claim)` shows the id.
pub(crate) fn id_bytes(claim: ClaimId) -> Vec<u8> {
    claim.as_u128().to_be_bytes().to_vec()
}

/// Reads what `claim` answers with, where a database has RETURNING.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn claimed_row<R: Row>(row: &R) -> Result<ClaimedRow, sqlx::Error>
where
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    Ok(ClaimedRow { claim: id(row, 0)?, token: token(row, 1)?, remaining_us: row.try_get(2)? })
}

/// Reads a row of what `holders` answers with.
pub(crate) fn holder_row<R: Row>(row: &R) -> Result<HolderRow, sqlx::Error>
where
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
{
    let pid = row.try_get::<Option<i64>, _>(7)?.unwrap_or_default();
    Ok(HolderRow {
        name: row.try_get(0)?,
        claim: id(row, 2)?,
        token: token(row, 3)?,
        since_us: row.try_get(4)?,
        remaining_us: row.try_get(5)?,
        info: HolderInfo {
            host: row.try_get::<Option<String>, _>(6)?.unwrap_or_default(),
            pid: u32::try_from(pid).map_err(|error| foreign(7, error))?,
            label: row.try_get(8)?,
        },
    })
}

fn id<R: Row>(row: &R, column: usize) -> Result<ClaimId, sqlx::Error>
where
    usize: ColumnIndex<R>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    let bytes: Vec<u8> = row.try_get(column)?;
    let bytes = <[u8; 16]>::try_from(bytes.as_slice()).map_err(|error| foreign(column, error))?;
    Ok(ClaimId::from_u128(u128::from_be_bytes(bytes)))
}

fn token<R: Row>(row: &R, column: usize) -> Result<u64, sqlx::Error>
where
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
{
    u64::try_from(row.try_get::<i64, _>(column)?).map_err(|error| foreign(column, error))
}

/// A value that this crate never writes.
fn foreign(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_string(), source: Box::new(error) }
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
