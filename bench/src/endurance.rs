//! Hours instead of seconds: a server under an even load and a live feed, with checkpoints, killed once and stopped
//! cleanly once. Each minute is one run of the load client, and after each minute every acknowledged order must be on the
//! server, with a restart in between or not. Every order is in a model on disk; after the last minute the history that the
//! server answers must be equal to it.
//!
//! Flat means: among the minutes without a restart and with an unsaturated client, the last quarter has a p99.9 of at
//! most [`TAIL_GROWTH_MAX`] times that of the first quarter (medians); memory is in the last quarter at most
//! [`MEMORY_GROWTH_MAX`] times that of the second, without the filters over names, which are counted apart; nothing is
//! refused; and the log never exceeds the segments that checkpoints retain.
//! Orders that have ended leave memory, so only the history store and the filters grow with them. A growth, a missing
//! judgement, and any missing or additional order end the program with a failure; the small size of the tests is not judged
//! by its times. The full size draws memory and disk into `endurance.svg`.

mod curves;

use crate::pulse::Beats;
use crate::report::{Report, Size, timed};
use crate::role::{Load, Role};
use crate::seeded::Place;
use crate::server::Server;
use ::history::filters::FILTERS_FOLDER;
use curves::Point;
use engine::user::User;
use journal::recover;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The scenario's name; `all` does not include it.
pub const NAME: &str = "endurance";
/// Least minutes: some of each quarter have no restart.
pub const MINUTES_MIN: usize = 6;
pub const QUESTION: &str = "does a server stay flat, for hours and over restarts?";

/// Runs at full speed until rows leave memory.
const WARM_SECONDS: u64 = 10;
/// The run that counts. It spans several checkpoints, and the keeper's work after it counts, too: a closed loop alone
/// reaches a rate that the keeper cannot hold.
const CALIBRATION_SECONDS: u64 = 150;
/// The keeper has caught up with the log when there is no newer snapshot for this long.
const SETTLED: Duration = Duration::from_secs(20);
/// One minute after a third of the run has a kill in its middle, one after two thirds a clean stop.
const RESTARTS: [&str; 2] = ["killed", "stopped cleanly"];
/// Growth that still counts as flat.
const TAIL_GROWTH_MAX: f64 = 1.5;
const MEMORY_GROWTH_MAX: f64 = 1.05;
const MIX: &str = "rest=45,cross=10,cancel=45";
/// Segments beyond those between two checkpoints: the open one, two spares, and those that fill while a snapshot is
/// written; two snapshots are retained, so the log reaches back to the older one.
const SEGMENTS_MORE: u64 = 8;
const CHECKPOINT_SEGMENTS: u64 = 4;
/// Operations a second of the small size: they fill some segments.
const SMALL_RATE: f64 = 1_500.0;
/// Runs after the last minute of the small size, at most, until orders have left memory.
const MORE_RUNS: usize = 12;
/// The unit of a file's blocks.
const BLOCK_BYTES: u64 = 512;
/// Memory and disk of a full run, beside the results.
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/endurance.svg");
/// The feed at full rate: continuous changes of the book.
const FEED: Beats = Beats { changes: 100, times: u32::MAX, every_us: 1_000, whole: false };

/// The result of one minute.
struct Minute {
    restart: Option<Restart>,
    achieved: f64,
    p50_nanos: u64,
    p999_nanos: u64,
    /// The load client reports that it could not keep up: its late operations are not the server's.
    client_saturated: bool,
    /// Orders and cancels that were acknowledged in this minute and compared with the server after it; `None`: nothing
    /// was compared.
    checked: Option<u64>,
    refused: u64,
    unanswered: u64,
    codes: String,
    /// In all minutes so far.
    orders: u64,
    anonymous_bytes: u64,
    /// Of them in filters over the names of rows that have left memory.
    filter_bytes: u64,
    log_bytes: u64,
    /// Other files beside the log: snapshots.
    snapshots_bytes: u64,
    /// The history store with the files of its filters.
    store_bytes: u64,
}

impl Minute {
    fn point(&self) -> Point {
        let disk_bytes = self.log_bytes + self.snapshots_bytes + self.store_bytes;
        let restart = self.restart.as_ref().map(|restart| restart.word);
        Point { memory_bytes: self.memory_bytes(), disk_bytes, restart }
    }

    /// Anonymous memory without the filters.
    fn memory_bytes(&self) -> u64 {
        self.anonymous_bytes.saturating_sub(self.filter_bytes)
    }
}

