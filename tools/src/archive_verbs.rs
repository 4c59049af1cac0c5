//! `archive`: hours of market data on disk (gateway/docs/archive-tools.md §1).

mod verify;

use crate::Failure;
use crate::record::stop_on_signals;
use crate::settings::{Settings, print_line};
use archive::row::Condition;
use archive::store::{self, HourEntry, Store};
use clap::{Args, Subcommand};
use engine::backtest::{Hour, Verdict};
use gateway::config::{Archive, Config};
use host::clock::Clock;
use host::thread::Stop;
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use venue::archive::build::{self, BuildError, Options};
use venue::archive::fetch::{Fetch, Pace, Source, Sums, Told, parse_digest};
use venue::archive::given;
use venue::archive::hours::{hour_of_name, hour_text, parse_hour};
use venue::archive::import::{self, Import};
use venue::archive::replay;
use venue::archive::room::Room;
use venue::archive::seal::{Place, Sealed};
use venue::archive::settled;
use venue::origin::Origin;
use verify::VerifyVerb;

/// Verbs of an archive.
#[derive(Subcommand)]
pub enum ArchiveVerb {
    /// Import recordings and Parquet hours: files or folders.
    Import(ImportVerb),
    /// Download published hours and import them.
    Fetch(FetchVerb),
    /// Make the hours of a recording.
    Build(BuildVerb),
    /// Check digests and the chain of hours; with --deep, also all rows.
    Verify(VerifyVerb),
    /// List hours with their verdicts.
    Ls(ListVerb),
    /// Keep an hour from being removed by retention.
    Pin(PinVerb),
    /// Let an hour be removed again.
    Unpin(PinVerb),
}

impl ArchiveVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            ArchiveVerb::Import(verb) => verb.run(),
            ArchiveVerb::Fetch(verb) => verb.run(),
            ArchiveVerb::Build(verb) => verb.run(),
            ArchiveVerb::Verify(verb) => verb.run(),
            ArchiveVerb::Ls(verb) => verb.run(),
            ArchiveVerb::Pin(verb) => verb.run(true),
            ArchiveVerb::Unpin(verb) => verb.run(false),
        }
    }
}

/// A wrong command line that the parser does not catch.
#[derive(Debug)]
pub struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Options of every verb.
#[derive(Args)]
struct VerbOptions {
    #[command(flatten)]
    settings: Settings,
    /// The archive (default: `archive.dir`).
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

impl VerbOptions {
    fn root(&self) -> Result<PathBuf, Failure> {
        match &self.archive {
            Some(root) => Ok(root.clone()),
            None => Ok(self.settings.load(Vec::new())?.archive.dir),
        }
    }

    fn store(&self) -> Result<Store, Failure> {
        let root = self.root()?;
        if !root.is_dir() {
            return Err(format!("{}: there is no archive", root.display()).into());
        }
        Ok(Store::open(&root, store::Settings::default())?)
    }

    fn show(&self, text: impl fmt::Display, value: &Value) {
        match self.json {
            true => print_line(value),
            false => print_line(text),
        }
    }

    /// An hour that was not made, and why.
    fn show_other(&self, venue: Origin, hour: u32, state: &str) {
        let text = hour_text(hour);
        let value = json!({"venue": venue.name(), "hour": text, "state": state});
        self.show(format_args!("{} {text}  {state}", venue.name()), &value);
    }

