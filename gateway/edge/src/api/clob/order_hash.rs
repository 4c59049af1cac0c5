//! The EIP-712 hash of a signed order: what its signer signed, and the order's id in the strict dialect.
//!
//! ```text
//! hash = keccak256(0x1901 ‖ domain separator ‖ keccak256(type hash ‖ one word of 32 bytes for each field))
//! ```
//!
//! The contract follows from the market's neg-risk flag, the version from the fields that came (`timestamp`: the second,
//! else the first), the chain is Polygon. An order with a field that is missing or out of range has no hash.

use super::signature::{hexadecimal, keccak, number, word};
use std::sync::LazyLock;
use wire::value::Value;

const DOMAIN_TYPE: &[u8] = b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
const DOMAIN_NAME: &[u8] = b"Polymarket CTF Exchange";
/// The chain of the venue.
pub(super) const POLYGON: u64 = 137;
/// The type of an order of the second generation.
pub(super) const ORDER_TYPE: &str = concat!(
    "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,",
    "uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)"
);
/// The exchanges of markets without the neg-risk flag and with it, by generation.
pub(super) const FIRST_EXCHANGES: [&[u8]; 2] =
    [b"0x4bfb41d5b3570defd03c39a9a4d8de6bd8b8982e", b"0xc5d563a36ae78145c45a50134d48a1215220f80a"];
pub(super) const SECOND_EXCHANGES: [&[u8]; 2] =
    [b"0xe111180000d2663c0091e4f400237545b87b996b", b"0xe2222d279d744050d28e00520010520000310f59"];

/// How orders of a version are hashed.
struct Version {
    type_hash: [u8; 32],
    /// Domain separators: first that of markets without the neg-risk flag, then that of markets with it.
    domains: [[u8; 32]; 2],
    fields: &'static [Field],
}

