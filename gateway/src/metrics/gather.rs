//! All metrics, read when they are requested. Nothing here waits for the core, except the last step: the response waits
//! in the same queue as all others, so that no figure shows what a crash could undo (wal/docs/durability.md §1). If the
//! log is so full or slow that this wait does not end, only the figures of the runtime are returned: then its queues
//! and its log are the ones to watch.

use super::family::{Family, Writer};
use super::journal::Journal;
use super::{alerts, archive, billing, clock, edge, feed, history, journal, published, streams, system, upstream};
use crate::config::Config;
use crate::instruments::Instruments;
use crate::listeners::FeedLane;
use crate::runtime::Inboxes;
use ::edge::api::health::API_VERSION;
use ::edge::app::App;
use ::edge::ended_rows::HistoryFrom;
use ::journal::commit::{CommitItem, Reply};
use ::journal::recover::Report;
use engine::command::Answer;
use engine::time::SECOND;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use wal::Marks;

const BUILD: Family = Family::new("papertape_build_info", "What runs: version of the program, of the wire, and commit");
const UPTIME: Family = Family::new("papertape_uptime_seconds", "Since this start");
const STARTED: Family = Family::new("process_start_time_seconds", "Unix time of this start");
const HISTORY_FROM: Family = Family::new(
    "papertape_history_from_seconds",
    "Start of the first day of history that is kept, Unix time; 0: all of it is kept",
);
const USERS: Family = Family::new("papertape_users", "Users");
const KEYS: Family = Family::new("papertape_keys_issued", "API keys issued so far, including revoked ones");
const QUEUED: Family = Family::new(
    "papertape_queue_entries",
    "Entries that wait: shard, of all shards together; shard_longest, of the one with most; commit, waiting for the \
     log",
);
const SLOTS: Family =
    Family::new("papertape_queue_slots", "Bound of the entries of each queue; shards refuse when it is full");

const WHOLE: Family = Family::new(
    "papertape_scrape_whole",
    "1: every family is here; 0: the log does not keep up, and only those of log, queues, venues and process are here",
);

/// How long a response may wait until its figures are as durable as promised.
const RELEASE_MAX: Duration = Duration::from_secs(2);

/// The sources of the figures.
pub struct Sources {
    pub config: Arc<Config>,
    pub app: Arc<App>,
    pub instruments: Instruments,
    pub marks: Marks,
    pub lane: FeedLane,
    pub inboxes: Inboxes,
    pub report: Report,
}

/// Metrics in the text format.
pub struct Gather {
    all: Registry,
    /// Figures that no crash can undo.
    runtime: Registry,
    sources: Arc<Sources>,
}

impl Gather {
    pub fn new(sources: Sources) -> Gather {
        let sources = Arc::new(sources);
        let registry = |is_whole| {
            let mut registry = Registry::default();
            registry.register_collector(Box::new(Metrics { sources: sources.clone(), is_whole }));
            registry
        };
        Gather { all: registry(true), runtime: registry(false), sources }
    }

    /// The present figures; only those of the runtime if the log does not release the others in time.
    ///
    /// # Errors
    /// The encoder's.
    pub async fn text(&self) -> Result<String, fmt::Error> {
        let all = encoded(&self.all)?;
        if self.sources.released().await { Ok(all) } else { encoded(&self.runtime) }
    }
}

fn encoded(registry: &Registry) -> Result<String, fmt::Error> {
    let mut out = String::with_capacity(32 << 10);
    text::encode(&mut out, registry)?;
    Ok(out)
}

impl Sources {
    /// Waits until everything recorded before this call is released; false if the log is full or slow.
    async fn released(&self) -> bool {
        let (sender, receiver) = oneshot::channel();
        let marker = CommitItem::Answer { reply: Reply::Request(sender), answer: Answer::Done };
        if self.lane.commits.ring().push(marker).is_err() {
            return false;
        }
        matches!(tokio::time::timeout(RELEASE_MAX, receiver).await, Ok(Ok(_)))
    }

