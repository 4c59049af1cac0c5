//! Who signed an order of the second generation, and for which exchange (rules S03 to S05 of gateway/docs/rehearsal.md §2).
//!
//! Keys sign the hash of the order (types 0 to 2). A deposit wallet is a contract: its owner signs that the wallet signs
//! (type 3, ERC-7739), and the signature repeats what that is about:
//!
//! ```text
//! signature = r ‖ s ‖ v ‖ domain separator of the exchange ‖ hash of the order's fields ‖ type of an order ‖ its length
//! ```

use super::super::order_hash::{FIRST_EXCHANGES, ORDER_TYPE, POLYGON, SECOND_EXCHANGES, digest, domain};
use super::super::signature::{Address, NoSigner, hexadecimal, keccak, signer, word};
use engine::rehearsal::Diagnosis;
use std::sync::LazyLock;

/// The venue's test network.
const AMOY: u64 = 80_002;
/// The exchange of the third version, and the same on the test network.
const THIRD_EXCHANGE: &[u8] = b"0xe3333700ca9d93003f00f0f71f8515005f6c00aa";
const THIRD_EXCHANGE_OF_AMOY: &[u8] = b"0x9fe6e61422adb6f610d8597f9684b16912d50c3d";
const FIRST_EXCHANGE_OF_AMOY: &[u8] = b"0xdfe02eb6733538f8ea35d585af8de5958ad99e40";
/// Bytes of a signature of a key: r, s and v.
const SIGNATURE_BYTES: usize = 65;
/// Bytes of a signature of a deposit wallet.
const WRAPPED_BYTES: usize = SIGNATURE_BYTES + 32 + 32 + ORDER_TYPE.len() + 2;
/// A longer text is not a signature of any type; it is not decoded.
const SIGNATURE_CHARS_MAX: usize = 4_096;
/// A signature that a session key made for a deposit wallet ends with these, 16 times.
const OF_SESSION_KEY: [u8; 2] = [0x64, 0x92];

/// An exchange for which orders are signed.
struct Exchange {
    domain: [u8; 32],
    version: u8,
    chain: u64,
    is_neg_risk: bool,
}

/// The exchanges that are tried when an order is not signed for its own, the two of the venue first.
static EXCHANGES: LazyLock<Vec<Exchange>> = LazyLock::new(|| {
    let exchange = |version: u8, chain, contract: &[u8], is_neg_risk| Exchange {
        domain: domain(&[b'0' + version], chain, contract),
        version,
        chain,
        is_neg_risk,
    };
    let mut known = Vec::new();
    for chain in [POLYGON, AMOY] {
        for (contract, is_neg_risk) in SECOND_EXCHANGES.into_iter().zip([false, true]) {
            known.push(exchange(2, chain, contract, is_neg_risk));
        }
    }
    for (contract, is_neg_risk) in FIRST_EXCHANGES.into_iter().zip([false, true]) {
        known.push(exchange(1, POLYGON, contract, is_neg_risk));
    }
    known.push(exchange(1, AMOY, FIRST_EXCHANGE_OF_AMOY, false));
    known.push(exchange(1, AMOY, FIRST_EXCHANGES[1], true));
    known.push(exchange(3, POLYGON, THIRD_EXCHANGE, false));
    known.push(exchange(3, AMOY, THIRD_EXCHANGE_OF_AMOY, false));
    known
});

static DEPOSIT_WALLET: LazyLock<[[u8; 32]; 3]> = LazyLock::new(|| {
    let kind = concat!(
        "TypedDataSign(Order contents,string name,string version,uint256 chainId,",
        "address verifyingContract,bytes32 salt)"
    );
    [keccak(&[kind.as_bytes(), ORDER_TYPE.as_bytes()]), keccak(&[b"DepositWallet"]), keccak(&[b"1"])]
});

