//! The longer parts of the help: examples, exit codes, what happens when things go wrong.
//!
//! Lines have at most 100 characters, the width of the help, so that the help is not wrapped a second time.

pub(super) const AFTER: &str = "\
Examples:
  leasehold run backup -- ./backup.sh
  leasehold --store redis://127.0.0.1:6379 run -n nightly -- ./report.sh
  leasehold ls                                  # who holds what
  leasehold ls --older-than 1h                  # what may have leaked
  leasehold check                               # is this store fit for locks?

`leasehold run --help` has what CMD sees, the signals, and what happens when things go wrong.";

pub(super) const AFTER_LONG: &str = "\
Examples:
  leasehold run backup -- ./backup.sh
  leasehold --store redis://127.0.0.1:6379 run -n nightly -- ./report.sh
  leasehold ls                                  # who holds what
  leasehold ls --older-than 1h                  # what may have leaked
  leasehold show nightly                        # who holds this one, since when
  leasehold break nightly --token 17            # take it from a holder that is dead
  leasehold check                               # is this store fit for locks?

Exit codes:
    0  done (run: CMD's own code)
    1  show: nobody holds the lock; break: nobody to take it from, or you said no;
       check: there are warnings
    2  wrong usage: an option, NAME, or a duration that is out of range
   69  the store cannot be reached, or refused
   74  the answer could not be written
   78  wrong configuration: the URL, the file, the environment, or a store that is not built in
  `leasehold run` has some more; see its help.

Configuration file (TOML): --config, $LEASEHOLD_CONFIG, ./leasehold.toml, or
$XDG_CONFIG_HOME/leasehold/config.toml, the first that there is:
  [lock]                                     # used when no store is named
  store = \"redis://127.0.0.1:6379\"
  namespace = \"shop\"
  lease = \"30s\"
  [stores.prod]                              # used with --store prod; the same keys
  store = \"postgres://shop@db/locks\"
  password_file = \"/run/secrets/db\"          # or password_env = \"VARIABLE\"
  [stores.other]
  store_file = \"/run/secrets/url\"            # a file with the whole URL
Keys are the options that a URL has behind its `?`. A leasehold.toml that was only found in the
working directory may not read secrets: name it with --config if you trust it.";

pub(super) const RUN_AFTER: &str = "\
Examples:
  Take turns, whoever comes first:
    leasehold run deploy -- ./deploy.sh
  Give up after ten minutes:
    leasehold run -w 10m deploy -- ./deploy.sh
  In a crontab, on several hosts at once: the job runs on one of them, those that came too late
  are silent, and one minute covers hosts whose clocks differ:
    */5 * * * *  leasehold run -n -q -E 0 --min-hold 1m report -- /usr/local/bin/report
  The same as a systemd service, started by a timer:
    [Service]
    Type=oneshot
    Environment=LEASEHOLD_STORE=redis://locks.example.net/0
    ExecStart=leasehold run -n -q -E 0 --min-hold 1m report -- /usr/local/bin/report
  Locks of a team on a shared store:
    export LEASEHOLD_STORE='redis://locks.example.net/0?namespace=shop'
    leasehold run --label \"$USER\" migrate -- ./migrate.sh
  Let the resource refuse a holder that was paused too long:
    leasehold run ledger -- sh -c './post --fence \"$LEASEHOLD_FENCING_TOKEN\"'

Coming from flock(1): NAME is a name, not a file; -n, -w and -E mean the same (durations have a
unit, and 75 is the default of -E); CMD follows a `--`; the lock is CMD's for as long as CMD
itself runs. Children that CMD leaves behind are left alone and run on without the lock.

Exit codes:
  CMD's own, or 128+N if signal N ended it (or leasehold while it waited)
    2  wrong usage: an option, NAME, or a duration that is out of range
   69  the store cannot be reached, or refused
   70  the lock was lost while CMD ran; CMD was ended, or had ended already
   75  the lock is busy, or the wait timed out (see -E); also, whatever -E says, a nested run of
       a lock that an enclosing run holds, which would wait for itself
   78  wrong configuration: the URL, the file, the environment, or a store that is not built in
  126  CMD cannot be executed
  127  CMD was not found, or the interpreter that its first line names

What CMD sees:
  LEASEHOLD_NAME, LEASEHOLD_NAMESPACE  the lock
  LEASEHOLD_FENCING_TOKEN              a number that grows with each holder of the lock
  LEASEHOLD_HELD                       what enclosing runs hold, for leasehold itself
  stdin, stdout, stderr and other open files are CMD's, untouched. leasehold writes to stderr only.

Signals: TERM, INT, HUP, QUIT, USR1 and USR2 are passed on to CMD and everything in its process
group. CMD is in a group of its own, unless stdin is a terminal: there ^C and ^Z reach CMD by
themselves, and what others send to leasehold is passed on to CMD alone. With stdin redirected, a
CMD that reads /dev/tty is stopped by the terminal, as any background job is. While leasehold waits
for the lock, TERM, INT, HUP and QUIT end it and leave nothing behind; while it keeps the lock for
--min-hold, they give it back at once. A signal that the caller ignores, as under nohup, stays
ignored.

When the lock is about to be lost: CMD gets TERM when --grace is all that is left of the lease, and
KILL at its end. If someone removed the lock by hand, it gets TERM at once, and KILL after --grace.
A CMD that was stopped or suspended together with leasehold past its lease is killed when they
continue.

If leasehold itself is killed (kill -9), CMD is killed with it on Linux; not so a set-user-ID CMD,
nor the children that CMD has started. A fencing token protects against those.";

#[cfg(test)]
mod tests {
    #[test]
    fn no_line_is_wrapped_a_second_time() {
        for line in [super::AFTER, super::AFTER_LONG, super::RUN_AFTER].iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
