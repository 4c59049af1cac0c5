//! The operations of one connection: which order is placed for which user, which order is cancelled, what is held.
//! Pure; no bytes and no time.

use super::fate::{Fate, Fates};
use super::instrument::Instrument;
use super::kind::Kind;
use super::model::Sort;
use super::protocol::is_success;
use edge::http::code::{Code, Effect};
use std::collections::VecDeque;
use std::rc::Rc;

/// An order of this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// By the order of sending, from 0.
    pub number: u32,
    /// Its user's place in the keys file.
    pub user: u32,
}

/// An operation that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Rest { order: Own, instrument: u32 },
    Buy { order: Own, instrument: u32 },
    Sell { order: Own, instrument: u32 },
    Cancel { order: Own },
}

impl Action {
    pub fn kind(self) -> Kind {
        match self {
            Action::Rest { .. } => Kind::Rest,
            Action::Buy { .. } | Action::Sell { .. } => Kind::Cross,
            Action::Cancel { .. } => Kind::Cancel,
        }
    }

    /// How it is traded, and the place of its instrument; that of a cancel is not known.
    pub fn traded(self) -> (Sort, u16) {
        match self {
            Action::Rest { instrument, .. } => (Sort::Rest, instrument as u16),
            Action::Buy { instrument, .. } => (Sort::Buy, instrument as u16),
            Action::Sell { instrument, .. } => (Sort::Sell, instrument as u16),
            Action::Cancel { .. } => (Sort::Rest, 0),
        }
    }

    pub fn order(self) -> Own {
        match self {
            Action::Rest { order, .. }
            | Action::Buy { order, .. }
            | Action::Sell { order, .. }
            | Action::Cancel { order } => order,
        }
    }
}

/// What an answer, or a missing answer, means for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It happened.
    Done,
    /// The order exists, and its state is unknown: it was committed too late to report more, or failed later.
    There,
    /// Refused, and the order exists: it was fill or kill, could not be filled, and is cancelled.
    Killed,
    /// Nothing happened. `later`: a retry may succeed.
    Refused { later: bool },
    /// It may have happened.
    Unknown,
}

impl Verdict {
    /// By the status, the error code, and whether the refusal names an order.
    pub fn of(status: u16, code: Option<&str>, order_exists: bool) -> Verdict {
        if is_success(status) {
            return Verdict::Done;
        }
        let known = code.and_then(|text| Code::ALL.iter().find(|code| code.text() == text));
        match known.map(|code| code.effect()) {
            Some(Effect::Done) => Verdict::There,
            Some(Effect::Unknown) => Verdict::Unknown,
            // A 5xx without a known code promises nothing.
            None if status >= 500 => Verdict::Unknown,
            Some(Effect::Nothing) | None if order_exists => Verdict::Killed,
            Some(Effect::Nothing) | None => Verdict::Refused { later: matches!(status, 409 | 429 | 503) },
        }
    }
}

/// The orders of one connection.
pub struct Trader {
    /// Places in the keys file of the users whose orders this connection carries, in turn.
    users: Vec<u32>,
    instruments: Rc<[Instrument]>,
    pub fates: Fates,
    /// Acknowledged and resting, oldest first.
    open: VecDeque<Own>,
    /// Bought and not yet sold, oldest first: user and instrument of each lot.
    held: VecDeque<(u32, u32)>,
    /// Cancels that were sent as resting orders because nothing could be cancelled.
    pub replaced: u64,
}

impl Trader {
    pub fn new(users: Vec<u32>, instruments: Rc<[Instrument]>) -> Trader {
        assert!(!users.is_empty() && !instruments.is_empty(), "at least one user and one instrument");
        let (open, held) = (VecDeque::new(), VecDeque::new());
        Trader { users, instruments, fates: Fates::default(), open, held, replaced: 0 }
    }

