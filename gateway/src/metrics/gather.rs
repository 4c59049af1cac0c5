//! Everything that is told, read out when it is asked for. Nothing here waits for the core, but the last step: the
//! answer to whoever asks waits in the same line as all others, so that no figure shows what a crash could take back
//! (reliability 1).

use super::family::{Family, Writer};
use super::journal::Journal;
use super::{edge, feed, journal, streams, system, upstream};
use crate::api::health::{API_VERSION, GIT_SHA};
use crate::app::App;
use crate::commit::{CommitItem, Reply};
use crate::machinery::Inboxes;
use crate::recover::Report;
use crate::venue::feed::FeedLane;
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
const USERS: Family = Family::new("papertape_users", "Users");
const KEYS: Family = Family::new("papertape_keys_issued", "API keys issued so far, revoked ones among them");
const QUEUED: Family = Family::new(
    "papertape_queue_entries",
    "Entries that wait: shard, of all shards together; shard_longest, of the one with most; commit, on their way to the log",
);
const SLOTS: Family =
    Family::new("papertape_queue_slots", "Entries that such a queue holds at most; shards refuse when it is full");

/// How long an answer may wait for what it tells to be as durable as promised.
const RELEASE_MAX: Duration = Duration::from_secs(2);

/// Where figures are read.
pub struct Sources {
    pub app: Arc<App>,
    pub marks: Marks,
    pub lane: FeedLane,
    pub inboxes: Inboxes,
    pub report: Report,
}

/// The log is full or slow: what was read may not be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreleased;

/// All figures in the text format.
pub struct Gather {
    registry: Registry,
    sources: Arc<Sources>,
}

impl Gather {
    pub fn new(sources: Sources) -> Gather {
        let sources = Arc::new(sources);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Told(sources.clone())));
        Gather { registry, sources }
    }

    /// The figures of now.
    ///
    /// # Errors
    /// [`Unreleased`] when the log did not keep its promise for them in time.
    pub async fn text(&self) -> Result<String, Unreleased> {
        let mut said = String::with_capacity(32 << 10);
        text::encode(&mut said, &self.registry).map_err(|_| Unreleased)?;
        self.sources.released().await?;
        Ok(said)
    }
}

impl Sources {
    /// Waits until all that was recorded before this call is released.
    async fn released(&self) -> Result<(), Unreleased> {
        let (sender, receiver) = oneshot::channel();
        let question = CommitItem::Answer { reply: Reply::Request(sender), answer: Answer::Done };
        self.lane.commits.ring().push(question).map_err(|_| Unreleased)?;
        match tokio::time::timeout(RELEASE_MAX, receiver).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Unreleased),
        }
    }

    fn write(&self, out: &mut Writer<'_>) -> fmt::Result {
        let Sources { app, marks, lane, inboxes, report } = self;
        let (now, started) = (app.clock.now(), app.started_at);
        let build = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("api_version", API_VERSION),
            ("git_sha", GIT_SHA.unwrap_or("unknown")),
        ];
        out.words(&BUILD, &build)?;
        out.gauge(&UPTIME, now.since(started) as f64 / SECOND as f64)?;
        out.gauge(&STARTED, started.0 as f64 / SECOND as f64)?;
        edge::write(app, out)?;
        out.gauge(&USERS, app.directory.users_count())?;
        out.gauge(&KEYS, app.directory.keys_count())?;
        let lengths = inboxes.iter().map(|inbox| inbox.len());
        let (all, longest) = lengths.fold((0, 0), |(sum, longest), length| (sum + length, longest.max(length)));
        let commits = lane.commits.ring();
        let row = |name: &'static str, count: usize| ([("queue", name)], count);
        let entries = [row("shard", all), row("shard_longest", longest), row("commit", commits.len())];
        out.gauges(&QUEUED, entries.iter().map(|(labels, count)| (&labels[..], *count)))?;
        let slots = [row("shard_longest", inboxes[0].slots()), row("commit", commits.slots())];
        out.gauges(&SLOTS, slots.iter().map(|(labels, count)| (&labels[..], *count)))?;
        let journal = Journal {
            meters: app.commit.meters.as_ref(),
            marks,
            lane: &lane.commits,
            dir: &app.config.data.dir,
            report,
        };
        journal::write(&journal, out)?;
        feed::write(app, out)?;
        upstream::write(app, out)?;
        streams::write(app, out)?;
        system::write(out)
    }
}

/// The one collector of the registry.
struct Told(Arc<Sources>);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Told")
    }
}

impl Collector for Told {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.write(&mut Writer::new(encoder))
    }
}
