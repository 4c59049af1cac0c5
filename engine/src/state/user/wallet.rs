//! A wallet: cash and its reserved part. Its positions are the user's positions with its id.

use crate::amount::Cash;
use crate::bytes::{Bytes, CodecError, leaf};
use crate::id::WalletId;
use crate::time::Timestamp;
use wincode::{SchemaRead, SchemaWrite};

/// Wallet kinds (engine/docs/account.md §4).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum WalletKind {
    Main,
    Api,
    Sandbox,
    Competition,
}

leaf! { WalletKind }

/// A wallet. Its balances change by postings only ([`super::ledger`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wallet {
    pub id: WalletId,
    pub kind: WalletKind,
    /// Cash at creation or at the last reset.
    pub baseline: Cash,
    /// Opening baseline ± fills ± fees + payouts.
    pub cash: Cash,
    /// Σ of the reservations of its open BUY orders.
    pub reserved: Cash,
    pub generation: u32,
    pub created_at: Timestamp,
    /// Boxed: MAIN and API wallets, which each user has, have none of it.
    rare: Option<Box<WalletRare>>,
}

/// Fields that few wallets have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalletRare {
    /// The user's label.
    pub label: Option<Box<str>>,
    /// The wallet that it replaced.
    pub parent: Option<WalletId>,
    /// Time of its archiving.
    pub archived_at: Option<Timestamp>,
}

impl Bytes for Wallet {
    fn put(&self, out: &mut Vec<u8>) {
        let Wallet { id, kind, baseline, cash, reserved, generation, created_at, rare: _ } = self;
        let WalletRare { label, parent, archived_at } = &self.rare();
        id.put(out);
        kind.put(out);
        label.put(out);
        baseline.put(out);
        cash.put(out);
        reserved.put(out);
        generation.put(out);
        parent.put(out);
        created_at.put(out);
        archived_at.put(out);
    }

    fn take(input: &mut &[u8]) -> Result<Wallet, CodecError> {
        let (id, kind, label) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let (baseline, cash, reserved) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let (generation, parent, created_at) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let mut wallet = Wallet { cash, reserved, ..Wallet::new(id, kind, baseline, generation, created_at) };
        wallet.set_rare(WalletRare { label, parent, archived_at: Bytes::take(input)? });
        Ok(wallet)
    }
}

impl Wallet {
    /// A wallet without cash and without rare fields.
    pub fn new(id: WalletId, kind: WalletKind, baseline: Cash, generation: u32, created_at: Timestamp) -> Wallet {
        Wallet { id, kind, baseline, cash: Cash::ZERO, reserved: Cash::ZERO, generation, created_at, rare: None }
    }

    pub(crate) fn rare(&self) -> WalletRare {
        self.rare.as_deref().cloned().unwrap_or_default()
    }

    /// Sets the rare fields.
    pub fn set_rare(&mut self, rare: WalletRare) {
        self.rare = (rare != WalletRare::default()).then(|| Box::new(rare));
    }

    /// The user's label.
    pub fn label(&self) -> Option<&str> {
        self.rare.as_ref()?.label.as_deref()
    }

    /// The wallet that it replaced.
    pub fn parent(&self) -> Option<WalletId> {
        self.rare.as_ref()?.parent
    }

    /// Time of its archiving.
    pub fn archived_at(&self) -> Option<Timestamp> {
        self.rare.as_ref()?.archived_at
    }

    /// The spendable cash.
    pub fn available(&self) -> Cash {
        self.cash - self.reserved
    }

    pub fn is_active(&self) -> bool {
        self.archived_at().is_none()
    }
}
