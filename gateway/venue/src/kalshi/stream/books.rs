//! What is said on a socket (upstream.md §4.2): subscriptions of books and trades, and whole books anew where something
//! was missed.
//!
//! The books of a socket are one subscription with one count of messages; so a hole in the numbers loses all of them,
//! and each is asked for by `get_snapshot`. The translator sees the same hole in the same message and marks them stale
//! until those answers come. What only folding finds (a change below zero) comes back as [`Change::Resync`].

use super::commands::{Action, Channel, Command, Commands};
use super::signer::{Signer, path_of};
use crate::kalshi::hot;
use crate::kalshi::translate::{SEQUENCE_GAP, Step, is_book};
use crate::live::{Pace, Talk};
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

/// Markets on one socket. The venue names no bound; this many whole books are a few megabytes, which is what a hole in
/// the numbers costs, and the most markets that are subscribed at all need fifty sockets, far fewer than it allows.
pub const MARKETS_MAX: usize = 1_000;
/// Holes in the numbers before all books were whole again: then the connection is no good.
const HOLES_MAX: u32 = 5;

/// What may change about a socket.
#[derive(Debug)]
pub enum Change {
    Add(Vec<String>),
    Remove(String),
    /// The book of this market cannot be right.
    Resync(String),
    /// Time has passed.
    Look,
}

/// What was heard that the catalogue should be asked about.
#[derive(Debug, PartialEq, Eq)]
pub enum Hint {
    /// A new event, or a market in it.
    Event(String),
    /// This market stands otherwise than before.
    Market(String),
}

/// Whether a socket is open, for those who would ask for its books otherwise.
#[derive(Debug)]
pub struct Line(Mutex<Option<Instant>>);

impl Line {
    /// Not open yet.
    pub fn new() -> Arc<Line> {
        Arc::new(Line(Mutex::new(Some(Instant::now()))))
    }

    /// It is open from now on, or not any more.
    pub fn set_open(&self, open: bool) {
        let mut closed_at = self.0.lock();
        if open {
            *closed_at = None;
        } else {
            closed_at.get_or_insert_with(Instant::now);
        }
    }

    /// How long it has not been open; nothing while it is.
    pub fn closed_for(&self) -> Option<Duration> {
        (*self.0.lock()).map(|since| since.elapsed())
    }
}

/// One socket's conversation.
pub struct Books {
    signer: Arc<Signer>,
    path: String,
    clock: Clock,
    /// How long an answer may take.
    patience: Duration,
    /// How soon the same book is asked for again.
    again_after: Duration,
    /// This one hears what becomes of all markets, too.
    with_lifecycle: bool,
    line: Arc<Line>,
    hints: UnboundedSender<Hint>,
    markets: AHashMap<String, Market>,
    commands: Commands,
    /// Last number by subscription.
    numbers: AHashMap<u64, u64>,
    holes: u32,
    /// The text just heard showed one.
    missed: bool,
    last_text: Instant,
    /// Whose turn it is to be asked for when nothing comes.
    turn: usize,
    /// The venue knows no books on sockets: nothing is to be heard here.
    useless: bool,
}

/// How a market stands on this connection.
#[derive(Clone, Copy, Debug, Default)]
struct Market {
    state: State,
    /// When it was last asked for, and when its book was last lost.
    asked: Option<Instant>,
    lost: Option<Instant>,
}

impl Market {
    fn lose(&mut self) {
        if self.state == State::Followed {
            (self.state, self.lost) = (State::Lost, Some(Instant::now()));
        }
    }

