//! Market data: a venue translates its messages into [`FeedUpdate`]s, and the feed applies them to the books.
//!
//! A venue has no access to users and orders. Its message shapes stay in its `dto.rs`; `translate.rs` is pure and is
//! shared by the live adapters and replay.
//!
//! May depend on `engine`, `wire` and `host`. Absent on purpose: requests and sockets of clients, the log (the feed
//! writes into an [`engine::shard::Outbox`]), and the texts of streams (a [`engine::book::listener::BookListener`] is
//! notified).

pub mod adapters;
pub mod archive;
mod bounds;
pub mod category;
pub mod doctor;
pub mod feed;
mod fees;
mod ids;
mod json_scanner;
pub mod kalshi;
pub mod live;
pub mod loose;
pub mod origin;
pub mod playback;
pub mod polymarket;
pub mod replay;
mod saved;
pub mod settings;
pub mod skips;
pub mod spot;
#[cfg(test)]
mod suite;
pub mod synthetic;
pub mod tape;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod translators;

use adapters::Live;
use category::Names;
use engine::amount::{Price, Qty, TickSize};
pub use engine::book::{BookSide, Stated};
use engine::market::Market;
use engine::market::terms::{Asset, FeeSchedule, Listing, MarketState, Resolution};
use engine::time::Timestamp;
use host::clock::Clock;
pub use live::Health;
use origin::{Origin, Origins};
use playback::Playback;
use replay::Replay;
pub use replay::Speed;
use skips::Skips;
use smallvec::SmallVec;
use std::path::PathBuf;
use std::sync::Arc;
use synthetic::Synthetic;
use tape::TapeError;

/// A price level as a venue reports it; the size is absolute.
pub type Level = (Price, Qty);

/// Levels that changed; usually one.
pub type Changes = SmallVec<[(BookSide, Price, Qty); 2]>;

/// One translated message of a venue (gateway/docs/live-venues.md §1). Tokens and conditions are the texts of the wire;
/// token texts are shared, since nearly every message has one.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedUpdate {
    /// A market is listed. A repeated listing of a known condition changes state, tick and end only. The state is never
    /// [`MarketState::Resolved`]: only [`FeedUpdate::Resolved`] reports a result, once.
    Listed {
        listing: Box<Listing>,
        state: MarketState,
    },
    StateChanged {
        condition: String,
        state: MarketState,
    },
    /// The end date moved (Kalshi `close_date_updated`, Gamma re-reads).
    EndChanged {
        condition: String,
        end: Option<Timestamp>,
    },
    /// Informational figures; never journaled.
    Figures {
        condition: String,
        figures: Figures,
    },
    /// Prices that the venue's catalogue states for a market; never journaled.
    Stated {
        condition: String,
        prices: Stated,
    },
    /// The threshold of an up-or-down market, as plain decimals of the venue: the market's own, and that of its event.
    /// Never journaled.
    Strike {
        condition: String,
        strike: Option<String>,
        price_to_beat: Option<String>,
    },
    /// The whole book of a token; replaces all levels of both sides. Best first on both sides.
    BookSnapshot {
        token: Arc<str>,
        bids: Vec<Level>,
        asks: Vec<Level>,
        venue_ts: Timestamp,
        hash: Option<String>,
    },
    /// Some levels of a token; size is absolute and 0 deletes.
    BookDelta {
        token: Arc<str>,
        levels: Changes,
        venue_ts: Timestamp,
    },
    /// The price of a token's last trade as its book states it, and the number of decimals of that text. It follows the
    /// book's snapshot in the same frame.
    LastPrice {
        token: Arc<str>,
        price: Price,
        decimals: Option<u8>,
        venue_ts: Timestamp,
    },
    TickChanged {
        condition: String,
        tick: TickSize,
    },
    LastTrade {
        token: Arc<str>,
        price: Price,
        size: Qty,
        taker_buys: bool,
        venue_ts: Timestamp,
        /// The venue's id of the trade (Kalshi) or the hash of its transaction (Polymarket); `None` where it states
        /// neither.
        id: Option<Arc<str>>,
        /// The fee rate that the venue states for the trade, in 1/10 000.
        fee_rate_bps: Option<u16>,
    },
    /// A trade for which the venue did not state the taker's side. It fills no order and is not shown; it is only
    /// counted.
    SidelessTrade {
        token: Arc<str>,
        price: Price,
        size: Qty,
        venue_ts: Timestamp,
    },
    Resolved {
        condition: String,
        resolution: Resolution,
        venue_ts: Timestamp,
    },
    /// The best prices of a token after this frame, as the venue states them; `None` = the venue states that the side
    /// is empty. Used to check the folded book, never applied.
    Top {
        token: Arc<str>,
        bid: Option<Price>,
        ask: Option<Price>,
    },
    /// The price of the underlying of up-or-down markets, in 10⁻⁶ dollars.
    Spot {
        asset: Asset,
        family: engine::market::spot::Family,
        micros: u64,
        at: Timestamp,
    },
    /// The books of these tokens are unreliable: stale until the next snapshot. Empty = all tokens of the connection.
    Gap {
        tokens: Vec<String>,
        reason: String,
    },
    /// The books of this market are no longer followed: they have the maximum age until a new snapshot comes.
    Left {
        tokens: [String; 2],
    },
    /// What a market states about its fees, after its listing and when it changes; `None`: it cannot be used.
    Fees {
        condition: String,
        schedule: Option<FeeSchedule>,
    },
}

