//! The protocol of a socket (gateway/docs/live-venues.md §4.2): subscriptions of books and trades, and new snapshots
//! after missed messages.
//!
//! The books of a socket are one subscription with one sequence. A gap in the sequence loses all of them, and each is
//! requested by `get_snapshot`. The translator sees the same gap in the same message and marks the books stale until
//! those responses come. Faults that only folding finds (a size below zero) arrive as [`Change::Resync`].

use super::commands::{Action, Channel, Command, Commands};
use super::signer::{Signer, path_of};
use crate::kalshi::hot;
use crate::kalshi::translate::{SEQUENCE_GAP, Step, is_book};
use crate::live::{Pace, Protocol};
use crate::loose::Loose;
use ahash::AHashMap;
use host::clock::Clock;
use parking_lot::Mutex;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};

/// Markets per socket. The venue documents no limit. A gap in the sequence costs this many snapshots, a few megabytes;
/// the largest number of subscribed markets needs 50 sockets, fewer than the venue allows.
pub const MARKETS_MAX: usize = 1_000;
/// Gaps before all books were complete again that break the connection.
const GAPS_MAX: u32 = 5;

/// A change of the subscriptions of a socket.
#[derive(Debug)]
pub enum Change {
    Add(Vec<String>),
    Remove(String),
    /// The book of this market is wrong.
    Resync(String),
    /// The timer has fired.
    Tick,
}

/// A message that the catalogue must follow up.
#[derive(Debug, PartialEq, Eq)]
pub enum Hint {
    /// A new event, or a market in it.
    Event(String),
    /// The state of this market has changed.
    Market(String),
}

/// Whether a socket is open; read by the poller, which fetches the books of closed ones.
#[derive(Debug)]
pub struct LinkState(Mutex<Option<Instant>>);

impl LinkState {
    /// Not open yet.
    pub fn new() -> Arc<LinkState> {
        Arc::new(LinkState(Mutex::new(Some(Instant::now()))))
    }

    /// Sets whether it is open.
    pub fn set_open(&self, open: bool) {
        let mut closed_at = self.0.lock();
        if open {
            *closed_at = None;
        } else {
            closed_at.get_or_insert_with(Instant::now);
        }
    }

    /// How long it has been closed; `None` while it is open.
    pub fn closed_for(&self) -> Option<Duration> {
        (*self.0.lock()).map(|since| since.elapsed())
    }
}

/// The state of one socket.
pub struct Books {
    signer: Arc<Signer>,
    path: String,
    clock: Clock,
    /// Timeout of a response.
    patience: Duration,
    /// Shortest interval between two requests for the same book.
    again_after: Duration,
    /// Also subscribes to the lifecycle of all markets.
    with_lifecycle: bool,
    link_state: Arc<LinkState>,
    hints: UnboundedSender<Hint>,
    markets: AHashMap<String, Market>,
    commands: Commands,
    /// Last sequence number by subscription.
    numbers: AHashMap<u64, u64>,
    gaps: u32,
    /// The last received text showed a gap.
    missed: bool,
    last_text: Instant,
    /// Which book to request next when nothing arrives.
    turn: usize,
    /// The venue offers no books on sockets, so that the socket is not needed.
    is_unsupported: bool,
}

/// The state of a market on this connection.
#[derive(Clone, Copy, Debug, Default)]
struct Market {
    state: State,
    /// When its book was last requested, and when it was last lost.
    requested_at: Option<Instant>,
    lost: Option<Instant>,
}

impl Market {
    fn lose(&mut self) {
        if self.state == State::Followed {
            (self.state, self.lost) = (State::Lost, Some(Instant::now()));
        }
    }

