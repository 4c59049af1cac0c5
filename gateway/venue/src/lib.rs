//! Where market data comes from: a venue turns its own messages into [`FeedUpdate`]s; the feed applies them.
//!
//! A venue knows nothing of users and orders. Its message shapes stay in its `dto.rs`; `translate.rs` is pure and is
//! used alike by the live adapters and by replay.
//!
//! May depend on `engine`, `wire` and `host`. Absent on purpose: requests and sockets of clients, the log (the feed writes into
//! an [`engine::shard::Outbox`]), and texts of streams (a [`engine::book::listener::BookListener`] is told).

pub mod adapters;
mod bounds;
pub mod category;
pub mod doctor;
pub mod feed;
mod ids;
pub mod kalshi;
pub mod live;
pub mod loose;
mod plain;
pub mod playback;
pub mod polymarket;
pub mod replay;
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
mod translators;

use adapters::Live;
use category::Names;
use engine::amount::{Price, Qty, TickSize};
pub use engine::book::{BookSide, Stated};
use engine::market::Market;
use engine::market::terms::{Asset, Listing, MarketState, Resolution};
use engine::time::Timestamp;
use host::clock::Clock;
pub use live::Health;
use playback::Playback;
use replay::Replay;
pub use replay::Speed;
use skips::Skips;
use smallvec::SmallVec;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use synthetic::Synthetic;
use tape::{Origin, TapeError};

/// A level as a venue reports it: absolute size.
pub type Level = (Price, Qty);

/// Levels that changed. Nearly always it is one.
pub type Changes = SmallVec<[(BookSide, Price, Qty); 2]>;

/// The venue's id of a trade or of its transaction as a number: two tellings of one trade are known by it.
pub(crate) fn trade_id(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// One thing a venue said, in our words (upstream.md §1). Tokens and conditions are the wire's texts; those of tokens,
/// which nearly every message carries, are shared.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedUpdate {
    /// A market is known; repeated listings of a known condition change state, tick and end only. The state is never
    /// [`MarketState::Resolved`]: how a market ended is told by [`FeedUpdate::Resolved`] alone, once.
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
    /// Prices that the venue's catalogue states of a market; never journaled.
    Stated {
        condition: String,
        prices: Stated,
    },
    /// What the price must beat in an up-or-down market, as plain decimals of the venue: by the market's own threshold,
    /// by what its event says. Never journaled.
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
    /// The price of a token's last trade as its book states it, and the decimals of that text; follows the book's
    /// snapshot in the same frame.
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
        /// The hash of the venue's id of the trade or of its transaction; `None` where it states neither.
        id: Option<u64>,
    },
    /// A trade whose taker's side the venue did not state. It fills no order and nothing shows it: it is counted.
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
    /// What the venue says the best prices of a token are behind this frame; `None` = it says there is none. To check
    /// what was folded by, never applied.
    Top {
        token: Arc<str>,
        bid: Option<Price>,
        ask: Option<Price>,
    },
    /// The price of what up-or-down markets are about, in dollars, in 10⁻⁶.
    Spot {
        asset: Asset,
        family: engine::market::spot::Family,
        micros: u64,
        at: Timestamp,
    },
    /// The view of these tokens is broken: stale until the next snapshot. Empty = all tokens of the connection.
    Gap {
        tokens: Vec<String>,
        reason: String,
    },
    /// Nobody follows the books of this market any more: as old as can be until they come anew.
    Left {
        tokens: [String; 2],
    },
}

/// Figures about a market that a venue reports beside its book, in 1/1 000 000; `None` = not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub volume_24h: Option<u64>,
    pub volume_total: Option<u64>,
    pub liquidity: Option<u64>,
}

/// What one poll of a venue came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Venue time reached; never goes backwards. All updates handed out so far are not after it.
    pub venue_now: Timestamp,
    /// When (server time) the next poll is worth while; `None` = when the source itself wakes the feed.
    pub wake_at: Option<Timestamp>,
}

/// The seam between the feed and where data comes from.
///
/// `poll` hands out everything that is due, in whole frames (all updates of one frame in one call to `frame`), but
/// never goes past `until` (venue time): the feed sets it to the next due matching cycle so that, at any speed, no
/// crossing is missed. One poll hands out a bounded number of frames; when more are due, `wake_at` is not after
/// `server_now`.
pub trait Venue: Send {
    /// `server_now` is the wall clock; `until` is the venue time not to go past.
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled;

