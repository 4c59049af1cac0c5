//! What alerts are about, as kinds and as sets of kinds.

use crate::bytes::leaf;
use wincode::{SchemaRead, SchemaWrite};

leaf! { AlertKind, AlertKinds }

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum AlertKind {
    OrderFilled,
    OrderPartiallyFilled,
    OrderCancelled,
    OrderExpired,
    PositionSettled,
    MarketResolvedWatch,
    DailyLimitReached,
    LowBalance,
    KeyCreated,
    KeyRotated,
    BacktestFinished,
    SystemNotice,
}

/// A set of kinds: bit n is the kind with number n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct AlertKinds(pub u16);

impl AlertKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [AlertKind; 12] = [
        AlertKind::OrderFilled,
        AlertKind::OrderPartiallyFilled,
        AlertKind::OrderCancelled,
        AlertKind::OrderExpired,
        AlertKind::PositionSettled,
        AlertKind::MarketResolvedWatch,
        AlertKind::DailyLimitReached,
        AlertKind::LowBalance,
        AlertKind::KeyCreated,
        AlertKind::KeyRotated,
        AlertKind::BacktestFinished,
        AlertKind::SystemNotice,
    ];
}

impl AlertKinds {
    pub const ALL: AlertKinds = AlertKinds((1 << AlertKind::ALL.len()) - 1);
    /// Those that go by mail unless the user chooses otherwise.
    pub const BY_MAIL: AlertKinds =
        AlertKinds::of(&[AlertKind::KeyCreated, AlertKind::KeyRotated, AlertKind::SystemNotice]);

    pub const fn of(kinds: &[AlertKind]) -> AlertKinds {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u16;
            at += 1;
        }
        AlertKinds(bits)
    }

    pub fn contains(self, kind: AlertKind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    /// These and those.
    pub fn with(self, others: AlertKinds) -> AlertKinds {
        AlertKinds(self.0 | others.0)
    }

    /// These without those.
    pub fn without(self, others: AlertKinds) -> AlertKinds {
        AlertKinds(self.0 & !others.0)
    }

    /// Its kinds, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = AlertKind> {
        AlertKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}