    /// Whether its lost book is to be requested: after `again_after`, or, while a response is pending, after
    /// `late_after`.
    fn is_due(&self, again_after: Duration, late_after: Duration) -> bool {
        let Some(requested_at) = self.requested_at else { return true };
        let wait = if self.lost.is_some_and(|lost| lost < requested_at) { late_after } else { again_after };
        requested_at.elapsed() >= wait
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The subscription is in flight.
    #[default]
    Awaited,
    /// The snapshot has arrived.
    Followed,
    /// A new snapshot is needed.
    Lost,
    /// The venue refused the subscription.
    Refused,
}

#[derive(Default, Deserialize)]
struct Incoming<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    id: Loose<'a>,
    #[serde(borrow, default)]
    sid: Loose<'a>,
    #[serde(borrow, default)]
    seq: Loose<'a>,
    #[serde(borrow, default)]
    msg: Loose<'a>,
}

/// The fields of messages of all kinds that are used here.
#[derive(Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    market_ticker: Loose<'a>,
    #[serde(borrow, default)]
    event_ticker: Loose<'a>,
    #[serde(borrow, default)]
    event_type: Loose<'a>,
    #[serde(borrow, default)]
    additional_metadata: Loose<'a>,
    #[serde(borrow, default)]
    sid: Loose<'a>,
    #[serde(borrow, default)]
    code: Loose<'a>,
    #[serde(borrow, default)]
    msg: Loose<'a>,
}

fn number(field: Loose<'_>) -> Option<u64> {
    field.text()?.parse().ok()
}

impl Books {
    pub fn new(
        url: &str,
        signer: Arc<Signer>,
        clock: Clock,
        pace: Pace,
        with_lifecycle: bool,
        hints: UnboundedSender<Hint>,
    ) -> Books {
        Books {
            signer,
            path: path_of(url),
            clock,
            patience: pace.silent_after,
            again_after: pace.retry_first,
            with_lifecycle,
            link_state: LinkState::new(),
            hints,
            markets: AHashMap::new(),
            commands: Commands::default(),
            numbers: AHashMap::new(),
            gaps: 0,
            missed: false,
            last_text: Instant::now(),
            turn: 0,
            is_unsupported: false,
        }
    }

    /// The shared state of the connection.
    pub fn link_state(&self) -> Arc<LinkState> {
        self.link_state.clone()
    }

    fn is_open(&self) -> bool {
        self.link_state.closed_for().is_none()
    }

    fn subscribe(&mut self, tickers: Vec<String>, out: &mut Vec<String>) {
        let now = Instant::now();
        for ticker in &tickers {
            if let Some(market) = self.markets.get_mut(ticker) {
                *market = Market { state: State::Awaited, requested_at: Some(now), lost: None };
            }
        }
        self.commands.add(Channel::Books, tickers.clone(), out);
        self.commands.add(Channel::Trades, tickers, out);
    }

    fn request_books(&mut self, tickers: Vec<String>, out: &mut Vec<String>) {
        let now = Instant::now();
        for ticker in &tickers {
            if let Some(market) = self.markets.get_mut(ticker) {
                market.requested_at = Some(now);
            }
        }
        self.commands.snapshots(tickers, out);
    }

    fn with(&self, wanted: impl Fn(&Market) -> bool) -> Vec<String> {
        self.markets.iter().filter(|(_, market)| wanted(market)).map(|(ticker, _)| ticker.clone()).collect()
    }

    /// Lost books whose request is due.
    fn lost(&self) -> Vec<String> {
        let late_after = self.patience / 4;
        self.with(|market| market.state == State::Lost && market.is_due(self.again_after, late_after))
    }

    /// Requests lost books, and repeats subscriptions and requests without a response.
    fn tick(&mut self, out: &mut Vec<String>) {
        let late = |market: &Market, after: Duration| {
            market.requested_at.is_none_or(|requested_at| requested_at.elapsed() >= after)
        };
        let unconfirmed =
            |market: &Market| matches!(market.state, State::Refused | State::Awaited) && late(market, self.patience);
        let (lost, unconfirmed) = (self.lost(), self.with(unconfirmed));
        self.request_books(lost, out);
        if !unconfirmed.is_empty() {
            self.subscribe(unconfirmed, out);
        }
        if self.last_text.elapsed() >= self.patience / 2 {
            // The markets may be calm or the connection dead: the response decides.
            let quiet = |market: &Market| market.state == State::Followed && late(market, self.patience / 4);
            let mut followed = self.markets.iter().filter(|(_, market)| quiet(market));
            self.turn = self.turn.wrapping_add(1);
            let ticker = followed
                .nth(self.turn % self.markets.len().max(1))
                .or_else(|| self.markets.iter().find(|(_, market)| quiet(market)));
            let ticker = ticker.map(|(ticker, _)| ticker.clone());
            self.request_books(ticker.into_iter().collect(), out);
        }
    }