    /// Whether venue time is server time (live, synthetic) or driven by the recording.
    fn drives_clock(&self) -> bool;

    /// One line for the banner, e.g. `replay of 18 tapes at 60x`.
    fn describe(&self) -> String;

    /// Hands out what lies in the past of this venue, for the feed to fold without matching before the listener
    /// opens: the part of a tape that [`Venue::resume`] skipped to, or all lines that a followed tape already has.
    /// Called at most once, before the first poll. Returns the venue time reached.
    fn catch_up(&mut self, server_now: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Timestamp {
        let _ = frame;
        server_now
    }

    /// Says how far an earlier run came, before anything was handed out. Taken when `first_line` is that of this
    /// venue's tape; else the answer is `false` and the tape starts at its beginning.
    fn resume(&mut self, first_line: [u8; 32], reached: Timestamp) -> bool {
        let _ = (first_line, reached);
        false
    }

    /// Tells of a market that the journal knows and has not seen resolved, before the first poll: a venue that knows
    /// what became of it says so then, even when it no longer lists it.
    fn recall(&mut self, market: &Market) {
        let _ = market;
    }

    /// Somebody here has traded this market: how it stands is worth asking the venue for.
    fn stake(&mut self, condition: &str) {
        let _ = condition;
    }

    /// What was folded of this token's market cannot be right: its whole books are asked for anew.
    fn resync(&mut self, token: &str) {
        let _ = token;
    }

    /// Nothing has been heard of these tokens for long: the venue may have lost their subscriptions without a word, so
    /// their books are asked for (upstream.md §5).
    fn look(&mut self, tokens: &[&str]) {
        let _ = tokens;
    }

    /// The venue tells nothing of this token's market any more: it is subscribed anew.
    fn resubscribe(&mut self, token: &str) {
        let _ = token;
    }

    /// Which of its venues are out (execution.md §10), and whether those are all. Never in a recording.
    fn outages(&self, server_now: Timestamp) -> Outages {
        let _ = server_now;
        Outages::default()
    }

    /// Whether something has come since the last poll.
    fn has_news(&self) -> bool {
        false
    }

    /// SHA-256 of the first line of the recording: its identity, for the journal. `None` where there is none (yet).
    fn first_line(&self) -> Option<[u8; 32]> {
        None
    }

    /// Whether the age of a quote counts on server time from the poll that brought it (live, synthetic, a followed
    /// tape) or on venue time (any other replay).
    fn ages_on_server_time(&self) -> bool {
        !self.drives_clock()
    }

    /// How it goes with the venue, for health answers and metrics.
    fn upstream(&self) -> Upstream {
        Upstream::default()
    }
}

/// Venues of which no connection is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    pub polymarket: bool,
    pub kalshi: bool,
    /// There is no other.
    pub all: bool,
    /// None of them has shown life since the start.
    pub unheard: bool,
}

impl Outages {
    /// Whether this one is out.
    pub fn of(&self, origin: Origin) -> bool {
        match origin {
            Origin::Polymarket => self.polymarket,
            Origin::Kalshi => self.kalshi,
        }
    }
}

/// How it goes with a venue: written by its threads, read by anyone.
#[derive(Clone, Default)]
pub struct Upstream {
    /// The connections, by live venue.
    pub venues: Vec<(Origin, Arc<Health>)>,
    /// What was dropped, by kind; `None` where nothing is translated.
    pub skips: Option<Arc<Skips>>,
    /// What is recorded of it, where it is.
    pub recording: Option<Arc<live::recorder::Figures>>,
    /// Where the recording stands that is replayed, if one is.
    pub playback: Option<Arc<Playback>>,
}

/// Updates that one message of the venue carried; applied together, then published. A message that came to nothing
/// is handed out as well, for it shows that its connection lives.
pub struct Frame<'a> {
    /// Connection it came on; its latest frame is the proof of life of its tokens. [`NO_CONNECTION`] for what came on
    /// none: the passing of time in a recording.
    pub connection: u8,
    /// Venue time of arrival; never goes backwards.
    pub received: Timestamp,
    /// It was asked for on behalf of its connection: a proof of life of the tokens that it names, and of no others. A
    /// recording has none: there every line is one of its whole connection (execution.md §10).
    pub is_answer: bool,
    pub updates: &'a [FeedUpdate],
}

