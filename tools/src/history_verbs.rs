//! `history`: the history store of a stopped data directory. The engine of its tables cannot open them without writing:
//! it finishes what a crash left, as at a start. So the directory must be stopped, and is locked meanwhile.

use crate::Failure;
use crate::settings::{DirectoryArgument, print_line};
use clap::{Args, Subcommand};
use engine::time::{Timestamp, UtcDay};
use gateway::fitting::{Fit, compare};
use gateway::rebuild::{Outcome, finish, rebuild};
use history::{Checked, CutRows, Damage, EndedSize, Rebuilt, Sizes, TableSize, UserRows, check, sizes};
use host::clock::Clock;
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
    /// Make a new store in place of a damaged one, of what it, backups, older snapshots and the log still have. Exit code 1
    /// if rows are missing.
    Rebuild(RebuildOptions),
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape history rebuild papertape-data --from backup")]
pub struct RebuildOptions {
    #[command(flatten)]
    history: HistoryOptions,
    /// A backup, or another data directory, of the same log; several may be given.
    #[arg(long, value_name = "BACKUP")]
    from: Vec<PathBuf>,
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
            HistoryVerb::Rebuild(RebuildOptions { history, from }) => history.rebuild(&from),
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
        // As a start does.
        finish(self.dir.path())?;
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

    fn rebuild(self, from: &[PathBuf]) -> Result<(), Failure> {
        let (_locked, folder) = self.folder()?;
        let outcome = rebuild(self.dir.path(), from, Clock::wall().now()).map_err(|error| error.to_string())?;
        let Outcome { rebuilt, notes, prices, kept } = &outcome;
        for note in notes.iter().chain(&rebuilt.unreadable) {
            self.show(note, &json!({"note": note}));
        }
        const KINDS: [&str; 4] = ["orders", "fills", "positions", "requests"];
        let lacking: Vec<&UserRows> = rebuilt.users.iter().filter(|user| user.has_holes()).collect();
        for UserRows { user, found, left, has_cut, is_whole, lacks_hashes, .. } in &lacking {
            if *is_whole {
                self.show(
                    format_args!("user {user}: hashes of signed orders may be missing"),
                    &json!({"user": user.0, "missing": {}, "has_cut": has_cut, "lacks_hashes": lacks_hashes}),
                );
                continue;
            }
            let (mut texts, mut missing) = (Vec::new(), serde_json::Map::new());
            for ((kind, found), left) in KINDS.iter().zip(found).zip(left) {
                // More requests may be found than left: nothing is missing then.
                let count = left.saturating_sub(*found);
                missing.insert((*kind).to_owned(), count.into());
                if count != 0 {
                    texts.push(format!("{count} of {left} {kind}"));
                }
            }
            let are_gone = if *has_cut { "were cut, or are missing" } else { "are missing" };
            let problem = match texts.is_empty() {
                // As many rows of a doubted source.
                true => "what was found is not what left memory, by its hashes".to_owned(),
                false => format!("{} {are_gone}", texts.join(", ")),
            };
            self.show(
                format_args!("user {user}: {problem}"),
                &json!({"user": user.0, "missing": missing, "has_cut": has_cut, "lacks_hashes": lacks_hashes}),
            );
        }
        self.show_cut_rows(rebuilt);
        let (users, proved) =
            (rebuilt.users.len(), rebuilt.users.iter().filter(|user| user.is_proved && !user.has_holes()).count());
        let kept = kept.as_ref().map(|kept| kept.display().to_string());
        let old = kept.as_ref().map(|kept| format!("; the old one is {kept}")).unwrap_or_default();
        let text = match lacking.len() {
            0 => format!("whole: {} rows of {users} users{old}", rebuilt.rows),
            count => format!(
                "not whole: {} rows; {count} of {users} users lack rows that left memory up to LSN {}, and what leaves \
                 later is whole{old}",
                rebuilt.rows, rebuilt.upto
            ),
        };
        self.show(
            &text,
            &json!({
                "rows": rebuilt.rows, "users": users, "users_by_hash": proved, "users_lacking": lacking.len(),
                "users_cut": rebuilt.users.iter().filter(|user| user.has_cut).count(),
                "whole_from": if lacking.is_empty() { 0 } else { rebuilt.upto + 1 }, "files": rebuilt.files,
                "damages": rebuilt.damages, "prices": prices, "old": kept,
            }),
        );
        if lacking.is_empty() { Ok(()) } else { Err(format!("{}: it is not whole", folder.display()).into()) }
    }

    /// Says what is known of users who have rows that were cut, and what is assumed.
    fn show_cut_rows(&self, rebuilt: &Rebuilt) {
        let (day, count) = (rebuilt.kept_from.text(), rebuilt.users.iter().filter(|user| user.has_cut).count());
        let cut = format!("{count} users have rows that ended before {day}, which were cut");
        let assumed = "so each of them is assumed to lack rows";
        let (text, known) = match &rebuilt.cut {
            CutRows::None => return,
            CutRows::Whole => {
                let text = format!(
                    "{cut}; by the counts of each day in the old store none of their rows since then is missing"
                );
                (text, json!({"cut": "whole", "cut_from": day}))
            }
            CutRows::Unknown { missing: [orders, fills, positions, requests] } => {
                let text = format!(
                    "{cut}; by the counts of each day in the old store {orders} orders, {fills} fills, {positions} \
                     positions and {requests} requests since then are missing that are not of other users, {assumed}"
                );
                let missing = json!({"orders": orders, "fills": fills, "positions": positions, "requests": requests});
                (text, json!({"cut": "unknown", "cut_from": day, "missing": missing}))
            }
            CutRows::Uncounted(why) => {
                let text =
                    format!("{cut}; the old store does not say how many rows there were since then ({why}), {assumed}");
                (text, json!({"cut": "uncounted", "cut_from": day, "why": why}))
            }
        };
        self.show(&text, &known);
        let hashes = match rebuilt.lost_hashes {
            Some(0) => return,
            Some(count) => format!("{count} hashes of signed orders are missing"),
            None => "hashes of signed orders may be missing".to_owned(),
        };
        self.show(
            format_args!(
                "{hashes}: a signed order of these users is answered with PERSISTENCE_UNKNOWN if its hash may be one of them"
            ),
            &json!({"lost_hashes": rebuilt.lost_hashes}),
        );
    }

    /// Says from which day on ended rows are kept, if earlier ones were cut.
    fn show_cut(&self, from: Option<UtcDay>) {
        if let Some(day) = from.map(UtcDay::text) {
            self.show(format_args!("ended rows: from {day}; what ended before was cut"), &json!({"ended_from": day}));
        }
    }

    fn verify(self) -> Result<(), Failure> {
        let (_locked, folder) = self.folder()?;
        let Checked { rows, ended_from, mut damages } =
            check(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        match compare(self.dir.path()) {
            Fit::Same => {}
            Fit::Unfit(problem) => damages.push(Damage { table: "log", market: None, user: None, problem }),
            Fit::Released => self.show(
                "log: it has released the record up to which rows moved; only LSNs were compared",
                &json!({"log": "released"}),
            ),
            Fit::Unread(why) => {
                self.show(format_args!("log: not compared: {why}"), &json!({"log": "not compared", "why": why}));
            }
        }
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
