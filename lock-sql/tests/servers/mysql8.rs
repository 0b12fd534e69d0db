//! The statements for MySQL, which was not run: what MariaDB has and MySQL 8 lacks is in none of them.

/// In capital letters, as the statements have their words.
const LACKING: [&str; 8] =
    ["RETURNING", "VALUE(", "NEXT VALUE", "NEXTVAL", "OR REPLACE", "SYSTEM VERSIONING", "PERIOD FOR", "IGNORED"];

#[test]
fn no_statement_has_what_mysql_8_lacks() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut seen = 0;
    for file in std::fs::read_dir(directory).expect("the statements").map(|file| file.expect("a file").path()) {
        if !file.to_string_lossy().ends_with(".mysql.sql") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&file).expect("a text");
        let statement: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
        let statement = statement.join("\n").to_uppercase();
        for word in LACKING {
            assert!(!statement.contains(word), "{} has {word}", file.display());
        }
    }
    assert!(seen >= 10, "{seen} files");
}
