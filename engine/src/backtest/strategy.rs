//! The strategy of a back-test: what it trades, and the conditions of entering and leaving (gateway/docs/simulation.md
//! §6).

use super::fill::FillModel;
use crate::amount::{Cash, Price, Qty};
use crate::order::Side;
use std::cmp::Ordering;

/// Most conditions of entering, and of leaving.
pub const PREDICATES_MAX: usize = 16;

/// What a strategy does in each of its markets. It holds at most one position in a market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// SELL buys the other token: there are no short positions.
    pub side: Side,
    /// Label of the outcome, matched in any case.
    pub outcome: String,
    /// Shares of an entry; more than 0.
    pub size: Qty,
    pub model: FillModel,
    /// All must hold; without one, the first tick enters.
    pub entry: Vec<Predicate>,
    /// All must hold; without one, the position is held to the end.
    pub exit: Vec<Predicate>,
}

/// A comparison of a figure of the book with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    pub field: Field,
    pub operator: Operator,
    pub value: Threshold,
}

/// A constant in units of 10⁻¹²: below 10³⁰ in magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(pub i128);

/// A figure of the traded token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The price that the next order takes: the best ask to enter, the best bid to leave.
    Price,
    /// The mean of the best prices.
    Mid,
    BestBid,
    BestAsk,
    Spread,
    /// Shares on the side that the next order takes.
    Depth,
    /// Hours until the venue ends the market.
    TimeToResolutionHours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

/// Whether the strategy is about to enter or to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    Enter,
    Leave,
}

/// What is known of a token at a tick. Depths are read only where a predicate needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quote {
    pub bid: Option<Price>,
    pub ask: Option<Price>,
    pub bid_depth: Option<Qty>,
    pub ask_depth: Option<Qty>,
    /// Microseconds until the market ends; negative after it.
    pub to_resolution: Option<i64>,
}

impl Field {
    pub const ALL: [Field; 7] = [
        Field::Price,
        Field::Mid,
        Field::BestBid,
        Field::BestAsk,
        Field::Spread,
        Field::Depth,
        Field::TimeToResolutionHours,
    ];

    /// The word of a request.
    pub fn name(self) -> &'static str {
        match self {
            Field::Price => "price",
            Field::Mid => "mid",
            Field::BestBid => "best_bid",
            Field::BestAsk => "best_ask",
            Field::Spread => "spread",
            Field::Depth => "depth",
            Field::TimeToResolutionHours => "time_to_resolution_hours",
        }
    }
}

impl Operator {
    pub const ALL: [Operator; 5] =
        [Operator::Less, Operator::LessOrEqual, Operator::Greater, Operator::GreaterOrEqual, Operator::Equal];

    /// The word of a request.
    pub fn name(self) -> &'static str {
        match self {
            Operator::Less => "lt",
            Operator::LessOrEqual => "lte",
            Operator::Greater => "gt",
            Operator::GreaterOrEqual => "gte",
            Operator::Equal => "eq",
        }
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Operator::Less => ordering.is_lt(),
            Operator::LessOrEqual => ordering.is_le(),
            Operator::Greater => ordering.is_gt(),
            Operator::GreaterOrEqual => ordering.is_ge(),
            Operator::Equal => ordering.is_eq(),
        }
    }
}

/// Units of a threshold in one unit of each amount.
const PER_PRICE: i128 = 100_000_000;
const PER_MICRO: i128 = 1_000_000;
/// A microsecond is 1/3.6·10⁹ hours: 2 500/9 units of a threshold.
const HOUR_NUMERATOR: i128 = 2_500;
const HOUR_DENOMINATOR: i128 = 9;

impl Predicate {
    /// Whether it holds; one about an unknown figure does not.
    pub fn holds(&self, next: Move, quote: &Quote) -> bool {
        self.compared(next, quote).is_some_and(|ordering| self.operator.holds(ordering))
    }

    /// The figure compared with the constant, exactly.
    fn compared(&self, next: Move, quote: &Quote) -> Option<Ordering> {
        let price = |price: Option<Price>| Some(i128::from(price?.0) * PER_PRICE);
        let figure = match (self.field, next) {
            (Field::Price, Move::Enter) | (Field::BestAsk, _) => price(quote.ask)?,
            (Field::Price, Move::Leave) | (Field::BestBid, _) => price(quote.bid)?,
            (Field::Mid, _) => i128::from(quote.mid()?.0) * PER_MICRO,
            (Field::Spread, _) => price(quote.ask)? - price(quote.bid)?,
            (Field::Depth, Move::Enter) => i128::from(quote.ask_depth?.0) * PER_MICRO,
            (Field::Depth, Move::Leave) => i128::from(quote.bid_depth?.0) * PER_MICRO,
            (Field::TimeToResolutionHours, _) => {
                let micros = i128::from(quote.to_resolution?);
                return Some((micros * HOUR_NUMERATOR).cmp(&(self.value.0 * HOUR_DENOMINATOR)));
            }
        };
        Some(figure.cmp(&self.value.0))
    }
}

impl Quote {
    /// The mean of the best prices in 10⁻⁶ USD, exact; `None` when a side is empty.
    pub fn mid(&self) -> Option<Cash> {
        Some(Cash((i64::from(self.bid?.0) + i64::from(self.ask?.0)) * 50))
    }
}

