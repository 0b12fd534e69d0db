//! A statement and its parameters, before a driver has them.

use sqlx::{SqlSafeStr, SqlStr};

/// A statement of a file, and what its placeholders stand for.
#[derive(Debug)]
pub(crate) struct Statement<'q> {
    pub(crate) sql: SqlStr,
    pub(crate) values: Vec<Value<'q>>,
}

/// What a parameter can be.
#[derive(Debug)]
pub(crate) enum Value<'q> {
    Bytes(&'q [u8]),
    Id(Vec<u8>),
    Text(Option<&'q str>),
    Number(i64),
}

impl<'q> Statement<'q> {
    pub(crate) fn new(sql: impl SqlSafeStr) -> Self {
        Statement { sql: sql.into_sql_str(), values: Vec::new() }
    }

    /// Gives the next parameter.
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }
}

impl<'q> From<&'q [u8]> for Value<'q> {
    fn from(bytes: &'q [u8]) -> Self {
        Value::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(id: Vec<u8>) -> Self {
        Value::Id(id)
    }
}

impl<'q> From<&'q str> for Value<'q> {
    fn from(text: &'q str) -> Self {
        Value::Text(Some(text))
    }
}

impl<'q> From<Option<&'q str>> for Value<'q> {
    fn from(text: Option<&'q str>) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Number(number)
    }
}
