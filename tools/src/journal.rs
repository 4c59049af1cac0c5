//! `log`: look into the log of a data directory. Never writes there, and needs no lock.

use crate::Failure;
use crate::settings::{DirectoryArgument, hex, say};
use clap::Subcommand;
use engine::id::{MARKETS, UserId};
use engine::market::mutation::MarketMutation;
use engine::mutation::{Mutation, codec};
use gateway::recover;
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use wal::{Entry, Files, Kind, Scan, Tail};

#[derive(Subcommand)]
pub enum LogVerb {
    /// Print every record, one line each.
    Inspect(DirectoryArgument),
    /// Check the whole chain, every payload and every snapshot.
    Verify(DirectoryArgument),
    /// Print the state digest after a replay.
    Digest {
        #[command(flatten)]
        dir: DirectoryArgument,
        /// Use no snapshot: fold the log from its first record.
        #[arg(long)]
        from_nothing: bool,
    },
    /// Write every record as a JSON line.
    Export(DirectoryArgument),
}

impl LogVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            LogVerb::Inspect(dir) => each(&dir, inspect),
            LogVerb::Export(dir) => each(&dir, export),
            LogVerb::Verify(dir) => verify(&dir),
            LogVerb::Digest { dir, from_nothing } => digest(&dir, from_nothing),
        }
    }
}

/// The facts of one record, as the debug formatter shows them.
fn facts(entry: &Entry<'_>) -> Result<Vec<String>, Failure> {
    if entry.kind != Kind::Mutations {
        return Ok(Vec::new());
    }
    let mut facts = Vec::new();
    if UserId(entry.owner) == MARKETS {
        for fact in codec::decode::<MarketMutation>(entry.version, entry.payload)? {
            facts.push(format!("{:?}", fact?));
        }
    } else {
        for fact in codec::decode::<Mutation>(entry.version, entry.payload)? {
            facts.push(format!("{:?}", fact?));
        }
    }
    Ok(facts)
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
            // Whoever read it has seen enough.
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
    let facts: Vec<Value> = facts(entry)?.into_iter().map(Value::String).collect();
    let line = json!({
        "lsn": entry.lsn.0,
        "kind": format!("{:?}", entry.kind),
        "owner": entry.owner,
        "epoch": entry.epoch,
        "time_us": entry.time,
        "synced": entry.synced.0,
        "facts": facts,
    });
    writeln!(out, "{line}")?;
    Ok(())
}

fn verify(dir: &DirectoryArgument) -> Result<(), Failure> {
    let (mut records, mut count) = (0_u64, 0_u64);
    each(dir, |entry, _| {
        records += 1;
        count += facts(entry)?.len() as u64;
        Ok(())
    })?;
    let storage = Files::open_existing(dir.path())?;
    let snapshots = wal::Snapshots::of(&storage)?;
    for lsn in snapshots.list()? {
        let snapshot = snapshots.verify(lsn)?;
        recover::read_snapshot(&snapshots, &snapshot, 1)?;
        say(format_args!("snapshot {lsn}: whole, digest {}", hex(&snapshot.digest)));
    }
    say(format_args!("{records} records with {count} facts, every one whole and in order"));
    Ok(())
}

fn digest(dir: &DirectoryArgument, from_nothing: bool) -> Result<(), Failure> {
    let (state, report) = recover::look(dir.path(), from_nothing)?;
    say(format_args!("{}  LSN {}", hex(&recover::digest(&state)), report.lsn));
    Ok(())
}