    /// Whether its lost book is to be asked for: soon, but where an answer is on its way, not before that is late.
    fn is_due(&self, again_after: Duration, late_after: Duration) -> bool {
        let Some(asked) = self.asked else { return true };
        let wait = if self.lost.is_some_and(|lost| lost < asked) { late_after } else { again_after };
        asked.elapsed() >= wait
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Its subscription is on the way.
    #[default]
    Awaited,
    /// Its book came.
    Followed,
    /// Its book must come anew.
    Lost,
    /// The venue did not take it.
    Refused,
}

#[derive(Default, Deserialize)]
struct Heard<'a> {
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

/// What is looked at in the messages of all kinds.
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
            line: Line::new(),
            hints,
            markets: AHashMap::new(),
            commands: Commands::default(),
            numbers: AHashMap::new(),
            holes: 0,
            missed: false,
            last_text: Instant::now(),
            turn: 0,
            useless: false,
        }
    }

    /// Whether it is open, for others.
    pub fn line(&self) -> Arc<Line> {
        self.line.clone()
    }

    fn is_open(&self) -> bool {
        self.line.closed_for().is_none()
    }

    fn subscribe(&mut self, tickers: Vec<String>, out: &mut Vec<String>) {
        let now = Instant::now();
        for ticker in &tickers {
            if let Some(market) = self.markets.get_mut(ticker) {
                *market = Market { state: State::Awaited, asked: Some(now), lost: None };
            }
        }
        self.commands.add(Channel::Books, tickers.clone(), out);
        self.commands.add(Channel::Trades, tickers, out);
    }

    fn ask_for_books(&mut self, tickers: Vec<String>, out: &mut Vec<String>) {
        let now = Instant::now();
        for ticker in &tickers {
            if let Some(market) = self.markets.get_mut(ticker) {
                market.asked = Some(now);
            }
        }
        self.commands.snapshots(tickers, out);
    }

    fn with(&self, wanted: impl Fn(&Market) -> bool) -> Vec<String> {
        self.markets.iter().filter(|(_, market)| wanted(market)).map(|(ticker, _)| ticker.clone()).collect()
    }

    /// Lost books that are to be asked for.
    fn lost(&self) -> Vec<String> {
        let late_after = self.patience / 4;
        self.with(|market| market.state == State::Lost && market.is_due(self.again_after, late_after))
    }

    /// Asks for what must come anew and was not asked for just now, and again for what did not come.
    fn look(&mut self, out: &mut Vec<String>) {
        let late = |market: &Market, after: Duration| market.asked.is_none_or(|asked| asked.elapsed() >= after);
        let untaken =
            |market: &Market| matches!(market.state, State::Refused | State::Awaited) && late(market, self.patience);
        let (lost, untaken) = (self.lost(), self.with(untaken));
        self.ask_for_books(lost, out);
        if !untaken.is_empty() {
            self.subscribe(untaken, out);
        }
        if self.last_text.elapsed() >= self.patience / 2 {
            // Nothing may have happened, or nothing comes any more: the answer tells.
            let quiet = |market: &Market| market.state == State::Followed && late(market, self.patience / 4);
            let mut followed = self.markets.iter().filter(|(_, market)| quiet(market));
            self.turn = self.turn.wrapping_add(1);
            let ticker = followed
                .nth(self.turn % self.markets.len().max(1))
                .or_else(|| self.markets.iter().find(|(_, market)| quiet(market)));
            let ticker = ticker.map(|(ticker, _)| ticker.clone());
            self.ask_for_books(ticker.into_iter().collect(), out);
        }
    }

    /// A message that is part of a subscription.
    fn count(
        &mut self,
        kind: &str,
        (sid, seq): (Option<u64>, Option<u64>),
        out: &mut Vec<String>,
    ) -> Result<(), String> {
        let (Some(sid), Some(seq)) = (sid, seq) else { return Ok(()) };
        let Some(step) = Step::from(self.numbers.get(&sid).copied(), seq, kind) else { return Ok(()) };
        self.numbers.insert(sid, seq);
        if step != Step::Hole || !is_book(Some(kind)) {
            return Ok(());
        }
        (self.holes, self.missed) = (self.holes + 1, true);
        if self.holes > HOLES_MAX {
            return Err("holes in the sequence, again and again".into());
        }
        self.markets.values_mut().for_each(Market::lose);
        let lost = self.lost();
        self.ask_for_books(lost, out);
        Ok(())
    }

    fn message(&mut self, heard: &Heard<'_>, out: &mut Vec<String>) -> Result<(), String> {
        let kind = heard.kind.text().unwrap_or_default();
        self.count(&kind, (number(heard.sid), number(heard.seq)), out)?;
        let body: Body<'_> = heard.msg.object().unwrap_or_default();
        match &*kind {
            "orderbook_delta" if body.market_ticker.filled().is_none() => {
                Err("a change that names no market: any book may be wrong".into())
            }
            "orderbook_snapshot" => {
                let market = body.market_ticker.filled().and_then(|ticker| self.markets.get_mut(&*ticker));
                if let Some(market) = market {
                    market.state = State::Followed;
                }
                if self.holes > 0 && self.markets.values().all(|market| market.state != State::Lost) {
                    self.holes = 0;
                }
                Ok(())
            }
            "subscribed" => {
                if let Some(id) = number(heard.id) {
                    self.commands.subscribed(id, number(body.sid), out);
                }
                Ok(())
            }
            "ok" => {
                self.commands.done(number(heard.id));
                Ok(())
            }
            "error" => self.refused(number(heard.id), &body, out),
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
            // These say all there is to them.
            Some("activated" | "deactivated" | "close_date_updated") => {}
            _ => self.hint(body.market_ticker, Hint::Market),
        }
    }

    fn hint(&self, ticker: Loose<'_>, hint: impl FnOnce(String) -> Hint) {
        if let Some(ticker) = ticker.owned() {
            // Nobody listens any more when the process is stopping.
            let _ = self.hints.send(hint(ticker));
        }
    }

    /// An error, by its number (upstream.md §4.2).
    fn refused(&mut self, id: Option<u64>, body: &Body<'_>, out: &mut Vec<String>) -> Result<(), String> {
        const UNKNOWN_SUBSCRIPTION: u64 = 7;
        const ALREADY_SUBSCRIBED: u64 = 6;
        const UNKNOWN_CHANNEL: u64 = 8;
        const AUTHENTICATION: u64 = 9;
        let (code, why) = (number(body.code).unwrap_or_default(), body.msg.text().unwrap_or_default());
        let command = self.commands.take(id);
        tracing::debug!(code, %why, ?command, "the venue refuses a command");
        match (code, command) {
            (AUTHENTICATION, _) => Err(format!("the venue refuses the credentials: {why}")),
            (UNKNOWN_CHANNEL, Some(Command { action: Action::Subscribe(Channel::Books), .. })) => {
                tracing::error!(%why, "the venue sends no books on sockets; they are asked for one by one");
                self.useless = true;
                Err("no books on sockets".into())
            }
            (UNKNOWN_CHANNEL, Some(Command { action: Action::Subscribe(channel), .. })) => {
                tracing::warn!(?channel, %why, "the venue does not have this channel; it goes without");
                self.commands.give_up(channel);
                Ok(())
            }
            // On a connection of its own it begins anew.
            (ALREADY_SUBSCRIBED, Some(Command { action: Action::Subscribe(_), .. })) | (UNKNOWN_SUBSCRIPTION, _) => {
                Err(format!("the venue has other subscriptions than we: {why}"))
            }
            (ALREADY_SUBSCRIBED, Some(Command { action: Action::Add(Channel::Books), tickers })) => {
                self.ask_for_books(tickers, out);
                Ok(())
            }
            (_, Some(command)) => {
                for ticker in self.commands.halved(command, out) {
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

impl Talk for Books {
    type Change = Change;

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.signer.headers(self.clock.now(), &self.path)
    }

    fn open(&mut self, out: &mut Vec<String>) {
        self.line.set_open(true);
        self.commands = Commands::default();
        self.numbers.clear();
        self.holes = 0;
        self.last_text = Instant::now();
        if self.with_lifecycle {
            self.commands.add(Channel::Lifecycle, Vec::new(), out);
        }
        let mut tickers: Vec<String> = self.markets.keys().cloned().collect();
        tickers.sort_unstable();
        self.subscribe(tickers, out);
    }

    fn closed(&mut self) {
        self.line.set_open(false);
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
            // A new connection brings them all.
            Change::Resync(_) | Change::Look if !open => {}
            Change::Resync(ticker) => {
                let Some(market) = self.markets.get_mut(&ticker) else { return };
                market.lose();
                if market.state == State::Lost && market.is_due(self.again_after, self.patience / 4) {
                    self.ask_for_books(vec![ticker], out);
                }
            }
            Change::Look => self.look(out),
        }
    }

    fn hear(&mut self, text: &str, out: &mut Vec<String>) -> Result<(), String> {
        self.last_text = Instant::now();
        if let Some(hot::Frame { kind, sid, seq, .. }) = hot::read(text) {
            // Changes and trades say nothing here but their numbers.
            return self.count(kind, (sid, seq), out);
        }
        // What cannot be read is counted where it is translated; if it was part of a subscription, its number is missed.
        if text.starts_with('[') {
            let parts = Loose::of(text).elements().unwrap_or_default();
            return parts.iter().filter_map(|part| part.object()).try_for_each(|heard| self.message(&heard, out));
        }
        serde_json::from_str(text).map_or(Ok(()), |heard| self.message(&heard, out))
    }

    fn missed(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.missed).then_some(SEQUENCE_GAP)
    }

    fn listens(&self) -> bool {
        !self.markets.is_empty() && !self.useless
    }
}
