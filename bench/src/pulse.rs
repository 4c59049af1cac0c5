//! A venue under remote control: one market, whose book changes when a line on the standard input requests it.
//!
//! The size of the changed level is the time at which the feed received the change, so a reader of its frame can
//! compute how long it was in flight. Both ends are on one machine and read one clock.

use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::{Listing, MarketState};
use engine::time::{MILLISECOND, Timestamp};
use gateway::config::Config;
use std::collections::VecDeque;
use std::fmt;
use std::io::BufRead as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{SystemTime, UNIX_EPOCH};
use venue::{BookSide, Changes, FeedUpdate, Frame, Level, Polled, Venue};

/// The level that changes, below nine constant ones.
pub const BEAT_CENTS: u16 = 40;
/// Best bid and ask in cents, and levels per side.
const BEST: (u16, u16) = (49, 51);
const LEVELS: u16 = 9;
/// A book that is sent as a whole has as many levels as its tick allows.
const WHOLE_LEVELS: u16 = 48;
const LEVEL_SHARES: u64 = 90_000_000;
/// Most changes returned by one poll.
const CHANGES_PER_POLL_MAX: u32 = 256;
/// Sleep of the feed while it is idle.
const REST_US: u64 = 200 * MILLISECOND;

/// Printed when it is told to rest, before the number of changes that the feed has applied since the last time.
pub const APPLIED: &str = "applied ";

/// Times count modulo 1,000 s.
const CIRCLE_US: u64 = 1_000_000_000;

/// Now, as a size: always ten digits, and never with a zero at the end, so that its text has a constant length.
pub fn stamp() -> Qty {
    Qty((CIRCLE_US + micros() % CIRCLE_US) | 1)
}

/// Microseconds since the time that a size states.
pub fn since(stamp: u64) -> u64 {
    let now = micros() % CIRCLE_US;
    // The last bit of a stamp is set: it may be a microsecond ahead.
    (now + 1 + CIRCLE_US - stamp % CIRCLE_US) % CIRCLE_US
}

/// Position of the digits of the time in the text of a frame.
pub fn stamp_in(payload: &[u8]) -> Option<usize> {
    const SIZE: &[u8] = b"\"price\":\"0.40\",\"size\":\"";
    let place = payload.windows(SIZE.len()).position(|window| window == SIZE)? + SIZE.len();
    (payload.len() > place + STAMP_CHARS).then_some(place)
}

/// The time in the text of a frame.
pub fn read_stamp(payload: &[u8]) -> Option<u64> {
    let place = stamp_in(payload)?;
    let digits = payload[place..place + STAMP_CHARS].iter().filter(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| 10 * number + u64::from(digit - b'0')))
}

/// Ten digits and a point.
const STAMP_CHARS: usize = 11;

fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_micros() as u64
}

/// The condition and the tokens of the market.
pub fn condition() -> String {
    format!("0x{:064x}", 1)
}

pub fn tokens() -> [String; 2] {
    [format!("{}1", "7".repeat(75)), format!("{}2", "8".repeat(75))]
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beats {
    /// Changes of a burst.
    pub changes: u32,
    /// Number of bursts, and the time between them.
    pub times: u32,
    pub every_us: u64,
    /// The whole book instead of one level.
    pub whole: bool,
}

impl Beats {
    /// Ends everything requested before.
    pub const REST: Beats = Beats { changes: 0, times: 0, every_us: 0, whole: false };

    /// One burst of this many changes, now.
    pub fn once(changes: u32) -> Beats {
        Beats { changes, times: 1, every_us: 0, whole: false }
    }
}

impl fmt::Display for Beats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.changes, self.times, self.every_us, u8::from(self.whole))
    }
}

impl std::str::FromStr for Beats {
    type Err = ();

    fn from_str(line: &str) -> Result<Beats, ()> {
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| ())?;
        let [changes, times, every_us, whole] = numbers[..] else { return Err(()) };
        Ok(Beats { changes: changes as u32, times: times as u32, every_us, whole: whole != 0 })
    }
}

/// Forwards the requests of the standard input to `to`, and calls `wake` after each.
pub fn listen(to: Sender<Beats>, wake: impl Fn() + Send + 'static) {
    std::thread::spawn(move || {
        for beats in std::io::stdin().lock().lines().map_while(Result::ok).filter_map(|line| line.parse().ok()) {
            if to.send(beats).is_err() {
                return;
            }
            wake();
        }
    });
}

/// Serves this venue until it is killed.
pub fn serve(config: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let (sender, beats) = channel();
    let feed: Arc<OnceLock<Thread>> = Arc::default();
    let sleeper = feed.clone();
    listen(sender, move || {
        if let Some(feed) = sleeper.get() {
            feed.unpark();
        }
    });
    let pulse = Pulse::new(beats, feed);
    Ok(gateway::boot::serve_on(Config::load(Some(config), [])?, Box::new(pulse))?)
}

struct Pulse {
    beats: Receiver<Beats>,
    /// The thread that polls, woken for new requests.
    feed: Arc<OnceLock<Thread>>,
    listed: bool,
    /// The next burst, and when.
    due: Option<(Timestamp, Beats)>,
    /// Requested and not begun.
    waiting: VecDeque<Beats>,
    /// Changes since it last rested.
    applied: u64,
    /// The token whose book changes: created once, as a venue does for its subscriptions.
    token: Arc<str>,
}

impl Pulse {
    fn new(beats: Receiver<Beats>, feed: Arc<OnceLock<Thread>>) -> Pulse {
        let [token, _] = tokens();
        Pulse { beats, feed, listed: false, due: None, waiting: VecDeque::new(), applied: 0, token: token.into() }
    }
}