/// The event in the middle of a minute.
struct Restart {
    word: &'static str,
    /// From the start of the new process to its first ready answer.
    seconds: f64,
}

struct Plan {
    minutes: usize,
    length: Duration,
    users: usize,
    connections: usize,
    feed: Beats,
}

/// `percent`: the load, of the rate that was reached at full speed.
pub fn run(size: Size, minutes: usize, percent: u8, report: &mut Report) {
    let plan = match size {
        Size::Small => Plan {
            minutes: MINUTES_MIN,
            length: Duration::from_secs(1),
            users: 4,
            connections: 2,
            feed: Beats { changes: 1, every_us: 10_000, ..FEED },
        },
        Size::Full => Plan { minutes, length: Duration::from_secs(60), users: 1_000, connections: 64, feed: FEED },
    };
    let place = Place::seeded(plan.users, size);
    let keys = write_keys(&place);
    let config = write_config(&place, size);
    let model = place.path().join("model");
    let kit = Kit { place: place.path().to_owned(), keys, connections: plan.connections, model };
    let mut server = start(&config, plan.feed);

    let (rate, orders) = match size {
        Size::Small => (SMALL_RATE, 0),
        Size::Full => {
            let (full, orders) = calibrate(&kit, &server, &place, report);
            (full * f64::from(percent) / 100.0, orders)
        }
    };
    let (mut orders, mut minutes) = (orders, Vec::new());
    for number in 0..plan.minutes {
        let name = format!("minute-{number}.json");
        let running = kit.start(&server, plan.length, &name, Some(rate));
        let mut restart = None;
        if let Some(word) = restart_in(number, plan.minutes) {
            std::thread::sleep(plan.length / 2);
            match word {
                "killed" => server.kill(),
                _ => server.terminate(),
            }
            let (seconds, again) = timed(|| start(&config, plan.feed));
            server = again;
            restart = Some(Restart { word, seconds });
        }
        let run = kit.ended(running, &name);
        let check = &run["check"];
        let of = |name: &str| check[name].as_u64().unwrap_or_default();
        orders += of("acknowledged") + of("unknown_there");
        let minute = look(&run, restart, orders, &server, &place);
        println!("{}", line(number, &minute));
        minutes.push(minute);
    }
    if size == Size::Small {
        // So that the history is read from the store, too.
        let mut more = 0;
        place.wait_until_moved(|| {
            if more < MORE_RUNS {
                let run = kit.ended(kit.start(&server, plan.length, "more.json", Some(rate)), "more.json");
                orders += run["check"]["acknowledged"].as_u64().expect("a count");
                more += 1;
            }
        });
    }
    let compared = kit.reconcile(&server);
    server.terminate();
    // From the newest snapshot on: older segments have been recycled.
    let (state, _) = recover::look(&place.path().join("data"), false).expect("a sound log");
    state.check_all().expect("the accounts reconcile");
    let all = |user: &User| user.orders().len() + user.departed().map_or(0, |left| left.orders as usize);
    let kept: usize = state.users.iter().flat_map(|users| users.iter()).map(all).sum();
    report.figure("orders acknowledged", orders as f64, "");
    report.figure("orders kept", kept as f64, "");
    if kept as u64 != orders {
        report.failed(format!("{kept} orders were kept of the {orders} that were acknowledged"));
    }
    let left = |user: &User| user.departed().map_or(0, |left| u64::from(left.orders));
    let left: u64 = state.users.iter().flat_map(|users| users.iter()).map(left).sum();
    report.figure("orders that left memory", left as f64, "");
    match compared {
        Ok(text) => report.note("history", text),
        Err(text) => report.failed(format!("the model and the history of the server differ: {text}")),
    }
    judge(&minutes, size, report);
    if size == Size::Full {
        let picture = curves::svg(&minutes.iter().map(Minute::point).collect::<Vec<_>>());
        std::fs::write(PICTURE, picture).expect("room for a picture");
        report.note("picture", PICTURE);
    }
    report.figure("rate asked", rate, "operations a second");
    report.note("part of the full rate", format!("{percent} %"));
    report.note("mix", MIX);
    // A run of the client that finds a difference ends with a failure, and so does this scenario.
    let checked: Vec<u64> = minutes.iter().filter_map(|minute| minute.checked).collect();
    report.note(
        "checks",
        format!(
            "after {} of {} minutes the acknowledged orders were compared with the server: {} orders and cancels, \
             none missing, undone or twice; after the last one the count of all orders with the log's",
            checked.len(),
            minutes.len(),
            checked.iter().sum::<u64>()
        ),
    );
    if checked.len() < minutes.len() {
        report.failed("after some minutes nothing was compared");
    }
    report.durability("process: in the mapping, not synced");
    report.rate_note("open: latency counts from the scheduled time of each operation");
    report.not_included("TLS, a network, loss of power; client and server share the cores");
}