    fn show_hour(&self, hour: &Sealed) {
        let Sealed { origin, rows, bytes, unreadable, unfit, gaps, verdict, is_new, path, .. } = hour;
        let text = hour_text(hour.hour);
        let mut notes = String::new();
        for (count, what) in [(*unreadable, "unreadable"), (*unfit, "fit no row"), (*gaps as u64, "gaps")] {
            if count > 0 {
                notes += &format!(", {count} {what}");
            }
        }
        for (is_so, what) in [(hour.is_resorted, "resorted"), (hour.is_unverified, "unverified")] {
            if is_so {
                notes += &format!(", {what}");
            }
        }
        let state = if *is_new { verdict.as_str() } else { "is there already" };
        self.show(
            format_args!("{} {text}  {rows} rows, {bytes} bytes, {state}{notes}", origin.name()),
            &json!({
                "venue": origin.name(),
                "hour": text,
                "rows": rows,
                "bytes": bytes,
                "verdict": verdict,
                "new": is_new,
                "unreadable": unreadable,
                "unfit": unfit,
                "gaps": gaps,
                "resorted": hour.is_resorted,
                "unverified": hour.is_unverified,
                "path": path,
            }),
        );
    }
}

/// Which hours and markets.
#[derive(Args)]
struct Selection {
    /// Keep only these markets: a file with one condition id a line. A Parquet hour that has none
    /// of them is refused, and an hour of lines is left out, unless the archive knows one from the hour before.
    #[arg(long, value_name = "FILE")]
    markets: Option<PathBuf>,
    /// First hour, like 2026-09-30T17 (UTC).
    #[arg(long, value_name = "HOUR", value_parser = hour)]
    from: Option<u32>,
    /// Last hour.
    #[arg(long, value_name = "HOUR", value_parser = hour)]
    to: Option<u32>,
    /// Replace hours that have another content. Damaged ones are replaced without it, too.
    #[arg(long)]
    replace: bool,
}

impl Selection {
    fn options(&self, root: &Path, is_recorded: bool, config: &Config) -> Result<Options, Failure> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from > to
        {
            return Err(Usage(format!("--from {} is after --to {}", hour_text(from), hour_text(to))).into());
        }
        let markets = self.markets.as_deref().map(given::ids).transpose().map_err(Usage)?;
        let place = Place { replace: self.replace, is_recorded, ..place_in(root, config)? };
        Ok(Options { place, markets, from: self.from, to: self.to, threads: config.archive.threads })
    }
}

/// The archive in a folder, to make hours in it.
fn place_in(root: &Path, config: &Config) -> Result<Place, Failure> {
    let Archive { books_bytes, cache_bytes, memory_bytes, .. } = config.archive;
    // Hours are removed by the server that records: this archive may be another one than its own.
    let settings = store::Settings { books_bytes, cache_bytes, ..store::Settings::default() };
    let room = Room::beside_log(config.journal.reserve_bytes);
    Ok(Place::of(Store::open(root, settings)?, room, memory_bytes, Clock::wall().now())?)
}

/// The recording of a server with these settings.
fn recording_of(config: &Config) -> PathBuf {
    config.venue.live.recording.clone().unwrap_or_else(|| config.data.dir.join("tape"))
}

fn hour(text: &str) -> Result<u32, String> {
    parse_hour(text).ok_or_else(|| "allowed is an hour like 2026-09-30T17".to_owned())
}

#[derive(Args)]
pub struct ImportVerb {
    #[command(flatten)]
    of_verb: VerbOptions,
    /// Recordings or Parquet hours: files or folders.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// Link Parquet files that need no change, instead of copying them.
    #[arg(long, conflicts_with = "copy")]
    link: bool,
    /// Copy Parquet files (the default).
    #[arg(long)]
    copy: bool,
    /// Market objects of the venue, one a line.
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Results of markets: CSV with the columns condition_id, winner (0, 1 or split), at.
    #[arg(long, value_name = "FILE")]
    settlements: Option<PathBuf>,
}

impl ImportVerb {
    fn run(self) -> Result<(), Failure> {
        let ImportVerb { of_verb, paths, selection, link, copy: _, catalogue, settlements } = self;
        let config = of_verb.settings.load(Vec::new())?;
        // Files that are wrong cost no import.
        catalogue.as_deref().map(import::check_objects).transpose().map_err(Usage)?;
        let settlements = settlements.as_deref().map(settled::read).transpose().map_err(Usage)?;
        let options = selection.options(&of_verb.root()?, false, &config)?;
        let import = Import { options, is_linked: link, catalogue, settlements };
        let (stop, names, mut hours) = (stop_on_signals()?, config.venue.categories, Hours::default());
        let mut paths = paths;
        // In order of time: an hour that comes before its successors changes their files.
        paths.sort_by_key(|path| hour_of_name(path));
        // Paths are independent: one that is refused does not keep the next one out.
        let mut refused = Vec::new();
        for path in &paths {
            let mut sealed = |hour: Sealed| {
                hours.note(&hour);
                of_verb.show_hour(&hour);
            };
            let imported = import.run(path, &names, &stop, &mut sealed);
            hours.left_out += imported.left_out;
            refused.extend(imported.refused.iter().map(ToString::to_string));
            if stop.is_set() {
                break;
            }
        }
        hours.end(&of_verb, refused)
    }
}

