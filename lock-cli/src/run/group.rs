//! Whether a process group still has a living member.

use std::fs;

use rustix::process::{Pid, test_kill_process_group};

/// Whether anyone in this group is alive. Zombies are not: their parent may take its time, or never reap them.
pub(super) fn lives(group: Pid) -> bool {
    // The kernel's own answer counts zombies, so only its no is final.
    test_kill_process_group(group).is_ok() && listed(group).unwrap_or(true)
}

/// What /proc says; None where there is none.
fn listed(group: Pid) -> Option<bool> {
    let processes = fs::read_dir("/proc").ok()?;
    let stats = processes.flatten().filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
    let mut any = false;
    for stat in stats {
        any = true;
        if is_living_member(&stat, group.as_raw_nonzero().get()) {
            return Some(true);
        }
    }
    any.then_some(false)
}

/// Reads one line of `/proc/PID/stat`: `pid (name) state ppid pgrp ...`, where the name may hold anything.
fn is_living_member(stat: &str, group: i32) -> bool {
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_whitespace();
    let state = fields.next();
    let pgrp = fields.nth(1).and_then(|field| field.parse().ok());
    pgrp == Some(group) && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombies_and_strangers_do_not_count() {
        assert!(is_living_member("8 (sh) S 1 7 7 0 -1", 7));
        assert!(is_living_member("8 (a) Z 1 9 (b) R 1 7 7", 7));
        assert!(!is_living_member("8 (sh) Z 1 7 7 0 -1", 7));
        assert!(!is_living_member("8 (sh) S 7 8 7 0 -1", 7));
        assert!(!is_living_member("", 7));
    }

    #[test]
    fn our_own_group_lives() {
        assert!(lives(rustix::process::getpgrp()));
    }
}