/// Figures that a venue reports for a market beside its book, in 10⁻⁶; `None` = not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub volume_24h: Option<u64>,
    pub volume_total: Option<u64>,
    pub liquidity: Option<u64>,
}

/// The result of one poll of a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Venue time reached; never goes backwards. No update handed out so far is later.
    pub venue_now: Timestamp,
    /// Server time at which the next poll is due; `None` = the source wakes the feed itself.
    pub wake_at: Option<Timestamp>,
}

/// A source of market data for the feed.
///
/// `poll` hands out all frames that are due, each with all of its updates in one call to `frame`, but none later than
/// `until` (venue time). The feed sets `until` to the next due matching cycle, so that no crossing is missed at any
/// speed. One poll hands out a bounded number of frames; when more are due, `wake_at` is not later than `server_now`.
pub trait Venue: Send {
    /// `server_now` is the wall clock; `until` is the latest venue time to hand out.
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled;

    /// Time of what comes next in a recording, on any clock; `None` at its end, and for other venues.
    fn next_at(&self) -> Option<Timestamp> {
        None
    }

    /// Whether venue time is server time (live, synthetic) or driven by the recording.
    fn drives_clock(&self) -> bool;

    /// One line for the banner, e.g. `replay of 18 tapes at 60x`.
    fn describe(&self) -> String;

