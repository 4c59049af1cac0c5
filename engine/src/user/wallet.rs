//! A wallet: cash and what of it is set aside. Its positions are the user's positions with its id.

use crate::amount::Cash;
use crate::id::WalletId;
use crate::mutation::bytes::row;
use crate::time::Timestamp;
use bincode::{Decode, Encode};
use wincode::{SchemaRead, SchemaWrite};

/// Wallet kinds (account.md §1.1).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
pub enum WalletKind {
    Main,
    Api,
    Sandbox,
    Competition,
}

/// A wallet as it stands. Its balances change by postings only ([`super::ledger`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wallet {
    pub id: WalletId,
    pub kind: WalletKind,
    pub label: Option<Box<str>>,
    /// Cash at creation or at the last reset.
    pub baseline: Cash,
    /// Opening baseline ± fills ± fees + payouts.
    pub cash: Cash,
    /// Σ of the reservations of its open BUY orders.
    pub reserved: Cash,
    pub generation: u32,
    pub parent: Option<WalletId>,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
}

row!(Wallet { id, kind, label, baseline, cash, reserved, generation, parent, created_at, archived_at });

impl Wallet {
    /// What can be spent.
    pub fn available(&self) -> Cash {
        self.cash - self.reserved
    }

    pub fn is_active(&self) -> bool {
        self.archived_at.is_none()
    }
}