/// Number of no connection.
pub const NO_CONNECTION: u8 = u8::MAX;

/// Which venue to open, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueConfig {
    pub kind: VenueKind,
    /// Of the synthetic venue: the same seed is the same world.
    pub seed: u64,
    /// Of a replay: a file, or a folder of files (upstream.md §7). Empty: none is named.
    pub tape: PathBuf,
    pub speed: Speed,
    /// Read the tape as it grows; `speed` is then without meaning.
    pub follow: bool,
    /// How many times as often the synthetic books change as at 1, from 1 to [`synthetic::LIVELINESS_MAX`].
    pub liveliness: u64,
    /// Whether a data directory may be used with several venues.
    pub mix: bool,
    /// Of the configuration (`[fees.category_map]`).
    pub categories: Names,
    /// Of live venues.
    pub live: adapters::Settings,
}

impl VenueConfig {
    /// Whether the venue could be opened as far as its settings go; asked before anything is made.
    ///
    /// # Errors
    /// [`VenueError::NoTape`], [`VenueError::NothingToRecord`].
    pub fn check(&self) -> Result<(), VenueError> {
        let is_live = matches!(self.kind, VenueKind::Live { .. });
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
    /// The real venues, one or both.
    Live {
        polymarket: bool,
        kalshi: bool,
    },
}

impl VenueKind {
    /// The live venues among them.
    pub fn origins(self) -> Vec<Origin> {
        let VenueKind::Live { polymarket, kalshi } = self else { return Vec::new() };
        [(polymarket, Origin::Polymarket), (kalshi, Origin::Kalshi)]
            .into_iter()
            .filter_map(|(wanted, origin)| wanted.then_some(origin))
            .collect()
    }
}

impl std::fmt::Display for VenueKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VenueKind::Synthetic => f.write_str("synthetic"),
            VenueKind::Replay => f.write_str("replay"),
            live => f.write_str(&live.origins().iter().map(|origin| origin.name()).collect::<Vec<_>>().join(",")),
        }
    }
}

impl std::str::FromStr for VenueKind {
    type Err = String;

    /// `synthetic`, `replay`, or live venues separated by commas.
    fn from_str(names: &str) -> Result<VenueKind, String> {
        let wrong = || {
            format!("a venue is `synthetic`, `replay`, `polymarket`, `kalshi`, or `polymarket,kalshi`, not {names:?}")
        };
        match names {
            "synthetic" => return Ok(VenueKind::Synthetic),
            "replay" => return Ok(VenueKind::Replay),
            _ => {}
        }
        let (mut polymarket, mut kalshi) = (false, false);
        for name in names.split(',') {
            let wanted = match Origin::named(name.trim()).ok_or_else(wrong)? {
                Origin::Polymarket => &mut polymarket,
                Origin::Kalshi => &mut kalshi,
            };
            if std::mem::replace(wanted, true) {
                return Err(wrong());
            }
        }
        Ok(VenueKind::Live { polymarket, kalshi })
    }
}

/// Why a venue cannot be opened.
#[derive(Debug)]
pub enum VenueError {
    /// A replay of nothing.
    NoTape,
    /// A recording of what is no live venue.
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
                write!(
                    f,
                    "venue.record: only live venues are recorded (polymarket, kalshi, or polymarket,kalshi), not {kind}"
                )
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
        VenueKind::Replay => Box::new(
            Replay::open(&config.tape, config.speed, config.follow, &config.categories).map_err(VenueError::Tape)?,
        ),
        VenueKind::Live { .. } => Box::new(
            Live::start(&config.kind.origins(), config.live.clone(), &config.categories, clock.clone())
                .map_err(VenueError::Live)?,
        ),
    })
}

/// The segments of a URL's path, without scheme, host, query and empty ones: whatever prefix a recording kept, the
/// last segments say what was asked.
fn rest_path(url: &str) -> Vec<&str> {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let path = url.split_once("://").map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}