    /// Hands out the past of this venue, which the feed folds without matching before the listener opens: the part of a
    /// tape up to the point given to [`Venue::resume`], or all lines that a followed tape already has. Called at most
    /// once, before the first poll. Returns the venue time reached.
    fn catch_up(&mut self, server_now: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Timestamp {
        let _ = frame;
        server_now
    }

    /// Continues where an earlier run stopped; called before anything is handed out. Returns `false`, and starts at the
    /// beginning, when `first_line` is not that of this venue's tape.
    fn resume(&mut self, first_line: [u8; 32], reached: Timestamp) -> bool {
        let _ = (first_line, reached);
        false
    }

    /// Adds a market that the journal has as unresolved; called before the first poll. If the venue has its result, the
    /// venue hands it out, even when it no longer lists the market.
    fn recall(&mut self, market: &Market) {
        let _ = market;
    }

    /// A user has traded this market: the venue is asked for its state from now on.
    fn stake(&mut self, condition: &str) {
        let _ = condition;
    }

    /// The folded book of this token's market is wrong: its full books are requested again.
    fn resync(&mut self, token: &str) {
        let _ = token;
    }

    /// No message about these tokens arrived for a long time. The venue may have lost their subscriptions without a
    /// notice, so their books are requested (gateway/docs/live-venues.md §5).
    fn check(&mut self, tokens: &[&str]) {
        let _ = tokens;
    }

    /// The venue sends nothing for this token's market any more: it is subscribed again.
    fn resubscribe(&mut self, token: &str) {
        let _ = token;
    }

    /// Which live venues are out (engine/docs/execution.md §10), and whether all of them are. A recording is never out.
    fn outages(&self, server_now: Timestamp) -> Outages {
        let _ = server_now;
        Outages::default()
    }

    /// Whether anything arrived since the last poll.
    fn has_news(&self) -> bool {
        false
    }

    /// SHA-256 of the first line of the recording, which identifies it in the journal. `None` for other venues, and
    /// while there is no line yet.
    fn first_line(&self) -> Option<[u8; 32]> {
        None
    }

    /// Whether quote age is measured in server time from the poll that handed the quote out (live, synthetic, a
    /// followed tape) or in venue time (any other replay).
    fn ages_on_server_time(&self) -> bool {
        !self.drives_clock()
    }

    /// The state of the venue's connections, for health responses and metrics.
    fn upstream(&self) -> Upstream {
        Upstream::default()
    }
}

/// Venues that have no live connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    pub out: Origins,
    /// All configured venues are out.
    pub all: bool,
    /// Whether no venue has sent a message since the start.
    pub no_contact: bool,
}

/// The state of the connections of a venue; written by its threads, read by any thread.
#[derive(Clone, Default)]
pub struct Upstream {
    /// One entry per live venue.
    pub venues: Vec<(Origin, Arc<Health>)>,
    /// What was skipped, by kind; `None` for a venue that translates nothing.
    pub skips: Option<Arc<Skips>>,
    /// Figures of the recording that is being written, if any.
    pub recording: Option<Arc<live::recorder::Figures>>,
    /// Position in the recording that is being replayed, if any.
    pub playback: Option<Arc<Playback>>,
}

/// The updates of one message of a venue; they are applied together, then published. A message without updates is
/// handed out too, because it shows that its connection is alive.
pub struct Frame<'a> {
    /// Connection that carried the message; its latest frame is the sign of life of its tokens. [`NO_CONNECTION`] for
    /// frames that no connection carried, such as the passing of time in a recording.
    pub connection: u8,
    /// Venue time of arrival; never goes backwards.
    pub received: Timestamp,
    /// The response to a request of this process: a sign of life of the tokens that it names only. Never set in a
    /// recording, where each line counts for its whole connection (engine/docs/execution.md §10).
    pub is_answer: bool,
    pub updates: &'a [FeedUpdate],
}

/// The value of [`Frame::connection`] for frames without a connection.
pub const NO_CONNECTION: u8 = u8::MAX;

/// Which venue to open, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueConfig {
    pub kind: VenueKind,
    /// For the synthetic venue: the same seed makes the same world.
    pub seed: u64,
    /// For a replay: a file or a folder of files (gateway/docs/live-venues.md §7). Empty: not set.
    pub tape: PathBuf,
    pub speed: Speed,
    /// Reads the tape as it grows; `speed` is ignored then.
    pub follow: bool,
    /// For a replay of an archive.
    pub archive: self::archive::replay::Settings,
    /// Factor on how often the synthetic books change, from 1 to [`synthetic::LIVELINESS_MAX`].
    pub liveliness: u64,
    /// Whether a data directory may be used with several venues.
    pub mix: bool,
    /// From `[fees.category_map]`.
    pub categories: Names,
    /// For live venues.
    pub live: adapters::Settings,
}

