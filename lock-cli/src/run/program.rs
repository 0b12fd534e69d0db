//! Whether CMD can be started: asked before the wait for the lock begins, and told when it turns out not to be so.

use std::{
    env,
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, CWD, accessat},
    io::Errno,
};

use crate::exit::{Exit, Failure};

/// Refuses a program that is surely missing or not executable, before anything is asked of the store.
///
/// It saves a wait of hours that would end in a typing error. When in doubt it says nothing: the exec that follows
/// decides, and the lock is released then.
pub(super) fn check(program: &OsStr) -> Result<(), Failure> {
    match search(program, env::var_os("PATH").as_deref()) {
        Ok(()) => Ok(()),
        Err(error) => Err(cannot_run(program, &error)),
    }
}

/// The failure of an exec, with the code that env(1) and shells give.
pub(super) fn cannot_run(program: &OsStr, error: &io::Error) -> Failure {
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::new(Exit::NotExecutable, format!("command {program:?} cannot be executed: {}", reason(error)));
    }
    let message = if program.is_empty() {
        "the command's name is empty; give one after `--`".to_owned()
    } else if !has_slash(program) {
        format!("command {program:?} was not found in any directory of PATH")
    } else if Path::new(program).exists() {
        format!("command {program:?} cannot be executed: the interpreter that its first line names does not exist")
    } else {
        format!("command {program:?} does not exist")
    };
    Failure::new(Exit::NotFound, message)
}

/// The error in the system's words, without std's number behind it and in lower case like the rest of the sentence.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Looks for a program as execvp(3) does. An error is certain, Ok is not.
fn search(program: &OsStr, path: Option<&OsStr>) -> io::Result<()> {
    if program.is_empty() {
        return Err(Errno::NOENT.into());
    }
    if has_slash(program) {
        return executable(Path::new(program));
    }
    // Without PATH the C library has a list of its own.
    let Some(path) = path else { return Ok(()) };
    let mut refused = None;
    for directory in env::split_paths(path) {
        // An empty entry is the working directory.
        let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        match executable(&directory.join(program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(error),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| Errno::NOENT.into()))
}

fn executable(file: &Path) -> io::Result<()> {
    if file.metadata()?.is_dir() {
        // exec(2) says EACCES for anything but a regular file.
        return Err(Errno::ACCESS.into());
    }
    accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS)?;
    Ok(())
}

fn has_slash(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn code(program: &str, path: &OsStr) -> u8 {
        search(OsStr::new(program), Some(path)).map_or_else(|e| cannot_run(OsStr::new(program), &e).exit.code(), |()| 0)
    }

    #[test]
    fn a_program_is_looked_for_as_execvp_does() {
        let dir = tempfile::tempdir().expect("a directory");
        let (plain, tool) = (dir.path().join("plain"), dir.path().join("tool"));
        fs::write(&plain, "").expect("a file");
        fs::write(&tool, "").expect("a file");
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("a mode");
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("a mode");
        let path = env::join_paths([Path::new("/nonexistent"), dir.path()]).expect("a path");
        assert_eq!(code("tool", &path), 0);
        assert_eq!(code("plain", &path), 126);
        assert_eq!(code("missing", &path), 127);
        assert_eq!(code("", &path), 127);
        assert_eq!(code(tool.to_str().expect("UTF-8"), OsStr::new("")), 0);
        assert_eq!(code(plain.to_str().expect("UTF-8"), OsStr::new("")), 126);
        assert_eq!(code(dir.path().to_str().expect("UTF-8"), OsStr::new("")), 126);
        assert_eq!(code("/nonexistent/tool", OsStr::new("")), 127);
    }

    #[test]
    fn the_sentence_says_where_it_was_looked_for() {
        let missing = io::Error::from(Errno::NOENT);
        assert!(cannot_run(OsStr::new("x"), &missing).message.contains("PATH"));
        assert!(!cannot_run(OsStr::new("./x"), &missing).message.contains("PATH"));
        let refused = cannot_run(OsStr::new("./x"), &Errno::ACCESS.into());
        assert_eq!(refused.message, "command \"./x\" cannot be executed: permission denied");
    }
}
