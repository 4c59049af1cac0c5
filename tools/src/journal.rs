//! `log`: reads the log of a data directory. Never writes there, and needs no lock.

use crate::Failure;
use crate::facts;
use crate::settings::{DirectoryArgument, hex, print_line};
use clap::Subcommand;
use engine::id::{MARKETS, UserId};
use engine::market::mutation::MarketMutation;
use engine::mutation::{Mutation, codec};
use engine::shard::digest::{ENCODING, ENCODING_FIRST, Part, digest_while};
use engine::user::User;
use journal::recover::{self, Report};
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use wal::{Entry, Files, Kind, Lsn, Scan, Tail};

#[derive(Subcommand)]
pub enum LogVerb {
    /// Print every record, one per line.
    Inspect(DirectoryArgument),
    /// Check whether the server would start on it, with the same code as a start; then every record and snapshot in the
    /// directory.
    Verify(DirectoryArgument),
    /// Print the state digest after a replay (recipe: engine/docs/digest.md).
    Digest {
        #[command(flatten)]
        dir: DirectoryArgument,
        /// Use no snapshot: replay the log from its first record.
        #[arg(long)]
        from_nothing: bool,
        /// An earlier encoding, to compare with what an earlier program printed. Encoding 1 has no digest of a state from
        /// whose snapshot rows have left.
        #[arg(long, default_value_t = ENCODING, value_parser = clap::value_parser!(u32).range(1..=i64::from(ENCODING)))]
        encoding: u32,
        /// Print the parts of the digest first, each as a JSON line.
        #[arg(long, conflicts_with = "encoding")]
        parts: bool,
    },
    /// Write every record as a JSON line (format: engine/docs/facts.md).
    Export(DirectoryArgument),
}

impl LogVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            LogVerb::Inspect(dir) => each(&dir, inspect),
            LogVerb::Export(dir) => each(&dir, export),
            LogVerb::Verify(dir) => verify(&dir),
            LogVerb::Digest { dir, from_nothing, parts: true, .. } => parts(&dir, from_nothing),
            LogVerb::Digest { dir, from_nothing, encoding, .. } => digest(&dir, from_nothing, encoding),
        }
    }
}

/// The facts of one record.
fn facts(entry: &Entry<'_>) -> Result<Vec<Value>, Failure> {
    if entry.kind != Kind::Mutations {
        return Ok(Vec::new());
    }
    let mut shown = Vec::new();
    if UserId(entry.owner) == MARKETS {
        for fact in codec::decode::<MarketMutation>(entry.version, entry.payload)? {
            let fact = fact?;
            shown.push(facts::json(fact.name(), &fact.value()));
        }
    } else {
        for fact in codec::decode::<Mutation>(entry.version, entry.payload)? {
            let fact = fact?;
            shown.push(facts::json(fact.name(), &fact.value()));
        }
    }
    Ok(shown)
}

fn each(
    dir: &DirectoryArgument,
    mut show: impl FnMut(&Entry<'_>, &mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let storage = Files::open_existing(dir.path())?;
    let mut scan = Scan::open_all(&storage)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    while let Some(entry) = scan.next()? {
        match show(&entry, &mut out) {
            // The reader has closed the pipe.
            Err(error) if is_closed_pipe(&error) => return Ok(()),
            done => done?,
        }
    }
    out.flush()?;
    if let Some(Tail::Torn { bytes }) = scan.tail() {
        let _ =
            writeln!(std::io::stderr(), "the log ends in a torn tail of {bytes} bytes, which the next start cuts off");
    }
    Ok(())
}

fn is_closed_pipe(error: &Failure) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn inspect(entry: &Entry<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "{} {:?} owner {} epoch {} time {} synced {} {}+{} {} bytes",
        entry.lsn,
        entry.kind,
        entry.owner,
        entry.epoch,
        entry.time,
        entry.synced,
        entry.file,
        entry.offset,
        entry.payload.len()
    )?;
    for fact in facts(entry)? {
        writeln!(out, "    {fact}")?;
    }
    Ok(())
}