#[derive(Args)]
pub struct FetchVerb {
    #[command(flatten)]
    of_verb: VerbOptions,
    #[command(flatten)]
    selection: Selection,
    /// Where the hours are published: an address with https, or http of this machine.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The SHA-256 of the one hour, or a file of digests like SHA256SUMS.txt (default: the one beside the hours).
    #[arg(long, value_name = "DIGEST|FILE")]
    sha256: Option<String>,
    /// The venue.
    #[arg(long, default_value = "polymarket", value_parser = live_venue)]
    venue: Origin,
}

fn live_venue(text: &str) -> Result<Origin, String> {
    let names: Vec<&str> = Origin::all().map(Origin::name).collect();
    Origin::named(text).ok_or_else(|| format!("allowed is {}", names.join(" or ")))
}

impl FetchVerb {
    fn run(self) -> Result<(), Failure> {
        let FetchVerb { of_verb, selection, url, sha256, venue } = self;
        let (Some(from), Some(to)) = (selection.from, selection.to) else {
            return Err(Usage("--from and --to are needed".into()).into());
        };
        let config = of_verb.settings.load(Vec::new())?;
        let url = url.or_else(|| config.archive.fetch_url.clone());
        let url =
            url.ok_or_else(|| Usage("nothing is fetched without an address: archive.fetch_url or --url".into()))?;
        let name = format!("{}.parquet", store::hour_name(venue.name(), Hour(from)));
        let sums = sha256.map(|given| given_sums(&given, (from == to).then_some(name))).transpose()?;
        let options = selection.options(&of_verb.root()?, false, &config)?;
        let source = Source::new(&url, &options.place.cache(), Pace::default()).map_err(Usage)?;
        let import = Import { options, is_linked: true, catalogue: None, settlements: None };
        let (stop, mut hours, mut refused) = (stop_on_signals()?, Hours::default(), Vec::new());
        let fetch = Fetch { import: &import, source: &source, origin: venue, hours: from..=to, sums };
        let done = fetch.run(&stop, &mut |told| match told {
            Told::Hour(hour) => {
                hours.note(&hour);
                of_verb.show_hour(&hour);
            }
            Told::There(hour) => {
                hours.there += 1;
                of_verb.show_other(venue, hour, "is there already");
            }
            Told::Missing(hour) => {
                of_verb.show_other(venue, hour, "missing");
                refused.push(format!("{} is missing", hour_text(hour)));
            }
            Told::Refused(hour, reason) => {
                of_verb.show_other(venue, hour, &reason);
                refused.push(format!("{}: {reason}", hour_text(hour)));
            }
            Told::NoSums(reason) => of_verb.show(&reason, &json!({"note": reason})),
        });
        refused.extend(done.err().map(|error| error.to_string()));
        hours.end(&of_verb, refused)
    }
}

/// The digests that the user gave: one, of the file with this name, or a file of them.
fn given_sums(given: &str, name: Option<String>) -> Result<Sums, Failure> {
    if let Some(digest) = parse_digest(given) {
        let name = name.ok_or_else(|| Usage("one digest is of one hour; give a file of digests".into()))?;
        return Ok(Sums::one(name, digest));
    }
    let text = std::fs::read(given).map_err(|error| Usage(format!("--sha256 {given}: {error}")))?;
    match Sums::parse(&text) {
        sums if sums.is_empty() => Err(Usage(format!("--sha256 {given}: no line of a digest")).into()),
        sums => Ok(sums),
    }
}

