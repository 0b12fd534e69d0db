//! The names of the tables, which a user may choose, in the statements' texts.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, ColumnIndex, Decode, Row, SqlSafeStr as _, SqlStr, Type};

use crate::server::PrepareError;

/// The layout of the tables that this version reads and writes.
const VERSION: i64 = 1;

/// The names in the statements' files.
const LOCKS: &str = "leasehold_locks";
const SCHEMA: &str = "leasehold_schema";

/// The table that a user chose for the locks: letters, digits and underscores, with a schema before a dot if wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table(String);

impl Default for Table {
    fn default() -> Self {
        Table(LOCKS.to_owned())
    }
}

impl Table {
    /// None for what is no such name. 48 characters leave room for `_schema` in every database.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let plain = |part: &str| {
            part.len() <= 48
                && part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let parts: Vec<&str> = name.split('.').collect();
        (parts.len() <= 2 && parts.iter().all(|part| plain(part))).then(|| Table(name.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A statement of a file with the names that are wanted, between these quotes.
    ///
    /// The names have no quotes in them, and everything else in a file is ours.
    pub(crate) fn put_into(&self, sql: &str, quote: char) -> SqlStr {
        let quoted = |name: &str| format!("{quote}{}{quote}", name.replace('.', &format!("{quote}.{quote}")));
        let schema = if self.0 == LOCKS { SCHEMA.to_owned() } else { format!("{}_schema", self.0) };
        let sql = sql.replace(SCHEMA, &quoted(&schema)).replace(LOCKS, &quoted(&self.0));
        AssertSqlSafe(Arc::<str>::from(sql)).into_sql_str()
    }
}

/// Whether a sweep is due, if the tables are of this version.
pub(crate) fn check_version<R: Row>(server: &str, row: Option<&R>) -> Result<bool, PrepareError>
where
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
{
    let Some(row) = row else {
        return Err(PrepareError::Refused(format!("{server}: the lock tables have lost their version; drop them")));
    };
    match row.try_get(0)? {
        VERSION => Ok(row.try_get::<i64, _>(1)? == 1),
        newer @ VERSION.. => Err(PrepareError::Refused(format!(
            "{server}: the lock tables have version {newer}, and this version of leasehold knows {VERSION}; upgrade leasehold"
        ))),
        other => Err(PrepareError::Refused(format!(
            "{server}: the lock tables have version {other}, which never was; leasehold knows {VERSION}; name another table"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_plain_name() {
        for name in ["locks", "_l", "shop.locks", "L0"] {
            assert_eq!(Table::parse(name).as_ref().map(Table::as_str), Some(name));
        }
        let long = "x".repeat(49);
        for name in ["", "a.b.c", "a b", "a\"b", "a`b", "0a", ".a", "a.", "é", "a;--", &long] {
            assert_eq!(Table::parse(name), None, "{name:?}");
        }
    }

    #[test]
    fn statements_get_the_names_that_are_wanted() {
        let sql = "SELECT floor FROM leasehold_schema, leasehold_locks";
        let of = |name| Table::parse(name).expect("a name").put_into(sql, '"').as_str().to_owned();
        assert_eq!(of("leasehold_locks"), "SELECT floor FROM \"leasehold_schema\", \"leasehold_locks\"");
        assert_eq!(of("a.b"), "SELECT floor FROM \"a\".\"b_schema\", \"a\".\"b\"");
    }
}
