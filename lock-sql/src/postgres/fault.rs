//! What PostgreSQL's error codes mean: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.

use crate::server::fault::Fault;

pub(crate) fn of(error: &sqlx::Error) -> Fault {
    match error {
        // A pooler's word, which has no code of its own for it.
        sqlx::Error::Database(answer) if answer.message().starts_with("unsupported startup parameter") => Fault::Config,
        sqlx::Error::Database(answer) => of_code(answer.code().as_deref().unwrap_or_default()),
        other => Fault::of_client(other),
    }
}

fn of_code(code: &str) -> Fault {
    match code {
        // Serialization failure, deadlock, lock not available: nothing was done.
        "40001" | "40P01" | "55P03" => Fault::Conflict,
        // The session is ended by an administrator, a crash or a standby's replay, or idled for too long.
        "57P01" | "57P02" | "57P04" | "57P05" | "25P03" => Fault::NoConnection,
        // The tables changed under a prepared statement.
        "0A000" => Fault::NoConnection,
        // Another session's statements: its own are as the driver believes.
        "26000" | "42P05" => Fault::Pooled,
        // Starting or stopping, a statement's time limit, too many connections, out of memory.
        "57P03" | "57014" | "53000" | "53200" | "53300" => Fault::NotNow,
        "25006" => Fault::ReadOnly,
        "53100" | "53400" => Fault::Full,
        "3D000" => Fault::Config,
        "42P01" => Fault::NoTable,
        "42501" | "3F000" => Fault::Denied,
        code if code.starts_with("08") || code.starts_with("58") => Fault::NoConnection,
        code if code.starts_with("28") => Fault::Config,
        _ => Fault::Refused,
    }
}