impl Venue for Pulse {
    fn poll(&mut self, now: Timestamp, _: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        self.feed.get_or_init(std::thread::current);
        let mut show =
            |updates: &[FeedUpdate]| frame(Frame { connection: 0, received: now, is_answer: false, updates });
        if !std::mem::replace(&mut self.listed, true) {
            show(&[FeedUpdate::Listed { listing: Box::new(listing()), state: MarketState::Active }]);
            show(&tokens().map(|token| book(token.into(), LEVELS, Qty::from_shares(LEVEL_SHARES), now)));
        }
        while let Ok(beats) = self.beats.try_recv() {
            if beats == Beats::REST {
                self.due = None;
                self.waiting.clear();
                println!("{APPLIED}{}", std::mem::take(&mut self.applied));
            } else {
                self.waiting.push_back(beats);
            }
        }
        let mut shown = 0;
        while shown < CHANGES_PER_POLL_MAX {
            let Some((at, beats)) = self.due.take().or_else(|| Some((now, self.waiting.pop_front()?))) else { break };
            if at > now {
                self.due = Some((at, beats));
                break;
            }
            for _ in 0..beats.changes {
                let token = self.token.clone();
                let update = match beats.whole {
                    true => book(token, WHOLE_LEVELS, stamp(), now),
                    false => {
                        let levels = Changes::from_slice(&[(BookSide::Bid, Price(100 * BEAT_CENTS), stamp())]);
                        FeedUpdate::BookDelta { token, levels, venue_ts: now }
                    }
                };
                // The feed writes the book before it polls again.
                show(&[update]);
            }
            self.applied += u64::from(beats.changes);
            shown += beats.changes;
            if beats.times > 1 {
                self.due = Some((at.plus(beats.every_us), Beats { times: beats.times - 1, ..beats }));
            }
        }
        let wake_at =
            if shown >= CHANGES_PER_POLL_MAX { now } else { self.due.map_or(now.plus(REST_US), |(at, _)| at) };
        Polled { venue_now: now, wake_at: Some(wake_at) }
    }

    fn drives_clock(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "a pulse".into()
    }
}

/// A book with that size at the level that changes.
fn book(token: Arc<str>, levels: u16, beat: Qty, venue_ts: Timestamp) -> FeedUpdate {
    let size = |cents: u16| if cents == BEAT_CENTS { beat } else { Qty::from_shares(LEVEL_SHARES) };
    let level = |cents: u16| -> Level { (Price(100 * cents), size(cents)) };
    let bids = (0..levels.max(BEST.0 - BEAT_CENTS + 1)).map(|place| level(BEST.0 - place)).collect();
    let asks = (0..levels).map(|place| level(BEST.1 + place)).collect();
    FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, hash: None }
}

fn listing() -> Listing {
    Listing {
        venue: engine::market::terms::Venue::Polymarket,
        condition: condition(),
        tokens: tokens(),
        slug: "pulse".into(),
        ..crate::world::listing(1, TickSize(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_changes_are_carried_out() {
        let beats = Beats { changes: 8, times: 3, every_us: 0, whole: false };
        let (sender, requests) = channel();
        let mut pulse = Pulse::new(requests, Arc::default());
        let poll = |pulse: &mut Pulse, at: u64| {
            let mut kinds = Vec::new();
            let polled = pulse.poll(Timestamp(at), Timestamp(at), &mut |frame| {
                kinds.extend(frame.updates.iter().map(|update| match update {
                    FeedUpdate::Listed { .. } => 'l',
                    FeedUpdate::BookSnapshot { .. } => 'b',
                    FeedUpdate::BookDelta { .. } => 'd',
                    _ => '?',
                }));
            });
            let sleep = polled.wake_at.expect("it returns a time").since(Timestamp(at));
            (kinds.into_iter().collect::<String>(), sleep)
        };
        assert_eq!(poll(&mut pulse, 10), ("lbb".to_owned(), REST_US));
        sender.send(beats.to_string().parse().expect("its own words")).expect("it listens");
        assert_eq!(poll(&mut pulse, 20), ("d".repeat(24), REST_US), "without a pause all of them are due");
        for beats in [Beats { changes: 2, times: 2, every_us: 50, whole: true }, Beats::once(1)] {
            sender.send(beats).expect("it listens");
        }
        assert_eq!(
            [poll(&mut pulse, 30), poll(&mut pulse, 79), poll(&mut pulse, 80)],
            [("bb".into(), 50), ("".into(), 1), ("bbd".into(), REST_US)]
        );
        sender.send(Beats::once(300)).expect("it listens");
        assert_eq!(
            (poll(&mut pulse, 90).1, poll(&mut pulse, 91)),
            (0, (String::new(), REST_US)),
            "a long poll is followed by the next immediately"
        );
        for beats in
            [Beats { times: 9, ..Beats::once(1) }, Beats { every_us: 9, times: 9, ..Beats::once(2) }, Beats::once(3)]
        {
            sender.send(beats).expect("it listens");
        }
        assert_eq!(poll(&mut pulse, 100), ("d".repeat(11), 9));
        assert_eq!(pulse.applied, 24 + 5 + 300 + 11, "the reported changes are counted");
        sender.send(Beats::REST).expect("it listens");
        assert_eq!(poll(&mut pulse, 109), (String::new(), REST_US), "the request was ended");
        assert_eq!(pulse.applied, 0, "it was reported and restarts from zero");
        println!("polls: 11 cases");
    }

    #[test]
    fn a_moment_is_a_size_of_one_length() {
        for _ in 0..10_000 {
            let Qty(stamp) = stamp();
            assert!(stamp % 10 != 0 && stamp.to_string().len() == 10, "{stamp}");
            assert!(since(stamp) < CIRCLE_US / 2, "{stamp}");
        }
        println!("moments: 10000 cases");
    }
}