    /// Figures of users, orders and books are only in the whole.
    fn write(&self, is_whole: bool, out: &mut Writer<'_>) -> fmt::Result {
        let Sources { config, app, instruments, marks, lane, inboxes, report } = self;
        let (now, started) = (app.reads.clock.now(), app.instance.started_at);
        let build =
            [("version", env!("CARGO_PKG_VERSION")), ("api_version", API_VERSION), ("git_sha", config.git_sha())];
        out.words(&BUILD, &build)?;
        out.gauge(&UPTIME, now.since(started) as f64 / SECOND as f64)?;
        out.gauge(&STARTED, started.0 as f64 / SECOND as f64)?;
        out.gauge(&WHOLE, u64::from(is_whole))?;
        let lengths = inboxes.iter().map(|inbox| inbox.len());
        let (all, longest) = lengths.fold((0, 0), |(sum, longest), length| (sum + length, longest.max(length)));
        let commits = lane.commits.ring();
        out.gauges_by(&QUEUED, "queue", [("shard", all), ("shard_longest", longest), ("commit", commits.len())])?;
        out.gauges_by(&SLOTS, "queue", [("shard_longest", inboxes[0].slots()), ("commit", commits.slots())])?;
        let journal = Journal {
            meters: instruments.commit.listener.meters.as_ref(),
            marks,
            lane: &lane.commits,
            dir: &config.data.dir,
            report,
        };
        journal::write(&journal, out)?;
        upstream::write(&instruments.upstream, app.reads.clock.now(), out)?;
        archive::write(instruments.archive.as_deref(), out)?;
        history::write(instruments.ended.as_ref(), now, out)?;
        published::write(instruments, out)?;
        clock::write(app, out)?;
        system::write(out)?;
        if !is_whole {
            return Ok(());
        }
        journal::write_orders(instruments.commit.listener.meters.as_ref(), out)?;
        edge::write(app, out)?;
        billing::write(app.billing.as_ref(), out)?;
        let history_from = app.reads.ended.history_from().map(HistoryFrom::day).unwrap_or_default();
        out.gauge(&HISTORY_FROM, history_from.start().secs())?;
        let directory = &app.reads.directory;
        out.gauge(&USERS, directory.users_count() - directory.prefixes_count())?;
        out.gauge(&KEYS, app.reads.directory.keys_count())?;
        feed::write(app, &instruments.feed, out)?;
        alerts::write(&instruments.alerts, out)?;
        streams::write(&app.streams, out)
    }
}

/// The only collector of a registry.
struct Metrics {
    sources: Arc<Sources>,
    is_whole: bool,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.sources.write(self.is_whole, &mut Writer::new(encoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listeners::{CommitFigures, CommitLane, Committer};
    use ::edge::api::testing::Town;
    use ::journal::commit::Durability;
    use ::journal::commit::LogSize;
    use ::journal::recover::{Recovery, recover};
    use engine::mutation::codec;
    use wal::{Options, Running};

    /// The test does the log's work; tokio's paused time jumps to the end of a wait that does not end otherwise.
    #[tokio::test(start_paused = true)]
    async fn a_log_that_does_not_keep_up_leaves_the_runtime_visible() {
        let town = Town::new();
        let place = tempfile::tempdir().expect("a temporary folder");
        let options = Options { segment_bytes: 1 << 20, spares_count: 2, reserve_bytes: 0, ..Options::default() };
        let Recovery { dir, log, report, .. } = recover(&place.path().join("log"), options, 1).expect("a new log");
        let now = town.world.clock.now();
        let Running { log, marks, .. } = dir.start(log, now.0, Box::new(|_| {})).expect("it starts");
        let (figures, size) = (Arc::new(CommitFigures::default()), LogSize::of(1 << 20, 2, 1));
        let commits = CommitLane::new(size, figures.clone());
        let ring = commits.ring().clone();
        let figures_of_all = figures.clone();
        let mut committer = Committer::new(log, Durability::Process, codec::VERSION, size, figures);
        let (lane, inboxes) = (
            FeedLane {
                commits,
                payload_bytes_max: 0,
                wake_log: Arc::new(|| {}),
                inboxes: Vec::new(),
                prints: Vec::new(),
            },
            Inboxes::from([Arc::new(engine::ring::Ring::new(4))]),
        );
        let instruments = Instruments {
            commit: figures_of_all,
            feed: Arc::default(),
            upstream: Default::default(),
            archive: None,
            football: None,
            measurements: None,
            alerts: Arc::default(),
            ended: None,
        };
        let config = Arc::new(Config::defaults());
        let gather = Gather::new(Sources {
            config,
            instruments,
            app: town.world.edge.app.clone(),
            marks,
            lane,
            inboxes,
            report,
        });
        let mut cases = 0;
        // (whether the log is written, whether its queue has room)
        for (is_written, has_room) in [(true, true), (false, true), (false, false), (true, true)] {
            while !has_room && ring.push(CommitItem::Answer { reply: Reply::Discard, answer: Answer::Done }).is_ok() {}
            // Leftovers of an earlier case in the queue.
            while is_written && !ring.is_empty() {
                committer.turn(&ring);
            }
            let writes = async {
                if !is_written {
                    std::future::pending::<()>().await;
                }
                loop {
                    committer.turn(&ring);
                    tokio::task::yield_now().await;
                }
            };
            let text = tokio::select! {
                text = gather.text() => text.expect("memory takes it"),
                () = writes => unreachable!("it does not end"),
            };
            assert!(text.contains(&format!("papertape_scrape_whole {}\n", u8::from(is_written))), "{text}");
            for (family, is_there) in [
                ("papertape_queue_entries{", true),
                ("papertape_journal_unsynced_bytes ", true),
                ("process_threads ", true),
                ("papertape_users ", is_written),
                ("papertape_markets ", is_written),
            ] {
                assert_eq!(text.contains(family), is_there, "{family} {is_written} {has_room}");
                cases += 1;
            }
            assert!(text.ends_with("# EOF\n"));
        }
        println!("families with a log that does not keep up: {cases} cases");
    }
}
