//! Addresses that sign for themselves (gateway/docs/venue-clients.md §8): accounts of tests, and their requests.

use k256::ecdsa::{Signature, SigningKey};
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
