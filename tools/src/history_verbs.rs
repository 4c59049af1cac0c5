//! `history`: the history store of a stopped data directory. The engine of its tables cannot open them without writing:
//! it finishes what a crash left, as at a start. So the directory must be stopped, and is locked meanwhile.

use crate::Failure;
use crate::settings::{DirectoryArgument, print_line};
use clap::{Args, Subcommand};
use engine::time::{Timestamp, UtcDay};
use history::{Checked, Damage, EndedSize, Sizes, TableSize, check, sizes};
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;
use wal::{Dir, Files, Options};
use wire::instant::ts_text;

#[derive(Subcommand)]
pub enum HistoryVerb {
    /// Print rows, markets or users, span and bytes of each table.
    Stats(HistoryOptions),
    /// Read every row, and so check the checksum of every block.
    Verify(HistoryOptions),
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape history stats papertape-data --json")]
pub struct HistoryOptions {
    #[command(flatten)]
    dir: DirectoryArgument,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

impl HistoryVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            HistoryVerb::Stats(options) => options.stats(),
            HistoryVerb::Verify(options) => options.verify(),
        }
    }
}

impl HistoryOptions {
    /// The folder of the history, in a directory that is locked as long as the lock is held.
    fn folder(&self) -> Result<(Dir, PathBuf), Failure> {
        let locked = Dir::open(Files::open_existing(self.dir.path())?, Options::default());
        let locked = locked.map_err(|error| match error {
            wal::Error::Locked { .. } => format!("{error}: stop it first"),
            error => error.to_string(),
        })?;
        Ok((locked, self.dir.path().join("history")))
    }

    fn show(&self, text: impl fmt::Display, value: &Value) {
        match self.json {
            true => print_line(value),
            false => print_line(text),
        }
    }

    fn stats(self) -> Result<(), Failure> {
        let (_locked, folder) = self.folder()?;
        let Sizes { tables, ended, ended_upto, ended_from, journal_bytes, earlier_files } =
            sizes(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let instant = |secs: u64| ts_text(Timestamp::from_secs(secs));
        for TableSize { name, rows, markets, span, files, bytes } in tables {
            let (from, to) = span.map(|(from, to)| (instant(from), instant(to))).unzip();
            let span = from.as_ref().zip(to.as_ref()).map(|(from, to)| format!(", {from} to {to}")).unwrap_or_default();
            self.show(
                format_args!("{name}: {rows} rows of {markets} markets{span}; {bytes} bytes in {files} files"),
                &json!({
                    "table": name, "rows": rows, "markets": markets, "from": from, "to": to, "bytes": bytes,
                    "files": files,
                }),
            );
        }
        for EndedSize { name, rows, users, cut_rows, files, bytes } in ended {
            let cut = if cut_rows > 0 { format!(", {cut_rows} cut") } else { String::new() };
            self.show(
                format_args!("{name}: {rows} rows of {users} users{cut}; {bytes} bytes in {files} files"),
                &json!({
                    "table": name, "rows": rows, "users": users, "cut_rows": cut_rows, "bytes": bytes, "files": files,
                }),
            );
        }
        self.show_cut(ended_from);
        if let Some(upto) = ended_upto {
            self.show(format_args!("ended rows: up to LSN {upto}"), &json!({"ended_upto": upto}));
        }
        self.show(format_args!("journal: {journal_bytes} bytes"), &json!({"journal_bytes": journal_bytes}));
        if earlier_files > 0 {
            self.show(
                format_args!("files of the earlier format, not taken over: {earlier_files}"),
                &json!({"earlier_files": earlier_files}),
            );
        }
        Ok(())
    }

    /// Says from which day on ended rows are kept, if earlier ones were cut.
    fn show_cut(&self, from: Option<UtcDay>) {
        if let Some(day) = from.map(UtcDay::text) {
            self.show(format_args!("ended rows: from {day}; what ended before was cut"), &json!({"ended_from": day}));
        }
    }

    fn verify(self) -> Result<(), Failure> {
        let (_locked, folder) = self.folder()?;
        let Checked { rows, ended_from, damages } =
            check(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for Damage { table, market, user, problem } in &damages {
            let market_text = market.map(|market| format!(", market {market}")).unwrap_or_default();
            let of = user.map_or(market_text, |user| format!(", user {user}"));
            self.show(
                format_args!("{table}{of}: {problem}"),
                &json!({"table": table, "market": market, "user": user, "problem": problem}),
            );
        }
        self.show_cut(ended_from);
        let what = match damages.len() {
            0 => "sound".to_owned(),
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        if self.json || damages.is_empty() {
            self.show(format_args!("{what}: {rows} rows"), &json!({"rows": rows, "problems": damages.len()}));
        }
        if damages.is_empty() { Ok(()) } else { Err(format!("{}: {what}", folder.display()).into()) }
    }
}