impl VenueConfig {
    /// Checks the settings for contradictions, before anything is opened.
    ///
    /// # Errors
    /// [`VenueError::NoTape`], [`VenueError::NothingToRecord`].
    pub fn check(&self) -> Result<(), VenueError> {
        let is_live = matches!(self.kind, VenueKind::Live(_));
        match self.kind {
            VenueKind::Replay if self.tape.as_os_str().is_empty() => Err(VenueError::NoTape),
            kind if self.live.recording.is_some() && !is_live => Err(VenueError::NothingToRecord(kind)),
            _ => Ok(()),
        }
    }
}

/// Where market data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueKind {
    Synthetic,
    Replay,
    /// Real venues, one or several.
    Live(Origins),
}

impl std::fmt::Display for VenueKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VenueKind::Synthetic => f.write_str("synthetic"),
            VenueKind::Replay => f.write_str("replay"),
            VenueKind::Live(origins) => f.write_str(&origins.names()),
        }
    }
}

impl std::str::FromStr for VenueKind {
    type Err = String;

    /// Parses `synthetic`, `replay`, or names of live venues separated by commas.
    fn from_str(names: &str) -> Result<VenueKind, String> {
        let wrong = || format!("a venue is `synthetic`, `replay`, {}, not {names:?}", origin::choices("`"));
        match names {
            "synthetic" => return Ok(VenueKind::Synthetic),
            "replay" => return Ok(VenueKind::Replay),
            _ => {}
        }
        let mut origins = Origins::default();
        for name in names.split(',') {
            if !origins.insert(Origin::named(name.trim()).ok_or_else(wrong)?) {
                return Err(wrong());
            }
        }
        Ok(VenueKind::Live(origins))
    }
}

/// Why a venue cannot be opened.
#[derive(Debug)]
pub enum VenueError {
    /// A replay without a tape.
    NoTape,
    /// A recording of a venue that is not live.
    NothingToRecord(VenueKind),
    Tape(TapeError),
    /// The adapters of live venues could not be started.
    Live(std::io::Error),
}

impl std::fmt::Display for VenueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VenueError::NoTape => f.write_str("venue.tape: venue.kind = replay needs the path of a tape"),
            VenueError::NothingToRecord(kind) => {
                write!(f, "venue.record: only live venues are recorded ({}), not {kind}", origin::choices(""))
            }
            VenueError::Tape(error) => error.fmt(f),
            VenueError::Live(error) => write!(f, "the live venues cannot be started: {error}"),
        }
    }
}

impl std::error::Error for VenueError {}

/// Opens the configured venue.
pub fn open(config: &VenueConfig, clock: &Clock) -> Result<Box<dyn Venue>, VenueError> {
    Ok(match config.kind {
        VenueKind::Synthetic => Box::new(
            Synthetic::new(config.seed, clock.now(), config.categories.clone()).with_liveliness(config.liveliness),
        ),
        VenueKind::Replay => Box::new(replay(config).map_err(VenueError::Tape)?),
        VenueKind::Live(origins) => Box::new(
            Live::start(origins, config.live.clone(), &config.categories, clock.clone()).map_err(VenueError::Live)?,
        ),
    })
}

/// Opens a recording: the lines of a tape, or hours of an archive.
fn replay(config: &VenueConfig) -> Result<Replay, TapeError> {
    let VenueConfig { tape, speed, follow, categories, archive: settings, .. } = config;
    if !self::archive::replay::is_archive(tape)? {
        if settings.selects() {
            let reason = "markets, from and to select of an archive; this tape has lines".into();
            return Err(TapeError::Archive { path: tape.clone(), reason });
        }
        return Replay::open(tape, *speed, *follow, categories);
    }
    if *follow {
        let reason = "an archive does not grow; only lines can be followed".into();
        return Err(TapeError::Archive { path: tape.clone(), reason });
    }
    self::archive::replay::open(tape, *speed, settings, categories)
}

/// The segments of a URL's path, without scheme, host, query and empty segments. A recording may keep a prefix, so that
/// only the last segments identify the call.
fn rest_path(url: &str) -> Vec<&str> {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let path = url.split_once("://").map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}
