//! What the error numbers of MySQL and MariaDB mean: <https://dev.mysql.com/doc/mysql-errors/8.0/en/> and
//! <https://mariadb.com/kb/en/mariadb-error-codes/>.

use sqlx::mysql::MySqlDatabaseError;

use crate::server::fault::Fault;

pub(crate) fn of(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(answer) => {
            answer.try_downcast_ref::<MySqlDatabaseError>().map_or(Fault::Refused, |answer| of_number(answer.number()))
        }
        other => Fault::of_client(other),
    }
}

fn of_number(number: u16) -> Fault {
    match number {
        // Deadlock, lock wait timeout, a record that changed since it was read: nothing was done.
        1213 | 1205 | 1020 => Fault::Conflict,
        // The server shuts down, the session was killed or idled for too long, the network failed.
        1053 | 1077 | 1079 | 1152..=1161 | 1184 | 1927 | 4031 => Fault::NoConnection,
        // Too many connections or requests, a statement's time limit, out of memory, a cluster that is not ready.
        1037 | 1038 | 1040 | 1041 | 1047 | 1203 | 1226 | 1317 | 1969 | 3024 | 3169 => Fault::NotNow,
        1290 | 1792 | 1836 => Fault::ReadOnly,
        // Access denied, unknown database, no database, a host that may not connect, encryption required.
        1044 | 1045 | 1046 | 1049 | 1129 | 1130 | 1251 | 1698 | 3159 => Fault::Config,
        1146 => Fault::NoTable,
        1142 | 1143 | 1227 | 1370 => Fault::Denied,
        1021 | 1114 => Fault::Full,
        _ => Fault::Refused,
    }
}