    /// The next operation of that kind.
    pub fn next(&mut self, kind: Kind) -> Action {
        match kind {
            Kind::Cancel => match self.open.pop_front() {
                Some(order) => Action::Cancel { order },
                None => {
                    self.replaced += 1;
                    self.next(Kind::Rest)
                }
            },
            Kind::Rest => {
                let order = self.begin(None);
                Action::Rest { order, instrument: self.instrument_of(order) }
            }
            Kind::Cross => match self.held.pop_front() {
                Some((user, instrument)) => Action::Sell { order: self.begin(Some(user)), instrument },
                None => {
                    let order = self.begin(None);
                    Action::Buy { order, instrument: self.instrument_of(order) }
                }
            },
        }
    }

    fn begin(&mut self, user: Option<u32>) -> Own {
        let number = self.fates.begin();
        Own { number, user: user.unwrap_or(self.users[number as usize % self.users.len()]) }
    }

    /// Visits all instruments for each user, too.
    fn instrument_of(&self, order: Own) -> u32 {
        (order.number / self.users.len() as u32 + order.user) % self.instruments.len() as u32
    }

    /// The body of an order up to the client's id.
    pub fn opening(&self, action: Action) -> Option<&[u8]> {
        match action {
            Action::Rest { order, instrument } => Some(self.instruments[instrument as usize].rest(order.number)),
            Action::Buy { instrument, .. } => Some(&self.instruments[instrument as usize].buy),
            Action::Sell { instrument, .. } => Some(&self.instruments[instrument as usize].sell),
            Action::Cancel { .. } => None,
        }
    }

    /// Records the verdict on an operation.
    pub fn record(&mut self, action: Action, verdict: Verdict) {
        if let Action::Cancel { order } = action {
            match verdict {
                Verdict::Done => self.fates.set(order.number, Fate::Cancelled),
                Verdict::Refused { later: true } => self.open.push_back(order),
                Verdict::Refused { later: false } | Verdict::There | Verdict::Killed | Verdict::Unknown => {}
            }
            return;
        }
        let fate = match verdict {
            Verdict::Done | Verdict::There => Fate::Placed,
            Verdict::Refused { .. } => Fate::Refused,
            Verdict::Killed => Fate::Killed,
            Verdict::Unknown => Fate::Unknown,
        };
        self.fates.set(action.order().number, fate);
        match (action, verdict) {
            (Action::Rest { order, .. }, Verdict::Done) => self.open.push_back(order),
            (Action::Buy { order, instrument }, Verdict::Done) => self.held.push_back((order.user, instrument)),
            // The lot is still held.
            (Action::Sell { order, instrument }, Verdict::Refused { later: true }) => {
                self.held.push_back((order.user, instrument));
            }
            _ => {}
        }
    }