#[derive(Args)]
pub struct BuildVerb {
    #[command(flatten)]
    of_verb: VerbOptions,
    /// The recording: a file or a folder (default: `venue.record`, or tape in the data directory).
    #[arg(long, value_name = "PATH")]
    tape: Option<PathBuf>,
    /// Only these hours, like 2026-09-30T17..2026-09-30T20, both included.
    #[arg(long, value_name = "A..B", value_parser = hours)]
    hours: Option<(u32, u32)>,
    /// Replace hours that have another content.
    #[arg(long)]
    replace: bool,
    /// Also bring all hours of the archive into order of time, so that no replay has to. Without a recording, only that.
    #[arg(long)]
    time_ordered: bool,
}

fn hours(text: &str) -> Result<(u32, u32), String> {
    let wrong = || "allowed are two hours like 2026-09-30T17..2026-09-30T20".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    parse_hour(from).zip(parse_hour(to)).filter(|(from, to)| from <= to).ok_or_else(wrong)
}

impl BuildVerb {
    fn run(self) -> Result<(), Failure> {
        let BuildVerb { of_verb, tape, hours, replace, time_ordered } = self;
        let config = of_verb.settings.load(Vec::new())?;
        let is_named = tape.is_some();
        let tape = tape.unwrap_or_else(|| recording_of(&config));
        let (from, to) = hours.unzip();
        let selection = Selection { markets: None, from, to, replace };
        let options = selection.options(&of_verb.root()?, true, &config)?;
        let (stop, names, mut made): (Stop, _, _) = (stop_on_signals()?, config.venue.categories, Hours::default());
        let mut refused = Vec::new();
        if is_named || !time_ordered || tape.exists() {
            let mut sealed = |hour: Sealed| {
                made.note(&hour);
                of_verb.show_hour(&hour);
            };
            let built = build::from_lines(&tape, &options, &names, &stop, &mut sealed);
            refused.extend(built.err().iter().flat_map(BuildError::texts));
        }
        if time_ordered {
            fill_cache(&of_verb, &options, config.archive.cache_bytes, &stop, &mut refused)?;
        }
        made.end(&of_verb, refused)
    }
}

/// Brings the hours of an archive into order of time.
fn fill_cache(
    of_verb: &VerbOptions,
    options: &Options,
    cache_bytes: u64,
    stop: &Stop,
    refused: &mut Vec<String>,
) -> Result<(), Failure> {
    let place = &options.place;
    let settings = replay::Settings {
        cache: place.cache(),
        cache_bytes,
        free_bytes_min: place.room.needed(),
        memory_bytes: place.memory_bytes,
        ..replay::Settings::default()
    };
    for venue in place.store.venues() {
        for entry in place.store.all(&venue).iter().filter(|entry| options.wants(entry.hour.0)) {
            let hour = entry.hour;
            let state = match replay::fill_cache(&entry.path, &settings, stop) {
                Ok(true) => "in order of time",
                Ok(false) => "is there already in order of time",
                Err(reason) => {
                    refused.push(reason);
                    continue;
                }
            };
            let value = json!({"venue": venue, "hour": hour.to_string(), "time_ordered": true});
            of_verb.show(format_args!("{venue} {hour}  {state}"), &value);
        }
    }
    place.store.retain(&place.lock, place.now)?;
    Ok(())
}

/// `1 hour`, `2 hours`.
fn hours_text(count: u64) -> String {
    format!("{count} {}", if count == 1 { "hour" } else { "hours" })
}

/// Sums of the hours of a run.
#[derive(Default)]
struct Hours {
    new: u64,
    there: u64,
    rows: u64,
    /// Without a row of the wanted markets.
    left_out: u64,
}

impl Hours {
    fn note(&mut self, hour: &Sealed) {
        match hour.is_new {
            true => self.new += 1,
            false => self.there += 1,
        }
        self.rows += hour.rows;
    }