impl Exchange {
    /// That of the venue for a market.
    fn of(is_neg_risk: bool) -> &'static Exchange {
        &EXCHANGES[usize::from(is_neg_risk)]
    }

    /// What is wrong with an order for this exchange; `None`: it is the right one.
    fn diagnosis(&self, is_neg_risk: bool) -> Option<Diagnosis> {
        match (self.version, self.chain == POLYGON, self.is_neg_risk == is_neg_risk) {
            (1, _, _) => Some(Diagnosis::FirstVersion),
            (3, _, _) => Some(Diagnosis::ThirdVersion),
            (_, true, true) => None,
            (_, true, false) => Some(Diagnosis::OtherExchange),
            (_, false, true) => Some(Diagnosis::OtherChain),
            (_, false, false) => Some(Diagnosis::OtherExchangeAndChain),
        }
    }
}

impl From<NoSigner> for Diagnosis {
    fn from(why: NoSigner) -> Diagnosis {
        match why {
            NoSigner::HighS => Diagnosis::HighS,
            NoSigner::NoPoint => Diagnosis::NoPoint,
        }
    }
}

/// Checks the signature of a key (types 0 to 2) over the fields with this hash.
///
/// # Errors
/// What is wrong with it.
pub fn check(text: &str, contents: &[u8; 32], expected: &Address, is_neg_risk: bool) -> Result<(), Diagnosis> {
    let signature: [u8; SIGNATURE_BYTES] = hexadecimal(text.as_bytes()).ok_or(Diagnosis::Length)?;
    let signed_for = |exchange: &Exchange| signer(&signature, &digest(&exchange.domain, contents));
    if signed_for(Exchange::of(is_neg_risk))? == *expected {
        return Ok(());
    }
    let other = EXCHANGES.iter().find(|exchange| signed_for(exchange) == Ok(*expected));
    Err(other.and_then(|exchange| exchange.diagnosis(is_neg_risk)).unwrap_or(Diagnosis::OtherSigner))
}

/// A signature that a deposit wallet accepts if its owner made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapped {
    pub owner: Address,
    /// Signed for another exchange than that of the market.
    pub other: Option<Diagnosis>,
}

/// Reads the signature of a deposit wallet (type 3) over the fields with this hash.
///
/// # Errors
/// What is wrong with it; [`Diagnosis::SessionKey`] if it can only be checked by the wallet.
pub fn unwrap(text: &str, contents: &[u8; 32], wallet: &Address, is_neg_risk: bool) -> Result<Wrapped, Diagnosis> {
    let bytes = decoded(text).ok_or(Diagnosis::Length)?;
    let end = bytes.last_chunk::<32>().filter(|_| bytes.len() > WRAPPED_BYTES);
    if end.is_some_and(|end| end.chunks_exact(2).all(|pair| pair == OF_SESSION_KEY)) {
        return Err(Diagnosis::SessionKey);
    }
    if bytes.len() != WRAPPED_BYTES {
        return Err(Diagnosis::Length);
    }
    let (inner, rest) = bytes.split_first_chunk::<SIGNATURE_BYTES>().ok_or(Diagnosis::Length)?;
    let (signed_domain, rest) = rest.split_first_chunk::<32>().ok_or(Diagnosis::Length)?;
    let (signed_contents, rest) = rest.split_first_chunk::<32>().ok_or(Diagnosis::Length)?;
    let (kind, length) = rest.split_last_chunk::<2>().ok_or(Diagnosis::Length)?;
    if u16::from_be_bytes(*length) as usize != kind.len() {
        return Err(Diagnosis::Length);
    }
    if signed_contents != contents || kind != ORDER_TYPE.as_bytes() {
        return Err(Diagnosis::OtherContents);
    }
    let exchange = EXCHANGES.iter().find(|exchange| exchange.domain == *signed_domain);
    let exchange = exchange.ok_or(Diagnosis::OtherSigner)?;
    let [kind, name, version] = &*DEPOSIT_WALLET;
    let signed = [*kind, *contents, *name, *version, word(&exchange.chain.to_be_bytes()), word(&wallet.0), [0; 32]];
    let owner = signer(inner, &digest(&exchange.domain, &keccak(&[&signed.concat()])))?;
    Ok(Wrapped { owner, other: exchange.diagnosis(is_neg_risk) })
}

/// The bytes of a text of `0x` and hexadecimal digits.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() <= SIGNATURE_CHARS_MAX)?;
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        Some((digit(0)? << 4 | digit(1)?) as u8)
    };
    pairs.iter().map(byte).collect()
}
