//! A wallet: cash and its reserved part. Its positions are the user's positions with its id.

use super::rebates::Rebates;
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
    /// Opening baseline ± fills ± fees + payouts + deposits + rebates.
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
    /// Cash that was bought for it, less what refunds took back.
    pub deposits: Cash,
    /// What it has earned as a maker in this generation.
    pub rebates: Rebates,
}

/// Bits of the last byte before the rare fields.
const IS_ARCHIVED: u8 = 1;
const HAS_DEPOSITS: u8 = 2;
const HAS_REBATES: u8 = 4;

impl Bytes for Wallet {
    fn put(&self, out: &mut Vec<u8>) {
        let Wallet { id, kind, baseline, cash, reserved, generation, created_at, rare: _ } = self;
        let WalletRare { label, parent, archived_at, deposits, rebates } = &self.rare();
        id.put(out);
        kind.put(out);
        label.put(out);
        baseline.put(out);
        cash.put(out);
        reserved.put(out);
        generation.put(out);
        parent.put(out);
        created_at.put(out);
        // As an optional time, whose byte has a bit for each field that few wallets have.
        let has_deposits = *deposits != Cash::ZERO;
        let has_rebates = *rebates != Rebates::default();
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        let shown = bit(has_deposits, HAS_DEPOSITS) | bit(has_rebates, HAS_REBATES);
        out.push(bit(archived_at.is_some(), IS_ARCHIVED) | shown);
        if let Some(at) = archived_at {
            at.put(out);
        }
        if has_deposits {
            deposits.put(out);
        }
        if has_rebates {
            rebates.put(out);
        }
    }

    fn take(input: &mut &[u8]) -> Result<Wallet, CodecError> {
        let (id, kind, label) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let (baseline, cash, reserved) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let (generation, parent, created_at) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let mut wallet = Wallet { cash, reserved, ..Wallet::new(id, kind, baseline, generation, created_at) };
        let (bits, rest) = input.split_first().ok_or(CodecError::Length)?;
        *input = rest;
        if *bits > IS_ARCHIVED | HAS_DEPOSITS | HAS_REBATES {
            return Err(CodecError::Variant);
        }
        let archived_at = if bits & IS_ARCHIVED != 0 { Some(Bytes::take(input)?) } else { None };
        let deposits = if bits & HAS_DEPOSITS != 0 { Bytes::take(input)? } else { Cash::ZERO };
        let rebates = if bits & HAS_REBATES != 0 { Bytes::take(input)? } else { Rebates::default() };
        wallet.set_rare(WalletRare { label, parent, archived_at, deposits, rebates });
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

    /// Cash that was bought for it, less what refunds took back (gateway/docs/billing.md §3).
    pub fn deposits(&self) -> Cash {
        self.rare.as_ref().map_or(Cash::ZERO, |rare| rare.deposits)
    }

    pub(crate) fn set_deposits(&mut self, deposits: Cash) {
        self.set_rare(WalletRare { deposits, ..self.rare() });
    }

    /// What it has earned as a maker in this generation (engine/docs/execution.md §5).
    pub fn rebates(&self) -> Rebates {
        self.rare.as_ref().map_or(Rebates::default(), |rare| rare.rebates)
    }

    pub(crate) fn set_rebates(&mut self, rebates: Rebates) {
        self.set_rare(WalletRare { rebates, ..self.rare() });
    }

    /// What a result is measured from: the opening cash of its generation and the deposits.
    pub fn starting(&self) -> Cash {
        self.baseline + self.deposits()
    }

    /// The spendable cash.
    pub fn available(&self) -> Cash {
        self.cash - self.reserved
    }

    pub fn is_active(&self) -> bool {
        self.archived_at().is_none()
    }
}