    /// The sums in words.
    fn text(&self) -> String {
        let Hours { new, there, rows, left_out } = self;
        let (are, were) = (if *new == 1 { "is" } else { "are" }, if *there == 1 { "was" } else { "were" });
        let rows_text = if *rows == 1 { "row" } else { "rows" };
        let left_out = match left_out {
            0 => String::new(),
            count => format!(", {} left out: no row of the wanted markets", hours_text(*count)),
        };
        format!("{} {are} new, {there} {were} there, {rows} {rows_text}{left_out}", hours_text(*new))
    }

    /// Prints the sums; fails if anything was refused.
    fn end(&self, of_verb: &VerbOptions, refused: Vec<String>) -> Result<(), Failure> {
        let Hours { new, there, rows, left_out } = self;
        of_verb.show(
            self.text(),
            &json!({"new": new, "there": there, "rows": rows, "left_out": left_out, "refused": refused}),
        );
        match refused.as_slice() {
            [] => Ok(()),
            [one] => Err(one.as_str().into()),
            several => Err(format!("{} were refused:\n  {}", several.len(), several.join("\n  ")).into()),
        }
    }
}

#[derive(Args)]
pub struct ListVerb {
    #[command(flatten)]
    of_verb: VerbOptions,
    /// Only the hours of this market.
    #[arg(long, value_name = "CONDITION")]
    market: Option<String>,
}

impl ListVerb {
    fn run(self) -> Result<(), Failure> {
        let ListVerb { of_verb, market } = self;
        let store = of_verb.store()?;
        let market =
            market.map(|text| Condition::parse(&text).ok_or_else(|| Usage(format!("{text:?} is not a market id"))));
        let market = market.transpose()?;
        for venue in store.venues() {
            for entry in store.all(&venue) {
                if let Some(market) = &market
                    && store.tokens(&entry, market).is_ok_and(|tokens| tokens.is_empty())
                {
                    continue;
                }
                show_entry(&of_verb, &entry, market.as_ref());
            }
        }
        Ok(())
    }
}

fn show_entry(of_verb: &VerbOptions, entry: &HourEntry, market: Option<&Condition>) {
    let HourEntry { venue, hour, bytes, is_pinned, path, .. } = entry;
    let pinned = if *is_pinned { ", pinned" } else { "" };
    match entry.sidecar() {
        Ok(sidecar) => {
            let verdict = market.map_or(sidecar.verdict(), |market| sidecar.verdict_of(market)).name();
            let (rows, kind, layout) = (sidecar.parquet.rows, &sidecar.source.kind, &sidecar.source.layout);
            of_verb.show(
                format_args!("{venue} {hour}  {verdict}, {rows} rows, {bytes} bytes, {kind} ({layout}){pinned}"),
                &json!({
                    "venue": venue, "hour": hour.to_string(), "verdict": verdict, "rows": rows, "bytes": bytes,
                    "source": kind, "layout": layout, "pinned": is_pinned, "path": path,
                }),
            );
        }
        Err(refusal) => {
            let (verdict, reason) = (Verdict::Quarantined.name(), refusal.to_string());
            of_verb.show(
                format_args!("{venue} {hour}  {verdict}: {reason}{pinned}"),
                &json!({
                    "venue": venue, "hour": hour.to_string(), "verdict": verdict, "reason": reason, "bytes": bytes,
                    "pinned": is_pinned, "path": path,
                }),
            );
        }
    }
}

#[derive(Args)]
pub struct PinVerb {
    #[command(flatten)]
    of_verb: VerbOptions,
    /// The hour, like 2026-09-30T17 (UTC).
    #[arg(value_name = "HOUR", value_parser = hour)]
    hour: u32,
    /// The venue.
    #[arg(long, default_value = "polymarket")]
    venue: String,
}

impl PinVerb {
    fn run(self, is_pinned: bool) -> Result<(), Failure> {
        let PinVerb { of_verb, hour, venue } = self;
        let (store, hour) = (of_verb.store()?, Hour(hour));
        match is_pinned {
            true => store.pin(&venue, hour)?,
            false => store.unpin(&venue, hour)?,
        }
        let value = json!({"venue": venue, "hour": hour.to_string(), "pinned": is_pinned});
        of_verb.show(format_args!("{venue} {hour}  {}", if is_pinned { "pinned" } else { "not pinned" }), &value);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