/// The options of the load client.
struct Kit {
    place: PathBuf,
    keys: PathBuf,
    connections: usize,
    /// Folder of the model of all orders.
    model: PathBuf,
}

impl Kit {
    /// A run in a process of its own: another instance of this program.
    fn start(&self, server: &Server, length: Duration, json: &str, rate: Option<f64>) -> Child {
        let role = Role::Load(Load {
            url: format!("http://{}", server.address),
            keys: self.keys.clone(),
            connections: self.connections,
            seconds: length.as_secs_f64(),
            rate,
            mix: MIX.to_owned(),
            json: self.place.join(json),
            model: self.model.clone(),
        });
        role.command().stdout(Stdio::null()).spawn().expect("this program can be started")
    }

    /// Compares the model with the history of the server: the result of the load client, or its difference.
    fn reconcile(&self, server: &Server) -> Result<String, String> {
        let (url, keys, model) = (format!("http://{}", server.address), self.keys.clone(), self.model.clone());
        let output = Role::Reconcile { url, keys, model }.command().output().expect("this program can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(format!("{} {}", text(&output.stdout), text(&output.stderr))),
        }
    }

    /// Its figures. A failed run has printed its reason.
    fn ended(&self, mut running: Child, json: &str) -> Value {
        let status = running.wait().expect("a child can be waited for");
        assert!(status.success(), "the load client finds all acknowledged orders");
        let path = self.place.join(json);
        let text = std::fs::read(&path).expect("the run has written it");
        std::fs::remove_file(&path).expect("the file is valid");
        serde_json::from_slice(&text).expect("JSON")
    }
}

/// The full rate, and the number of orders that finding it has left: the operations of a closed loop in the time until all
/// checkpoints that they need are made. It counts once rows leave memory, because the mover works beside the orders from
/// then on.
fn calibrate(kit: &Kit, server: &Server, place: &Place, report: &mut Report) -> (f64, u64) {
    let mut orders = 0;
    let mut full_speed = |seconds: u64| {
        let length = Duration::from_secs(seconds);
        let run = kit.ended(kit.start(server, length, "calibration.json", None), "calibration.json");
        orders += run["check"]["acknowledged"].as_u64().expect("a count");
        run["operations"]["all"]["achieved_per_second"].as_f64().expect("a rate")
    };
    let first = full_speed(WARM_SECONDS);
    place.wait_until_moved(|| _ = full_speed(WARM_SECONDS));
    let reached = full_speed(CALIBRATION_SECONDS);
    let behind = settled(place).as_secs_f64();
    let run = CALIBRATION_SECONDS as f64;
    let full = reached * run / (run + behind);
    report.figure("reached at full speed before rows left memory", first, "operations a second");
    report.figure("reached at full speed", reached, "operations a second");
    report.figure("checkpoints that were left then", behind, "s");
    report.figure("full rate", full, "operations a second");
    println!("full rate: {full:.0} a second of {reached:.0}, {behind:.0} s for the checkpoints that were left");
    (full, orders)
}

/// Waits until the keeper has caught up with the log, and returns how long after now its last snapshot was made.
fn settled(place: &Place) -> Duration {
    let newest = || {
        let entries = std::fs::read_dir(place.path().join("data")).expect("the server's directory").flatten();
        let snapshots = entries.filter(|entry| entry.path().extension().is_none_or(|end| end != "wal"));
        snapshots.filter_map(|entry| entry.metadata().ok().filter(|of| of.is_file())?.modified().ok()).max()
    };
    let begun = Instant::now();
    let (mut last, mut made) = (newest(), begun);
    while made.elapsed() < SETTLED {
        std::thread::sleep(Duration::from_millis(100));
        let now = newest();
        if now != last {
            (last, made) = (now, Instant::now());
        }
    }
    made - begun
}

fn start(config: &Path, feed: Beats) -> Server {
    let mut server = Server::start_on_pulse(config);
    server.tell(feed);
    server
}