    /// Checks the sequence number of a message.
    fn count(
        &mut self,
        kind: &str,
        (sid, seq): (Option<u64>, Option<u64>),
        out: &mut Vec<String>,
    ) -> Result<(), String> {
        let (Some(sid), Some(seq)) = (sid, seq) else { return Ok(()) };
        let Some(step) = Step::from(self.numbers.get(&sid).copied(), seq, kind) else { return Ok(()) };
        self.numbers.insert(sid, seq);
        if step != Step::Gap || !is_book(Some(kind)) {
            return Ok(());
        }
        (self.gaps, self.missed) = (self.gaps + 1, true);
        if self.gaps > GAPS_MAX {
            return Err("repeated gaps in the sequence".into());
        }
        self.markets.values_mut().for_each(Market::lose);
        let lost = self.lost();
        self.request_books(lost, out);
        Ok(())
    }

    fn message(&mut self, incoming: &Incoming<'_>, out: &mut Vec<String>) -> Result<(), String> {
        let kind = incoming.kind.text().unwrap_or_default();
        self.count(&kind, (number(incoming.sid), number(incoming.seq)), out)?;
        let body: Body<'_> = incoming.msg.object().unwrap_or_default();
        match &*kind {
            "orderbook_delta" if body.market_ticker.filled().is_none() => {
                Err("a change without a market: any book may be wrong".into())
            }
            "orderbook_snapshot" => {
                let market = body.market_ticker.filled().and_then(|ticker| self.markets.get_mut(&*ticker));
                if let Some(market) = market {
                    market.state = State::Followed;
                }
                if self.gaps > 0 && self.markets.values().all(|market| market.state != State::Lost) {
                    self.gaps = 0;
                }
                Ok(())
            }
            "subscribed" => {
                if let Some(id) = number(incoming.id) {
                    self.commands.subscribed(id, number(body.sid), out);
                }
                Ok(())
            }
            "ok" => {
                self.commands.done(number(incoming.id));
                Ok(())
            }
            "error" => self.refused(number(incoming.id), &body, out),
            "market_lifecycle_v2" | "market_lifecycle" => {
                self.lifecycle(&body);
                Ok(())
            }
            "event_lifecycle" => {
                self.hint(body.event_ticker, Hint::Event);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn lifecycle(&self, body: &Body<'_>) {
        match body.event_type.text().as_deref() {
            Some("created") => {
                let created: Body<'_> = body.additional_metadata.object().unwrap_or_default();
                self.hint(created.event_ticker, Hint::Event);
            }
            // These messages are complete.
            Some("activated" | "deactivated" | "close_date_updated") => {}
            _ => self.hint(body.market_ticker, Hint::Market),
        }
    }

    fn hint(&self, ticker: Loose<'_>, hint: impl FnOnce(String) -> Hint) {
        if let Some(ticker) = ticker.owned() {
            // The receiver is gone when the process is stopping.
            let _ = self.hints.send(hint(ticker));
        }
    }

    /// Handles an error by its code (gateway/docs/live-venues.md §4.2).
    fn refused(&mut self, id: Option<u64>, body: &Body<'_>, out: &mut Vec<String>) -> Result<(), String> {
        const UNKNOWN_SUBSCRIPTION: u64 = 7;
        const ALREADY_SUBSCRIBED: u64 = 6;
        const UNKNOWN_CHANNEL: u64 = 8;
        const AUTHENTICATION: u64 = 9;
        let (code, why) = (number(body.code).unwrap_or_default(), body.msg.text().unwrap_or_default());
        let command = self.commands.take(id);
        tracing::debug!(code, %why, ?command, "the venue refused a command");
        match (code, command) {
            (AUTHENTICATION, _) => Err(format!("the venue refused the credentials: {why}")),
            (UNKNOWN_CHANNEL, Some(Command { action: Action::Subscribe(Channel::Books), .. })) => {
                tracing::error!(%why, "the venue offers no books on sockets; books are polled by REST");
                self.is_unsupported = true;
                Err("no books on sockets".into())
            }
            (UNKNOWN_CHANNEL, Some(Command { action: Action::Subscribe(channel), .. })) => {
                tracing::warn!(?channel, %why, "the venue does not offer this channel; it is not subscribed");
                self.commands.give_up(channel);
                Ok(())
            }
            // A new connection starts without subscriptions.
            (ALREADY_SUBSCRIBED, Some(Command { action: Action::Subscribe(_), .. })) | (UNKNOWN_SUBSCRIPTION, _) => {
                Err(format!("the venue's subscriptions differ from those of this connection: {why}"))
            }
            (ALREADY_SUBSCRIBED, Some(Command { action: Action::Add(Channel::Books), tickers })) => {
                self.request_books(tickers, out);
                Ok(())
            }
            (_, Some(command)) => {
                for ticker in self.commands.retry_in_halves(command, out) {
                    if let Some(market) = self.markets.get_mut(&ticker) {
                        market.state = State::Refused;
                    }
                }
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }
}

impl Protocol for Books {
    type Change = Change;

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.signer.headers(self.clock.now(), &self.path)
    }

    fn open(&mut self, out: &mut Vec<String>) {
        self.link_state.set_open(true);
        self.commands = Commands::default();
        self.numbers.clear();
        self.gaps = 0;
        self.last_text = Instant::now();
        if self.with_lifecycle {
            self.commands.add(Channel::Lifecycle, Vec::new(), out);
        }
        let mut tickers: Vec<String> = self.markets.keys().cloned().collect();
        tickers.sort_unstable();
        self.subscribe(tickers, out);
    }

    fn closed(&mut self) {
        self.link_state.set_open(false);
    }

    fn change(&mut self, change: Change, out: &mut Vec<String>) {
        let open = self.is_open();
        match change {
            Change::Add(tickers) => {
                for ticker in &tickers {
                    self.markets.entry(ticker.clone()).or_default();
                }
                if open {
                    self.subscribe(tickers, out);
                }
            }
            Change::Remove(ticker) => {
                if self.markets.remove(&ticker).is_some() && open {
                    self.commands.delete(ticker, out);
                }
            }
            // A new connection brings all snapshots.
            Change::Resync(_) | Change::Tick if !open => {}
            Change::Resync(ticker) => {
                let Some(market) = self.markets.get_mut(&ticker) else { return };
                market.lose();
                if market.state == State::Lost && market.is_due(self.again_after, self.patience / 4) {
                    self.request_books(vec![ticker], out);
                }
            }
            Change::Tick => self.tick(out),
        }
    }

    fn receive(&mut self, text: &str, out: &mut Vec<String>) -> Result<(), String> {
        self.last_text = Instant::now();
        if let Some(hot::Frame { kind, sid, seq, .. }) = hot::read(text) {
            // Only the sequence numbers of changes and trades matter here.
            return self.count(kind, (sid, seq), out);
        }
        // The translator counts what cannot be read; if it was part of a subscription, its number is missing.
        if text.starts_with('[') {
            let parts = Loose::of(text).elements().unwrap_or_default();
            return parts.iter().filter_map(|part| part.object()).try_for_each(|incoming| self.message(&incoming, out));
        }
        serde_json::from_str(text).map_or(Ok(()), |incoming| self.message(&incoming, out))
    }

    fn missed(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.missed).then_some(SEQUENCE_GAP)
    }

    fn is_subscribed(&self) -> bool {
        !self.markets.is_empty() && !self.is_unsupported
    }
}