/// A field as it is signed.
enum Field {
    /// An unsigned number of 256 bits.
    Number(&'static str),
    /// 20 bytes at the right end of a word.
    Address(&'static str),
    Bytes(&'static str),
    /// 0 for BUY, 1 for SELL.
    Side,
}

use Field::{Address, Bytes, Number, Side};

static FIRST: LazyLock<Version> = LazyLock::new(|| Version {
    type_hash: keccak(&[concat!(
        "Order(uint256 salt,address maker,address signer,address taker,uint256 tokenId,uint256 makerAmount,",
        "uint256 takerAmount,uint256 expiration,uint256 nonce,uint256 feeRateBps,uint8 side,uint8 signatureType)"
    )
    .as_bytes()]),
    domains: FIRST_EXCHANGES.map(|exchange| domain(b"1", POLYGON, exchange)),
    fields: &[
        Number("salt"),
        Address("maker"),
        Address("signer"),
        Address("taker"),
        Number("tokenId"),
        Number("makerAmount"),
        Number("takerAmount"),
        Number("expiration"),
        Number("nonce"),
        Number("feeRateBps"),
        Side,
        Number("signatureType"),
    ],
});

static SECOND: LazyLock<Version> = LazyLock::new(|| Version {
    type_hash: keccak(&[ORDER_TYPE.as_bytes()]),
    domains: SECOND_EXCHANGES.map(|exchange| domain(b"2", POLYGON, exchange)),
    fields: &[
        Number("salt"),
        Address("maker"),
        Address("signer"),
        Number("tokenId"),
        Number("makerAmount"),
        Number("takerAmount"),
        Side,
        Number("signatureType"),
        Number("timestamp"),
        Bytes("metadata"),
        Bytes("builder"),
    ],
});

/// The hash of the object that was signed. `None`: it cannot be computed.
pub fn order_hash(signed: &Value<'_>, is_neg_risk: bool) -> Option<[u8; 32]> {
    let version = if signed.get("timestamp").is_some() { &*SECOND } else { &*FIRST };
    Some(digest(&version.domains[usize::from(is_neg_risk)], &version.contents(signed)?))
}

/// The hash of the fields of an order of the second generation, without the exchange that it was signed for.
pub(super) fn contents(signed: &Value<'_>) -> Option<[u8; 32]> {
    SECOND.contents(signed)
}

/// What is signed: fields for an exchange.
pub(super) fn digest(domain: &[u8; 32], contents: &[u8; 32]) -> [u8; 32] {
    keccak(&[b"\x19\x01", domain, contents])
}

/// The domain separator of a version of the exchange on a chain.
///
/// # Panics
/// When the contract is not an address.
pub(super) fn domain(version: &[u8], chain: u64, contract: &[u8]) -> [u8; 32] {
    let contract: [u8; 20] = hexadecimal(contract).expect("an address of our own");
    let parts = [
        keccak(&[DOMAIN_TYPE]),
        keccak(&[DOMAIN_NAME]),
        keccak(&[version]),
        word(&chain.to_be_bytes()),
        word(&contract),
    ];
    keccak(&[&parts.concat()])
}

impl Version {
    /// The hash of an order's fields.
    fn contents(&self, signed: &Value<'_>) -> Option<[u8; 32]> {
        let mut words = Vec::with_capacity(32 * (1 + self.fields.len()));
        words.extend_from_slice(&self.type_hash);
        for field in self.fields {
            words.extend_from_slice(&field.word(signed)?);
        }
        Some(keccak(&[&words]))
    }
}

impl Field {
    fn word(&self, signed: &Value<'_>) -> Option<[u8; 32]> {
        match self {
            // The largest type is an unsigned number of eight bits.
            Number("signatureType") => {
                number(text(signed, "signatureType")?.as_bytes()).filter(|word| word[..31] == [0; 31])
            }
            Number(name) => number(text(signed, name)?.as_bytes()),
            Address(name) => hexadecimal::<20>(text(signed, name)?.as_bytes()).map(|address| word(&address)),
            Bytes(name) => hexadecimal(text(signed, name)?.as_bytes()),
            Side => match text(signed, "side")? {
                buy if buy == "0" || buy.eq_ignore_ascii_case("BUY") => Some(word(&[0])),
                sell if sell == "1" || sell.eq_ignore_ascii_case("SELL") => Some(word(&[1])),
                _ => None,
            },
        }
    }
}

/// The text of a field, or the digits of a number.
pub(super) fn text<'a>(signed: &'a Value<'_>, name: &str) -> Option<&'a str> {
    match signed.get(name)? {
        Value::Text(text) => Some(text.as_ref()),
        Value::Number(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::read;

    const TOKEN: &str = "71321045679252212594626385532706912750332728571942532289631379312455583992563";

    fn first() -> serde_json::Value {
        serde_json::json!({
            "salt": 479_249_096_354_u64,
            "maker": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            "signer": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "taker": "0x0000000000000000000000000000000000000000",
            "tokenId": TOKEN,
            "makerAmount": "4100000",
            "takerAmount": "10000000",
            "expiration": "0",
            "nonce": "0",
            "feeRateBps": "1000",
            "side": "BUY",
            "signatureType": 2,
            "signature": "0x5f",
        })
    }

    fn second() -> serde_json::Value {
        serde_json::json!({
            "salt": 9_007_199_254_740_993_u64,
            "maker": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
            "signer": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "tokenId": TOKEN,
            "makerAmount": "10000000",
            "takerAmount": "4100000",
            "side": "SELL",
            "signatureType": 0,
            "timestamp": "1790932445123",
            "metadata": format!("0x{}", "00".repeat(32)),
            "builder": format!("0x{}", "ab".repeat(32)),
            "expiration": "0",
            "signature": "0x5f",
        })
    }

    fn hash_of(signed: &serde_json::Value, is_neg_risk: bool) -> Option<String> {
        let text = signed.to_string();
        let signed = read::json(text.as_bytes()).expect("JSON");
        let hash = order_hash(&signed, is_neg_risk)?;
        Some(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Made with Python's eth-account: `encode_typed_data` of the same domain, types and values.
    #[test]
    fn hashes_are_those_of_other_implementations() {
        for (signed, is_neg_risk, expected) in [
            (first(), false, "54d25ee609bd8d5d5edd90d7d98331291579a5e6eb9cc4b86e9f587b410de770"),
            (first(), true, "2ef9b184396d35dd1be9ca3d4bccce4969360cdd25f8e8d366226a366837b61b"),
            (second(), false, "0a06d94a828b7e5ba0f2410748a173c2f1a333ea3cb18787cc9ca3177c4f96f9"),
            (second(), true, "a7e962c44ff07e8c7f2811e3e5be007127ea757d1e41814d25cceb200cf09724"),
        ] {
            assert_eq!(hash_of(&signed, is_neg_risk).as_deref(), Some(expected), "{signed}");
        }
        // The signature and unsigned fields do not change the hash.
        let mut other = second();
        (other["signature"], other["expiration"]) = (serde_json::json!("0x00"), serde_json::json!("7"));
        assert_eq!(hash_of(&other, false), hash_of(&second(), false));
    }

    #[test]
    fn an_order_without_a_field_or_with_a_wrong_one_has_no_hash() {
        let mut cases = 0;
        for whole in [first(), second()] {
            let signed = |name: &str| {
                !["signature", "timestamp"].contains(&name)
                    && (name != "expiration" || whole.get("timestamp").is_none())
            };
            for name in whole.as_object().expect("an object").keys().filter(|name| signed(name)) {
                let mut without = whole.clone();
                without.as_object_mut().expect("an object").remove(name);
                assert_eq!(hash_of(&without, false), None, "{name}");
                for wrong in [serde_json::json!("x"), serde_json::json!(-1), serde_json::json!(null)] {
                    let mut other = whole.clone();
                    other[name] = wrong;
                    assert_eq!(hash_of(&other, false), None, "{name}");
                    cases += 1;
                }
            }
        }
        for (name, wrong) in [
            ("signatureType", serde_json::json!(256)),
            (
                "salt",
                serde_json::json!("115792089237316195423570985008687907853269984665640564039457584007913129639936"),
            ),
            ("maker", serde_json::json!("0xf39fd6e51aad88f6f4ce6ab8827279cfffb9226")),
        ] {
            let mut other = first();
            other[name] = wrong;
            assert_eq!(hash_of(&other, false), None, "{name}");
            cases += 1;
        }
        println!("orders without a hash: {cases} cases");
    }
}