/// One line for each user, as `papertape seed` writes them.
fn write_keys(place: &Place) -> PathBuf {
    let mut text = String::new();
    for (number, key) in place.keys.iter().enumerate() {
        writeln!(text, "{{\"user_id\":{},\"api_key\":\"{}\"}}", number + 1, key.expose())
            .expect("writing to a string succeeds");
    }
    let path = place.path().join("keys.jsonl");
    std::fs::write(&path, text).expect("room for the keys");
    path
}

/// How the server is restarted in the middle of a minute; `None` if it is not.
fn restart_in(minute: usize, minutes: usize) -> Option<&'static str> {
    let place = (1..=RESTARTS.len()).position(|part| minute == part * minutes / (RESTARTS.len() + 1))?;
    Some(RESTARTS[place])
}

/// A restarted server gets its earlier address. The small size has a window of a second, so that rows leave memory in it,
/// too.
fn write_config(place: &Place, size: Size) -> PathBuf {
    let path = place.write_config("process");
    let text = std::fs::read_to_string(&path).expect("just written");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("bound");
    let text = text
        .replace("127.0.0.1:0", &address.to_string())
        .replace("[journal]\n", &format!("[journal]\ncheckpoint_segments = {}\n", checkpoint_segments(size)))
        + "[export]\nmax_rows = 100000000\n"
        + size.pick("[history]\nhot_seconds = 1\nhot_rows_max = 16\n", "");
    std::fs::write(&path, text).expect("room for a configuration");
    path
}

/// Segments between two checkpoints.
fn checkpoint_segments(size: Size) -> u64 {
    size.pick(1, CHECKPOINT_SEGMENTS)
}

/// Bytes of the files below a folder; 0 if it is missing.
fn files_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // Files appear and disappear during the walk.
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => files_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    });
    bytes.sum()
}

fn look(run: &Value, restart: Option<Restart>, orders: u64, server: &Server, place: &Place) -> Minute {
    let all = &run["operations"]["all"];
    let number = |value: &Value| value.as_u64().expect("a count");
    let compared = |what: &str| run["check"][what].as_u64();
    let (mut log_bytes, mut snapshots_bytes) = (0, 0);
    let data = place.path().join("data");
    let history = data.join("history");
    for entry in std::fs::read_dir(&data).expect("the server's directory").flatten() {
        // Files appear and disappear during the walk.
        let bytes = entry.metadata().ok().filter(|metadata| !metadata.is_dir()).map_or(0, |metadata| metadata.len());
        let is_log = entry.path().extension().is_some_and(|end| end == "wal");
        *(if is_log { &mut log_bytes } else { &mut snapshots_bytes }) += bytes;
    }
    Minute {
        restart,
        achieved: all["achieved_per_second"].as_f64().expect("a rate"),
        p50_nanos: number(&all["latency_ns"]["p50"]),
        p999_nanos: number(&all["latency_ns"]["p99.9"]),
        client_saturated: run["client"]["saturated"].as_bool().expect("a verdict"),
        refused: number(&all["refused"]),
        unanswered: number(&all["unanswered"]),
        checked: compared("acknowledged")
            .zip(compared("cancels_acknowledged"))
            .map(|(orders, cancels)| orders + cancels),
        codes: run["codes"].to_string(),
        orders,
        anonymous_bytes: server.anonymous_bytes(),
        // In memory they have as many bytes as in their files.
        filter_bytes: files_bytes(&history.join(FILTERS_FOLDER)),
        log_bytes,
        snapshots_bytes,
        store_bytes: files_bytes(&history),
    }
}

fn line(number: usize, minute: &Minute) -> String {
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let restart = minute.restart.as_ref().map_or(String::new(), |restart| {
        format!(", {} in its middle and back after {:.2} s", restart.word, restart.seconds)
    });
    format!(
        "minute {number}: {:.0} a second, p50 {:.2} ms, p99.9 {:.2} ms, {} refused {}, {} unanswered, memory {:.0} MB and \
         filters {:.0} MB over {} orders, log {:.0} MB, snapshots {:.0} MB, store {:.0} MB{}{restart}",
        minute.achieved,
        minute.p50_nanos as f64 / 1e6,
        minute.p999_nanos as f64 / 1e6,
        minute.refused,
        minute.codes,
        minute.unanswered,
        mega(minute.memory_bytes()),
        mega(minute.filter_bytes),
        minute.orders,
        mega(minute.log_bytes),
        mega(minute.snapshots_bytes),
        mega(minute.store_bytes),
        if minute.client_saturated { ", the client itself was saturated" } else { "" },
    )
}

