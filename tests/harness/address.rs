//! Addresses that sign for themselves (gateway/docs/venue-clients.md §8): accounts of tests, their requests, and their
//! orders (gateway/docs/rehearsal.md §2).

use k256::ecdsa::{Signature, SigningKey};
use serde_json::Value;
use sha3::{Digest, Keccak256};

/// An account of a chain, whose secret is a small number.
pub struct Account(SigningKey);

/// The four headers, for tests to change.
#[derive(Clone, Debug)]
pub struct Signed {
    pub address: String,
    pub signature: String,
    pub timestamp: String,
    pub nonce: String,
}

impl Account {
    pub fn new(number: u64) -> Account {
        Account(SigningKey::from_slice(&word(number)).expect("a small number is a secret"))
    }

    pub fn address(&self) -> String {
        let point = self.0.verifying_key().to_encoded_point(false);
        format!("0x{}", hex(&keccak(&[&point.as_bytes()[1..]])[12..]))
    }

    /// The headers of a request at `timestamp` (unix seconds), signed for a chain.
    pub fn sign(&self, chain: u64, timestamp: u64, nonce: u64) -> Signed {
        let timestamp = timestamp.to_string();
        let mut address = [0; 32];
        for (byte, pair) in address[12..].iter_mut().zip(self.address().as_bytes()[2..].chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
        }
        let domain = [
            keccak(&[b"EIP712Domain(string name,string version,uint256 chainId)"]),
            keccak(&[b"ClobAuthDomain"]),
            keccak(&[b"1"]),
            word(chain),
        ];
        let message = [
            keccak(&[b"ClobAuth(address address,string timestamp,uint256 nonce,string message)"]),
            address,
            keccak(&[timestamp.as_bytes()]),
            word(nonce),
            keccak(&[b"This message attests that I control the given wallet"]),
        ];
        let digest = keccak(&[b"\x19\x01", &keccak(&[&domain.concat()]), &keccak(&[&message.concat()])]);
        let (signature, recovery) = self.0.sign_prehash_recoverable(&digest).expect("32 bytes");
        Signed {
            address: self.address(),
            signature: text(&signature, recovery.to_byte()),
            timestamp,
            nonce: nonce.to_string(),
        }
    }
}

impl Account {
    /// Signs an order of the second generation for a chain; its maker and signer become this account.
    pub fn sign_order(&self, order: &mut Value, is_neg_risk: bool, chain: u64) {
        (order["maker"], order["signer"]) = (self.address().into(), self.address().into());
        let kind = "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,\
                    uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)";
        let contract = if is_neg_risk {
            "0xe2222d279d744050d28e00520010520000310f59"
        } else {
            "0xe111180000d2663c0091e4f400237545b87b996b"
        };
        let domain = [
            keccak(&[b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"]),
            keccak(&[b"Polymarket CTF Exchange"]),
            keccak(&[b"2"]),
            word(chain),
            from_hex(contract),
        ];
        let text = |name: &str| order[name].as_str().expect("a text").to_owned();
        let side = u64::from(text("side") == "SELL");
        let message = [
            keccak(&[kind.as_bytes()]),
            from_decimal(&order["salt"].to_string()),
            from_hex(&text("maker")),
            from_hex(&text("signer")),
            from_decimal(&text("tokenId")),
            from_decimal(&text("makerAmount")),
            from_decimal(&text("takerAmount")),
            word(side),
            word(order["signatureType"].as_u64().expect("a number")),
            from_decimal(&text("timestamp")),
            from_hex(&text("metadata")),
            from_hex(&text("builder")),
        ];
        let digest = keccak(&[b"\x19\x01", &keccak(&[&domain.concat()]), &keccak(&[&message.concat()])]);
        let (signature, recovery) = self.0.sign_prehash_recoverable(&digest).expect("32 bytes");
        order["signature"] = self::text(&signature, recovery.to_byte()).into();
    }
}

impl Signed {
    pub fn headers(&self) -> [(&'static str, &str); 4] {
        [
            ("POLY_ADDRESS", &self.address),
            ("POLY_SIGNATURE", &self.signature),
            ("POLY_TIMESTAMP", &self.timestamp),
            ("POLY_NONCE", &self.nonce),
        ]
    }

    /// The same signature in its other form: s above half the order of the group.
    pub fn with_high_s(&self) -> Signed {
        let bytes: Vec<u8> = (2..self.signature.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&self.signature[at..at + 2], 16).expect("digits"))
            .collect();
        let low = Signature::from_slice(&bytes[..64]).expect("r and s");
        let high = Signature::from_scalars(low.r().to_bytes(), (-*low.s()).to_bytes()).expect("s is not 0");
        Signed { signature: text(&high, 1 - (bytes[64] - 27)), ..self.clone() }
    }
}

fn text(signature: &Signature, recovery: u8) -> String {
    format!("0x{}{:02x}", hex(&signature.to_bytes()), recovery + 27)
}

fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Keccak256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn word(number: u64) -> [u8; 32] {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    word
}

/// The bytes of `0x…` at the right end of a word.
fn from_hex(text: &str) -> [u8; 32] {
    let digits = text.strip_prefix("0x").expect("0x").as_bytes();
    let mut word = [0; 32];
    let begin = word.len() - digits.len() / 2;
    for (byte, pair) in word[begin..].iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
    }
    word
}

/// A decimal number below 2²⁵⁶.
fn from_decimal(text: &str) -> [u8; 32] {
    let mut word = [0_u8; 32];
    for digit in text.bytes() {
        let mut carry = u16::from(digit - b'0');
        for byte in word.iter_mut().rev() {
            let value = u16::from(*byte) * 10 + carry;
            (*byte, carry) = (value as u8, value >> 8);
        }
        assert_eq!(carry, 0, "{text} is too large");
    }
    word
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::Account;

    /// The address of the secret 1 is well known.
    #[test]
    fn an_address_is_that_of_its_secret() {
        assert_eq!(Account::new(1).address(), "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf");
    }
}
