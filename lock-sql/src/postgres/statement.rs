//! The two forms of a statement that PostgreSQL takes: prepared, and written out.
//!
//! A prepared statement takes two messages, each with an answer of its own: it is prepared, and then executed by its
//! name. Behind a pooler that gives each transaction another session the second may meet a session that lacks the name,
//! or that has given it to a statement of somebody else, which would run with our parameters. That is why a statement
//! there is one message with everything in it, which is one transaction of one session.

use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, Postgres, SqlSafeStr as _, SqlStr, postgres::PgArguments, query::Query};

use crate::server::statement::{Statement, Value};

/// The statement as the driver prepares it.
pub(super) fn prepared(statement: Statement<'_>) -> Query<'_, Postgres, PgArguments> {
    statement.values.into_iter().fold(sqlx::query(statement.sql), |query, value| match value {
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Id(id) => query.bind(id),
        Value::Text(text) => query.bind(text),
        Value::Number(number) => query.bind(number),
    })
}

/// The statement behind others, with its parameters in its text.
pub(super) fn written_out(before: &str, statement: &Statement<'_>) -> SqlStr {
    let mut text = before.to_owned();
    for line in statement.sql.as_str().lines() {
        // A comment may name the parameters.
        if !line.trim_start().starts_with("--") {
            write_line(&mut text, line, &statement.values);
        }
    }
    // Everything in it is a statement of ours, or a literal that nothing can break out of.
    AssertSqlSafe(text).into_sql_str()
}

fn write_line(text: &mut String, line: &str, values: &[Value<'_>]) {
    let mut parts = line.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        match number.parse::<usize>().ok().and_then(|number| values.get(number.checked_sub(1)?)) {
            Some(value) => write_value(text, value),
            // The server refuses a parameter that nobody gave.
            None => text.extend(["$", number]),
        }
        text.push_str(rest);
    }
    text.push('\n');
}

/// Writes a literal. Its type is said, since the server would guess another from the literal's form.
fn write_value(text: &mut String, value: &Value<'_>) {
    match value {
        Value::Bytes(bytes) => write_bytes(text, bytes),
        Value::Id(id) => write_bytes(text, id),
        Value::Text(None) => text.push_str("NULL::text"),
        Value::Text(Some(string)) => {
            // In this form a backslash escapes, whatever standard_conforming_strings of the session is.
            text.push_str("E'");
            for c in string.chars() {
                if matches!(c, '\'' | '\\') {
                    text.push(c);
                }
                text.push(c);
            }
            text.push_str("'::text");
        }
        Value::Number(number) => text.extend(["'", &number.to_string(), "'::bigint"]),
    }
}

fn write_bytes(text: &mut String, bytes: &[u8]) {
    text.push_str("decode('");
    for byte in bytes {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text.push_str("', 'hex')");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sql: &'static str, values: Vec<Value<'_>>) -> String {
        written_out("", &Statement { sql: sql.into_sql_str(), values }).as_str().to_owned()
    }

    #[test]
    fn each_parameter_stands_in_its_place() {
        let sql = "-- $1 is a number\nSELECT $2, $1 + $10::bigint, $3";
        let mut values = vec![Value::Number(-5), Value::Bytes(b"\0'\\"), Value::Text(None)];
        values.extend((4..=10).map(Value::Number));
        assert_eq!(
            written(sql, values),
            "SELECT decode('00275c', 'hex'), '-5'::bigint + '10'::bigint::bigint, NULL::text\n"
        );
    }

    #[test]
    fn nothing_breaks_out_of_a_text() {
        let text = "a'; DROP TABLE x; -- \\' $1 \n\u{e9}";
        let told = written("SELECT $1", vec![Value::Text(Some(text))]);
        assert_eq!(told, "SELECT E'a''; DROP TABLE x; -- \\\\'' $1 \n\u{e9}'::text\n");
    }
}