fn judge(minutes: &[Minute], size: Size, report: &mut Report) {
    let quiet: Vec<&Minute> = minutes.iter().filter(|minute| minute.restart.is_none()).collect();
    let quarter = quiet.len().div_ceil(4);
    judge_tail(&quiet, size, report);

    let mean =
        |some: &[&Minute]| some.iter().map(|minute| minute.memory_bytes() as f64).sum::<f64>() / some.len() as f64;
    let second = quarter.min(quiet.len() - 1);
    let (before, last) =
        (mean(&quiet[second..(2 * quarter).clamp(second + 1, quiet.len())]), mean(&quiet[quiet.len() - quarter..]));
    report.figure("memory without filters, second quarter", before, "bytes");
    report.figure("memory without filters, last quarter", last, "bytes");
    flat("memory", last / before, MEMORY_GROWTH_MAX, size, report);

    let segment_bytes = size.pick(1_u64 << 20, 64 << 20);
    let bound = (2 * checkpoint_segments(size) + SEGMENTS_MORE) * segment_bytes;
    let most = minutes.iter().map(|minute| minute.log_bytes).max().unwrap_or_default();
    report.figure("log on the disk, most", most as f64, "bytes");
    flat("disk", most as f64 / bound as f64, 1.0, size, report);
    let last = minutes.last().expect("a run has minutes");
    report.figure("snapshots at the end", last.snapshots_bytes as f64, "bytes");
    report.figure("history store at the end", last.store_bytes as f64, "bytes");
    report.figure("filters at the end", last.filter_bytes as f64, "bytes");
    let sum = |of: fn(&Minute) -> u64| minutes.iter().map(of).sum::<u64>() as f64;
    let refused = sum(|minute| minute.refused);
    report.figure("refused", refused, "");
    if refused > 0.0 && size == Size::Full {
        report.failed(format!("{refused} operations were refused, and none may be"));
    }
    report.figure("sent and not answered", sum(|minute| minute.unanswered), "");
    let restarts = minutes.iter().filter_map(|minute| minute.restart.as_ref());
    report.figure("longest restart", restarts.map(|restart| restart.seconds).fold(0.0, f64::max), "s");
}

/// An answer is the server's delay only if the client kept up; a single minute would be compared with itself.
fn judge_tail(quiet: &[&Minute], size: Size, report: &mut Report) {
    let unsaturated: Vec<&Minute> = quiet.iter().copied().filter(|minute| !minute.client_saturated).collect();
    let saturated_count = quiet.len() - unsaturated.len();
    report.figure("minutes without a restart in which the client was saturated", saturated_count as f64, "");
    if saturated_count > 0 && unsaturated.len() < 2 {
        let verdict = "not judged: the client was saturated";
        if size == Size::Full {
            report.failed(format!("p99.9 is {verdict}"));
        }
        return report.note("p99.9", verdict);
    }
    let quarter = unsaturated.len().div_ceil(4);
    let median = |some: &[&Minute]| {
        let mut nanos: Vec<_> = some.iter().map(|minute| minute.p999_nanos).collect();
        nanos.sort_unstable();
        nanos[nanos.len() / 2] as f64
    };
    let (first, last) = (median(&unsaturated[..quarter]), median(&unsaturated[unsaturated.len() - quarter..]));
    report.figure("p99.9 of the first quarter, median of its minutes", first / 1e6, "ms");
    report.figure("p99.9 of the last quarter", last / 1e6, "ms");
    flat("p99.9", last / first, TAIL_GROWTH_MAX, size, report);
}