fn export(entry: &Entry<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let facts = facts(entry)?;
    let line = json!({
        "lsn": entry.lsn.0,
        "kind": format!("{:?}", entry.kind),
        "version": entry.version,
        "owner": entry.owner,
        "epoch": entry.epoch,
        "time_us": entry.time,
        "synced": entry.synced.0,
        "facts": facts,
    });
    writeln!(out, "{line}")?;
    Ok(())
}

/// The verdict is that of a start. Files that a start does not read are checked as well, and their damage is reported.
fn verify(dir: &DirectoryArgument) -> Result<(), Failure> {
    let (state, report) = gateway::check::check(dir.path())?;
    if report.lsn == Lsn::ZERO {
        print_line("no log yet: a start creates one");
        return Ok(());
    }
    let storage = Files::open_existing(dir.path())?;
    let snapshots = wal::Snapshots::of(&storage)?;
    let mut damaged = 0_u32;
    let mut unneeded = |error: Failure| {
        damaged += 1;
        let _ = writeln!(std::io::stderr(), "damaged, and not needed by a start: {error}");
    };
    for lsn in snapshots.list()? {
        let whole = snapshots
            .verify(lsn)
            .map_err(Failure::from)
            .and_then(|snapshot| Ok(recover::digest(&recover::read_snapshot(&snapshots, &snapshot, 1)?)));
        match whole {
            Ok(digest) => {
                print_line(format_args!("snapshot {lsn}: whole, digest {} (encoding {ENCODING})", hex(&digest)));
            }
            Err(error) => unneeded(error),
        }
    }
    let (mut records, mut count) = (0_u64, 0_u64);
    let all = each(dir, |entry, _| {
        records += 1;
        count += facts(entry)?.len() as u64;
        Ok(())
    });
    match all {
        Ok(()) => print_line(format_args!("{records} records with {count} facts, every one whole and in order")),
        Err(error) => unneeded(error),
    }
    let Report { records, lsn, snapshot, .. } = report;
    let digest = hex(&recover::digest(&state));
    print_line(format_args!(
        "a start reads {records} records after snapshot {snapshot} up to LSN {lsn}, digest {digest} (encoding {ENCODING})"
    ));
    if damaged > 0 {
        print_line(format_args!("{damaged} damaged files are not needed by a start"));
    }
    Ok(())
}

fn digest(dir: &DirectoryArgument, from_nothing: bool, encoding: u32) -> Result<(), Failure> {
    let (state, report) = recover::look(dir.path(), from_nothing)?;
    if encoding == ENCODING_FIRST && state.users.iter().flat_map(|users| users.iter()).any(User::has_departed_rows) {
        return Err(Failure::from(
            "rows have left the snapshots of this directory, and encoding 1 covers them: it has no digest of this \
             state (with --from-nothing it has one, if the log has its first record)",
        ));
    }
    let digest = recover::digest_in(encoding, &state).expect("the argument is in range");
    print_line(format_args!("{}  LSN {}, encoding {encoding}", hex(&digest), report.lsn));
    Ok(())
}

/// The parts of the digest in the order in which they are hashed, then the digest.
fn parts(dir: &DirectoryArgument, from_nothing: bool) -> Result<(), Failure> {
    let (state, report) = recover::look(dir.path(), from_nothing)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut written = Ok(());
    let shards: Vec<_> = state.users.iter().collect();
    let digest = digest_while(&state.markets, &shards, |part| {
        let Some(part) = part else { return true };
        let line = match part {
            Part::Markets(markets) => json!({"markets": hex(&markets)}),
            Part::User { user, rest, rows } => json!({"user": user.0, "rest": hex(&rest), "rows": hex(&rows)}),
        };
        written = writeln!(out, "{line}");
        written.is_ok()
    });
    if let Some(digest) = digest {
        let line = json!({"digest": hex(&digest), "encoding": ENCODING, "lsn": report.lsn.0});
        written = writeln!(out, "{line}").and_then(|()| out.flush());
    }
    match written.map_err(Failure::from) {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        done => done,
    }
}