impl Strategy {
    /// Whether the strategy wants to make this move now.
    pub fn wants(&self, next: Move, quote: &Quote) -> bool {
        match next {
            Move::Enter => self.entry.iter().all(|predicate| predicate.holds(next, quote)),
            Move::Leave => !self.exit.is_empty() && self.exit.iter().all(|predicate| predicate.holds(next, quote)),
        }
    }

    /// Whether a decision needs the size of the whole book.
    pub fn needs_depth(&self) -> bool {
        self.needs(Field::Depth)
    }

    /// Whether a decision needs the time to the end of the market, which differs from tick to tick.
    pub fn needs_time(&self) -> bool {
        self.needs(Field::TimeToResolutionHours)
    }

    fn needs(&self, field: Field) -> bool {
        self.entry.iter().chain(&self.exit).any(|predicate| predicate.field == field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: i128 = 1_000_000_000_000;

    fn quote() -> Quote {
        Quote {
            bid: Some(Price(3_000)),
            ask: Some(Price(3_101)),
            bid_depth: Some(Qty(150_500_000)),
            ask_depth: Some(Qty(1)),
            to_resolution: Some(5_400_000_000),
        }
    }

    #[test]
    fn fields_are_compared_exactly() {
        use Field::{BestAsk, BestBid, Depth, Mid, Price, Spread, TimeToResolutionHours};
        use Move::{Enter, Leave};
        // The figure in units of a threshold; the next unit below and above differ.
        let rows = [
            (Price, Enter, 310_100_000_000),
            (Price, Leave, 300_000_000_000),
            (BestBid, Enter, 300_000_000_000),
            (BestAsk, Leave, 310_100_000_000),
            (Mid, Enter, 305_050_000_000),
            (Spread, Leave, 10_100_000_000),
            (Depth, Enter, 1_000_000),
            (Depth, Leave, 150 * UNIT + UNIT / 2),
            (TimeToResolutionHours, Enter, UNIT + UNIT / 2),
        ];
        let mut count = 0;
        for (field, next, figure) in rows {
            for (value, holds) in [
                (figure - 1, [false, false, true, true, false]),
                (figure, [false, true, false, true, true]),
                (figure + 1, [true, true, false, false, false]),
                (10_i128.pow(30) - 1, [true, true, false, false, false]),
                (1 - 10_i128.pow(30), [false, false, true, true, false]),
            ] {
                for (operator, holds) in Operator::ALL.into_iter().zip(holds) {
                    let predicate = Predicate { field, operator, value: Threshold(value) };
                    assert_eq!(predicate.holds(next, &quote()), holds, "{predicate:?} {next:?}");
                    count += 1;
                }
            }
        }
        println!("predicates: {count} cases");
    }

    #[test]
    fn an_unknown_figure_holds_nothing() {
        let mut count = 0;
        for field in Field::ALL {
            for operator in Operator::ALL {
                for next in [Move::Enter, Move::Leave] {
                    let predicate = Predicate { field, operator, value: Threshold(0) };
                    assert!(!predicate.holds(next, &Quote::default()), "{predicate:?}");
                    count += 1;
                }
            }
        }
        // After the end, and with a crossed book, figures are negative.
        let past = Quote { to_resolution: Some(-1), bid: Some(Price(2)), ask: Some(Price(1)), ..Quote::default() };
        for field in [Field::TimeToResolutionHours, Field::Spread] {
            let below = Predicate { field, operator: Operator::Less, value: Threshold(0) };
            assert!(below.holds(Move::Enter, &past), "{field:?}");
        }
        println!("unknown figures: {} cases", count + 2);
    }

    #[test]
    fn all_conditions_must_hold_and_none_means_first_tick_and_never() {
        let at_most = |cents: i128| Predicate {
            field: Field::Price,
            operator: Operator::LessOrEqual,
            value: Threshold(cents * UNIT / 100),
        };
        let with = |entry: &[Predicate], exit: &[Predicate]| Strategy {
            side: Side::Buy,
            outcome: "Yes".to_owned(),
            size: Qty::SHARE,
            model: FillModel::DepthWalk,
            entry: entry.to_vec(),
            exit: exit.to_vec(),
        };
        // conditions; whether it enters, whether it leaves
        for (conditions, enters, leaves) in [
            (&[][..], true, false),
            (&[at_most(32)], true, true),
            (&[at_most(32), at_most(31)], false, true),
            (&[at_most(32), at_most(29)], false, false),
        ] {
            let strategy = with(conditions, conditions);
            let wants = [Move::Enter, Move::Leave].map(|next| strategy.wants(next, &quote()));
            assert_eq!(wants, [enters, leaves], "{conditions:?}");
        }
        let of = |field| Predicate { field, operator: Operator::Greater, value: Threshold(0) };
        let (deep, late) = (of(Field::Depth), of(Field::TimeToResolutionHours));
        for (entry, exit, needs) in [
            (&[at_most(1)][..], &[][..], (false, false)),
            (&[], &[deep], (true, false)),
            (&[late], &[], (false, true)),
            (&[late], &[at_most(1), deep], (true, true)),
        ] {
            let strategy = with(entry, exit);
            assert_eq!((strategy.needs_depth(), strategy.needs_time()), needs, "{strategy:?}");
        }
    }

    #[test]
    fn fields_and_operators_have_words() {
        let names = Field::ALL.map(Field::name);
        let expected = ["price", "mid", "best_bid", "best_ask", "spread", "depth", "time_to_resolution_hours"];
        assert_eq!(names, expected);
        assert_eq!(Operator::ALL.map(Operator::name), ["lt", "lte", "gt", "gte", "eq"]);
    }
}