/// Reports whether a value stayed flat; a growth that is not a number was not measured.
fn flat(what: &str, growth: f64, max: f64, size: Size, report: &mut Report) {
    let word = if growth <= max { "flat" } else { "NOT flat" };
    let verdict = format!("{word}: {growth:.2} × of at most {max} ×");
    if word != "flat" && size == Size::Full {
        report.failed(format!("{what} is {verdict}"));
    }
    report.note(what, verdict);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine equal minutes, two of them with a restart, changed by each case.
    fn minutes(change: impl Fn(usize, &mut Minute)) -> Vec<Minute> {
        let made = (0..9).map(|number| {
            let restart = restart_in(number, 9).map(|word| Restart { word, seconds: 0.5 });
            let orders = 1_000 * (number as u64 + 1);
            let mut minute = Minute {
                restart,
                achieved: 1_000.0,
                p50_nanos: 100_000,
                p999_nanos: 1_000_000,
                client_saturated: false,
                checked: Some(1_000),
                refused: 0,
                unanswered: 0,
                codes: String::new(),
                orders,
                anonymous_bytes: 300_000,
                // They grow with the orders that have left.
                filter_bytes: 0,
                log_bytes: 512 << 20,
                snapshots_bytes: 0,
                store_bytes: 0,
            };
            change(number, &mut minute);
            minute
        });
        made.collect()
    }

    #[test]
    fn a_run_is_killed_once_and_stopped_once() {
        let lengths = [MINUTES_MIN, 7, 9, 60, 61, 10_000];
        for minutes in lengths {
            let restarts: Vec<&str> = (0..minutes).filter_map(|minute| restart_in(minute, minutes)).collect();
            assert_eq!(restarts, RESTARTS, "{minutes}");
            assert_eq!(restart_in(0, minutes), None, "the first minutes are compared with the last ones");
        }
        println!("restarts: {} cases", lengths.len());
    }

    #[test]
    fn what_is_not_flat_is_a_failure_unless_it_is_small() {
        let cases: [(&str, &[&str], Vec<Minute>); 12] = [
            ("unchanged", &[], minutes(|_, _| {})),
            (
                "filters and store that grow",
                &[],
                minutes(|number, minute| {
                    (minute.filter_bytes, minute.store_bytes) = (50_000 * number as u64, 1 << (20 + number));
                    minute.anonymous_bytes += minute.filter_bytes;
                }),
            ),
            ("one that is refused", &["refused"], minutes(|number, minute| minute.refused = u64::from(number == 4))),
            ("slower by a little", &[], minutes(|number, minute| minute.p999_nanos += 50_000 * number as u64)),
            (
                "slower from the middle on",
                &["p99.9"],
                minutes(|number, minute| {
                    minute.p999_nanos *= if number > 4 { 2 } else { 1 };
                }),
            ),
            (
                "slower when it restarts",
                &[],
                minutes(|_, minute| {
                    minute.p999_nanos *= if minute.restart.is_some() { 1_000 } else { 1 };
                }),
            ),
            (
                "memory that leaks",
                &["memory"],
                minutes(|number, minute| {
                    minute.anonymous_bytes *= if number > 5 { 2 } else { 1 };
                }),
            ),
            ("a log that only grows", &["disk"], minutes(|number, minute| minute.log_bytes *= number as u64 + 1)),
            (
                "all of them",
                &["p99.9", "memory", "disk"],
                minutes(|number, minute| {
                    let times = number as u64 * number as u64 + 1;
                    (minute.p999_nanos, minute.anonymous_bytes) = (1_000 * times, 1_000 * times);
                    minute.log_bytes *= times;
                }),
            ),
            (
                "late while the client is saturated",
                &[],
                minutes(|number, minute| {
                    minute.client_saturated = number > 4;
                    minute.p999_nanos *= if minute.client_saturated { 1_000 } else { 1 };
                }),
            ),
            (
                "a client that is saturated nearly always",
                &["p99.9"],
                minutes(|number, minute| minute.client_saturated = number > 0),
            ),
            ("nothing measured", &["p99.9"], minutes(|_, minute| minute.p999_nanos = 0)),
        ];
        for (name, expected, minutes) in &cases {
            for size in [Size::Small, Size::Full] {
                let mut report = Report::new("any", "why?", size, false);
                judge(minutes, size, &mut report);
                let json = report.json();
                let failed = json["failed"].as_array().expect("a list").clone();
                let verdicts = ["p99.9", "memory", "disk"]
                    .map(|what| (what, !json["figures"][what].as_str().expect("a verdict").starts_with("flat")));
                // The small size has smaller segments, so its log always exceeds the bound.
                let mut not_flat: Vec<_> = verdicts.iter().filter(|(_, not)| *not).map(|(what, _)| *what).collect();
                if json["figures"]["refused []"] != serde_json::json!(0.0) {
                    not_flat.push("refused");
                }
                if size == Size::Full {
                    assert_eq!(not_flat, *expected, "{name}");
                    assert_eq!(failed.len(), expected.len(), "{name}: {failed:?}");
                    assert_eq!(report.is_well(), expected.is_empty(), "{name}");
                } else {
                    assert!(report.is_well() && failed.is_empty(), "{name}: {failed:?}");
                }
            }
        }
        println!("verdicts: {} cases", 2 * cases.len());
    }
}
