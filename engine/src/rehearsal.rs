//! What a rehearsal of the venue's checks finds in signed orders, and the addresses that are declared for it
//! (gateway/docs/rehearsal.md). These are values of facts: nothing here decides about an order.

use crate::bytes::leaf;
use crate::describe::record;
use crate::id::OrderId;
use wincode::{SchemaRead, SchemaWrite};

leaf! { DeclaredAddress }

/// A rule of the rehearsal, by its number in gateway/docs/rehearsal.md §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Rule {
    /// Not a rule: every order that was looked at, with the worst class of its findings.
    Orders,
    S01,
    S02,
    S03,
    S04,
    S05,
    S06,
    S07,
    S08,
    S09,
    S10,
    S11,
    S12,
    S13,
    S14,
    S15,
    S16,
    S17,
    S18,
}

/// What the venue would do with an order by a rule, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Class {
    /// It accepts it.
    Clean,
    /// It cannot be known without the chain.
    Unverifiable,
    /// It depends on the account at the venue, or on a rule that the venue does not document.
    Depends,
    /// It refuses it.
    Refused,
}

/// What a closer look at an order showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Diagnosis {
    /// The rule says it all.
    Plain,
    /// The order has the fields of the first generation.
    FirstGeneration,
    /// The order has the fields of the second generation.
    SecondGeneration,
    /// Signed for the exchange of markets with, or without, the neg-risk flag.
    OtherExchange,
    /// Signed for the test network.
    OtherChain,
    /// Signed for both the other exchange and the test network.
    OtherExchangeAndChain,
    /// Signed for the first version of the exchange.
    FirstVersion,
    /// Signed for the third version of the exchange.
    ThirdVersion,
    /// The signature is not of the length of its type, or not hexadecimal.
    Length,
    /// The signature is the higher one of its two forms.
    HighS,
    /// The signature is not a point of the curve, or its recovery byte is unknown.
    NoPoint,
    /// Another address, or another order, was signed.
    OtherSigner,
    /// The order has a field that cannot be hashed.
    Fields,
    /// Maker and signer differ.
    MakerIsNotSigner,
    /// The wallet is declared with another owner.
    OtherOwner,
    /// Neither the wallet's address nor a declaration shows its owner.
    NoOwner,
    /// A session key signed for the wallet.
    SessionKey,
    /// The signed order in the signature is not this one.
    OtherContents,
    /// The account was not made by the signature of an address.
    NoAddress,
    /// The header is missing.
    NoHeader,
    /// The passphrase is not that of the key.
    Passphrase,
    /// The header's time is too far away.
    Time,
}

/// Orders of a key with the same finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    pub class: Class,
    /// That of the last order.
    pub diagnosis: Diagnosis,
    /// At least one.
    pub count: u32,
    /// The last one that has a row.
    pub order: Option<OrderId>,
}

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum AddressKind {
    /// An account with a key of its own.
    Eoa,
    Proxy,
    Safe,
    Deposit,
}

record! {
    (Copy)
    /// What an administrator declares about an address.
    pub struct DeclaredAddress {
        pub kind: AddressKind,
        /// The address whose key signs for it.
        pub owner: Option<[u8; 20]>,
        /// The exchange may spend what it holds.
        pub exchange: bool,
        /// The exchange of markets with the neg-risk flag may.
        pub neg_risk: bool,
    }
}

/// Addresses that can be declared.
pub const ADDRESSES_MAX: usize = 100_000;
