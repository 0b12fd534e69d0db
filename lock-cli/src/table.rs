//! Tables without borders, that fit the terminal and that other programs can cut into words.

use comfy_table::{ContentArrangement, Table, presets::NOTHING};

use crate::out;

/// A table with these headings.
pub(crate) fn table<const N: usize>(headings: [&str; N]) -> Table {
    let mut table = bare();
    table.set_header(headings);
    table
}

/// A table without headings.
pub(crate) fn bare() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    match out::terminal_width() {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        // Whoever reads lines wants one for each row.
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table
}

/// Columns are known once there is a row.
fn pad(table: &mut Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
}

/// The table as text, without blanks at the ends of lines.
pub(crate) fn text(table: &mut Table) -> String {
    pad(table);
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}