    /// Own resting orders, as far as known.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Users whose orders this connection has sent so far.
    pub fn users_used(&self) -> &[u32] {
        &self.users[..self.users.len().min(self.fates.next() as usize)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trader(users: &[u32]) -> Trader {
        let instruments: Vec<_> = (0..3).map(|number| Instrument::sample(&number.to_string())).collect();
        Trader::new(users.to_vec(), instruments.into())
    }

    #[test]
    fn orders_go_round_users_and_instruments() {
        let mut trader = trader(&[4, 9]);
        let mut seen: Vec<_> = Vec::new();
        for number in 0..12 {
            let Action::Rest { order, instrument } = trader.next(Kind::Rest) else { panic!("a rest is a rest") };
            assert_eq!((order.number, order.user), (number, [4, 9][number as usize % 2]));
            seen.push((order.user, instrument));
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 6, "each user trades each instrument: {seen:?}");
        println!("orders: 12 cases");
    }

    #[test]
    fn what_was_acknowledged_is_cancelled_and_sold_once() {
        let mut trader = trader(&[4]);
        // No order is open: a cancel becomes a rest.
        let first = trader.next(Kind::Cancel);
        assert_eq!((first.kind(), trader.replaced), (Kind::Rest, 1));
        trader.record(first, Verdict::Done);
        let cancel = trader.next(Kind::Cancel);
        assert_eq!(cancel, Action::Cancel { order: first.order() });
        assert_eq!(trader.next(Kind::Cancel).kind(), Kind::Rest, "it is already being cancelled");
        trader.record(cancel, Verdict::Refused { later: true });
        assert_eq!(trader.next(Kind::Cancel), cancel, "a cancel that a busy server refused is repeated");
        trader.record(cancel, Verdict::Done);
        let buy = trader.next(Kind::Cross);
        assert!(matches!(buy, Action::Buy { .. }));
        trader.record(buy, Verdict::Done);
        let sell = trader.next(Kind::Cross);
        assert!(matches!(sell, Action::Sell { .. }), "{sell:?}");
        trader.record(sell, Verdict::Refused { later: true });
        let again = trader.next(Kind::Cross);
        assert!(matches!(again, Action::Sell { .. }), "{again:?}");
        trader.record(again, Verdict::There);
        let killed = trader.next(Kind::Cross);
        assert!(matches!(killed, Action::Buy { .. }));
        trader.record(killed, Verdict::Killed);
        assert!(matches!(trader.next(Kind::Cross), Action::Buy { .. }), "nothing was bought");
        assert_eq!(trader.fates.write(), "c1u1p1r1p1k1u1");
        println!("a life of orders: 9 cases");
    }

    #[test]
    fn an_answer_determines_what_happened() {
        let nothing = Verdict::Refused { later: false };
        let cases = [
            (200, None, false, Verdict::Done),
            (400, Some("FOK_ORDER_NOT_FILLED_ERROR"), true, Verdict::Killed),
            (400, Some("FOK_ORDER_NOT_FILLED_ERROR"), false, nothing),
            (400, Some("A_CODE_OF_OTHERS"), true, Verdict::Killed),
            (400, Some("INSUFFICIENT_BALANCE"), false, nothing),
            (401, Some("INVALID_KEY"), false, nothing),
            (404, None, false, nothing),
            (409, Some("TRADE_IN_PROGRESS"), false, Verdict::Refused { later: true }),
            (429, Some("RATE_LIMIT_EXCEEDED"), false, Verdict::Refused { later: true }),
            (500, Some("EXECUTION_ERROR"), false, nothing),
            (500, Some("INTERNAL_ERROR"), false, Verdict::Unknown),
            (500, None, false, Verdict::Unknown),
            (500, Some("ORDER_EXECUTION_FAILED"), false, Verdict::There),
            (502, Some("A_CODE_OF_OTHERS"), false, Verdict::Unknown),
            (502, Some("A_CODE_OF_OTHERS"), true, Verdict::Unknown),
            (503, Some("SERVER_BUSY"), false, Verdict::Refused { later: true }),
            (503, Some("PERSISTENCE_UNKNOWN"), false, Verdict::Unknown),
            (503, Some("PERSISTENCE_UNKNOWN"), true, Verdict::Unknown),
            (503, Some("DEADLINE_OVERSHOT_BUT_PERSISTED"), false, Verdict::There),
            (503, Some("DEADLINE_OVERSHOT_BUT_PERSISTED"), true, Verdict::There),
        ];
        for (status, code, order_exists, expected) in cases {
            assert_eq!(Verdict::of(status, code, order_exists), expected, "{status} {code:?}");
        }
        println!("verdicts: {} cases", cases.len());
    }

    #[test]
    fn users_without_an_order_are_not_checked() {
        let mut trader = trader(&[4, 9, 7]);
        assert!(trader.users_used().is_empty());
        trader.next(Kind::Rest);
        trader.next(Kind::Rest);
        assert_eq!(trader.users_used(), [4, 9]);
        println!("users: 2 cases");
    }
}
