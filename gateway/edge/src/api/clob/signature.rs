//! The message that an address signs to identify itself: the venue's ClobAuth (gateway/docs/venue-clients.md §8), EIP-712
//! over secp256k1. The parts that other signed messages need, too.
//!
//! Pure functions of the headers. Signatures of contracts (EIP-1271) are not supported, since no chain is queried.

use hyper::header::{HeaderMap, HeaderName};
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use sha3::{Digest as _, Keccak256};

const DOMAIN_TYPE: &[u8] = b"EIP712Domain(string name,string version,uint256 chainId)";
const DOMAIN_NAME: &[u8] = b"ClobAuthDomain";
const DOMAIN_VERSION: &[u8] = b"1";
const MESSAGE_TYPE: &[u8] = b"ClobAuth(address address,string timestamp,uint256 nonce,string message)";
const MESSAGE: &[u8] = b"This message attests that I control the given wallet";
/// Chains that clients sign for: Polygon, and its test network Amoy.
const CHAINS: [u64; 2] = [137, 80_002];
/// Digits of 2²⁵⁶ − 1.
const NONCE_DIGITS_MAX: usize = 78;
/// Digits of a timestamp in seconds until the year 33658.
const TIMESTAMP_DIGITS_MAX: usize = 12;

/// The account of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub [u8; 20]);

/// The claim of the four headers of a request, not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    pub address: Address,
    /// Unix seconds, as signed: a text.
    timestamp: &'a str,
    /// An unsigned number of 256 bits, big-endian.
    pub nonce: [u8; 32],
    /// r, s and v.
    signature: [u8; 65],
}

/// Why no address is the signer of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSigner {
    /// Of the two forms of each signature only the lower one counts, so that none has a twin.
    HighS,
    /// The bytes are not a signature of anything.
    NoPoint,
}

/// The address whose key made this signature of a digest: r, s and v.
///
/// # Errors
/// [`NoSigner`].
pub(super) fn signer(signature: &[u8; 65], digest: &[u8; 32]) -> Result<Address, NoSigner> {
    let (rs, v) = signature.split_at(64);
    let recovery = match v[0] {
        v @ (0 | 1) => v,
        v @ (27 | 28) => v - 27,
        _ => return Err(NoSigner::NoPoint),
    };
    let recovery = RecoveryId::from_byte(recovery).ok_or(NoSigner::NoPoint)?;
    let signature = Signature::from_slice(rs).map_err(|_| NoSigner::NoPoint)?;
    if signature.normalize_s().is_some() {
        return Err(NoSigner::HighS);
    }
    let key = VerifyingKey::recover_from_prehash(digest, &signature, recovery).map_err(|_| NoSigner::NoPoint)?;
    Ok(Address::of(&key))
}

/// Why the headers are not a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoClaim {
    /// None of the four headers is there.
    Absent,
    /// This one is missing, or not what it should be.
    Malformed(&'static str),
}

impl<'a> Claim<'a> {
    /// Reads `POLY_ADDRESS`, `POLY_SIGNATURE`, `POLY_TIMESTAMP` and `POLY_NONCE`.
    ///
    /// # Errors
    /// [`NoClaim`].
    pub fn read(headers: &'a HeaderMap) -> Result<Claim<'a>, NoClaim> {
        let text = |name: &'static str| headers.get(HeaderName::from_static(name)).map(|value| value.as_bytes());
        let all = ["poly_address", "poly_signature", "poly_timestamp", "poly_nonce"].map(text);
        if all == [None; 4] {
            return Err(NoClaim::Absent);
        }
        let [address, signature, timestamp, nonce] = all.map(Option::unwrap_or_default);
        let timestamp = std::str::from_utf8(timestamp).ok().filter(|text| is_number(text, TIMESTAMP_DIGITS_MAX));
        Ok(Claim {
            address: Address(hexadecimal(address).ok_or(NoClaim::Malformed("POLY_ADDRESS"))?),
            signature: hexadecimal(signature).ok_or(NoClaim::Malformed("POLY_SIGNATURE"))?,
            timestamp: timestamp.ok_or(NoClaim::Malformed("POLY_TIMESTAMP"))?,
            nonce: number(nonce).ok_or(NoClaim::Malformed("POLY_NONCE"))?,
        })
    }

    /// When it was signed, unix seconds.
    pub fn signed_at_secs(&self) -> u64 {
        self.timestamp.parse().expect("read as a number of few digits")
    }

    /// Whether the address signed this, for one of the chains that clients are made for.
    pub fn is_signed(&self) -> bool {
        CHAINS.iter().any(|chain| signer(&self.signature, &self.digest(*chain)) == Ok(self.address))
    }

    /// What is signed on a chain: EIP-712.
    fn digest(&self, chain: u64) -> [u8; 32] {
        let domain =
            [keccak(&[DOMAIN_TYPE]), keccak(&[DOMAIN_NAME]), keccak(&[DOMAIN_VERSION]), word(&chain.to_be_bytes())];
        let message = [
            keccak(&[MESSAGE_TYPE]),
            word(&self.address.0),
            keccak(&[self.timestamp.as_bytes()]),
            self.nonce,
            keccak(&[MESSAGE]),
        ];
        keccak(&[b"\x19\x01", &keccak(&[&domain.concat()]), &keccak(&[&message.concat()])])
    }
}

impl Address {
    /// The last 20 bytes of the hash of the public key.
    pub(super) fn of(key: &VerifyingKey) -> Address {
        let point = key.to_encoded_point(false);
        let hash = keccak(&[&point.as_bytes()[1..]]);
        Address(hash[12..].try_into().expect("20 of 32 bytes"))
    }
}

/// `0x` and 40 lower-case digits.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

pub(super) fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Keccak256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// Bytes at the right end of 32.
pub(super) fn word(bytes: &[u8]) -> [u8; 32] {
    let mut word = [0; 32];
    word[32 - bytes.len()..].copy_from_slice(bytes);
    word
}

/// `0x` and exactly the digits of `N` bytes, in any case.
pub(super) fn hexadecimal<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digits = text.strip_prefix(b"0x").filter(|digits| digits.len() == 2 * N)?;
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(bytes)
}

fn is_number(text: &str, digits_max: usize) -> bool {
    (1..=digits_max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// A decimal number of at most 256 bits, big-endian.
pub(super) fn number(text: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(text).ok().filter(|text| is_number(text, NONCE_DIGITS_MAX))?;
    let mut number = [0u8; 32];
    for digit in text.bytes() {
        let mut carry = u16::from(digit - b'0');
        for byte in number.iter_mut().rev() {
            let value = u16::from(*byte) * 10 + carry;
            (*byte, carry) = (value as u8, value >> 8);
        }
        if carry > 0 {
            return None;
        }
    }
    Some(number)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use k256::ecdsa::SigningKey;

    /// The first account of the well-known test mnemonic.
    const ADDRESS: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    const TIMESTAMP: &str = "1790932445";
    const BIG: &str = "1606938044258990275541962092341162602522202993782792835301379";
    const FIRST: &str = concat!(
        "0xd9f278dc53934443f875a23e1ec185a3fcc66b35bce50dca24997e97c812759b",
        "22e01acbd387ab1007408aa8dabb76b2db8836f9fe1cac7ecf5b23c356a732391b"
    );

    fn headers(fields: [&str; 4]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in ["poly_address", "poly_signature", "poly_timestamp", "poly_nonce"].iter().zip(fields) {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    /// Headers of an account of tests, signed for Polygon.
    pub(crate) fn signed(account: u8, timestamp: &str, nonce: &str) -> Vec<(&'static str, String)> {
        let key = SigningKey::from_slice(&word(&[account])).expect("a small number is a key");
        let address = Address::of(key.verifying_key());
        let claim = Claim { address, timestamp, nonce: number(nonce.as_bytes()).unwrap(), signature: [0; 65] };
        let (signature, recovery) = key.sign_prehash_recoverable(&claim.digest(137)).expect("32 bytes");
        let digits: String = signature.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        vec![
            ("poly_address", address.to_string()),
            ("poly_signature", format!("0x{digits}{:02x}", recovery.to_byte() + 27)),
            ("poly_timestamp", timestamp.to_owned()),
            ("poly_nonce", nonce.to_owned()),
        ]
    }

    /// Signatures that py-clob-client 0.34.6 made.
    #[test]
    fn signatures_of_the_venues_client_are_accepted() {
        let third = concat!(
            "0x38184dbaef52d4387499bd64713134ad0727229b95c660fd2f1dbf262c649306",
            "154b9333929e6e48e9b3873155a7f3f50f8aa474d9b80f01d0819b463609b96e1c"
        );
        let amoy = concat!(
            "0x272f2f1d0e805c1b3e3a4e1773679f53bec81d45c8e9b0a9de0bd9d01f417609",
            "35dc2ee5cabf1a7a3287a9a9d30b7f269bd9cfb66f33ec7591489e307b34e8661c"
        );
        let mainnet = concat!(
            "0x2f874eaedb85be4cfdebad3da74061ade79da6223b1aea3fd8644ce941f20c67",
            "7d51bc9d7ccc0d86f3b356db0a15da03945274baa4f0aeeb12af50aefaaf92331c"
        );
        // s replaced by the order of the group less s, and the other v: the twin of `FIRST`.
        let high_s = concat!(
            "0xd9f278dc53934443f875a23e1ec185a3fcc66b35bce50dca24997e97c812759b",
            "dd1fe5342c7854eff8bf75572544894bdf26a5ecb12bf3bcf0773ac9798f0f081c"
        );
        let lower = ADDRESS.to_lowercase();
        let zero_based = format!("{}00", &FIRST[..130]);
        let swapped = format!("{}1c", &FIRST[..130]);
        let v29 = format!("{}1d", &FIRST[..130]);
        let (zeros, ones) = (format!("0x{}1b", "0".repeat(128)), format!("0x{}1b", "f".repeat(128)));
        let cases = [
            ([ADDRESS, FIRST, TIMESTAMP, "0"], true),
            ([&lower, FIRST, TIMESTAMP, "0"], true),
            ([ADDRESS, FIRST, TIMESTAMP, "00"], true),
            ([ADDRESS, &zero_based, TIMESTAMP, "0"], true),
            ([ADDRESS, third, TIMESTAMP, BIG], true),
            ([ADDRESS, amoy, TIMESTAMP, "0"], true),
            ([ADDRESS, mainnet, TIMESTAMP, "0"], false),
            ([ADDRESS, FIRST, "1790932446", "0"], false),
            ([ADDRESS, FIRST, "01790932445", "0"], false),
            ([ADDRESS, FIRST, TIMESTAMP, "1"], false),
            (["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92267", FIRST, TIMESTAMP, "0"], false),
            ([ADDRESS, &swapped, TIMESTAMP, "0"], false),
            ([ADDRESS, &v29, TIMESTAMP, "0"], false),
            ([ADDRESS, high_s, TIMESTAMP, "0"], false),
            ([ADDRESS, &zeros, TIMESTAMP, "0"], false),
            ([ADDRESS, &ones, TIMESTAMP, "0"], false),
        ];
        for (fields, expected) in cases {
            let headers = headers(fields);
            let claim = Claim::read(&headers).unwrap_or_else(|error| panic!("{fields:?}: {error:?}"));
            assert_eq!(claim.is_signed(), expected, "{fields:?}");
        }
        let headers = headers([ADDRESS, FIRST, TIMESTAMP, "0"]);
        let claim = Claim::read(&headers).unwrap();
        assert_eq!((&claim.address.to_string(), claim.signed_at_secs()), (&lower, 1_790_932_445));
        println!("{} cases", cases.len());
    }

    #[test]
    fn malformed_headers_claim_nothing() {
        let (long, short) = (format!("{FIRST}00"), &FIRST[..130]);
        let bare = &FIRST[2..];
        let letters = FIRST.replace('d', "g");
        let too_big = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        let digits_79 = "1".repeat(79);
        let cases = [
            (["", FIRST, TIMESTAMP, "0"], "POLY_ADDRESS"),
            ([&ADDRESS[2..], FIRST, TIMESTAMP, "0"], "POLY_ADDRESS"),
            ([&ADDRESS[..41], FIRST, TIMESTAMP, "0"], "POLY_ADDRESS"),
            ([&format!("{ADDRESS}0"), FIRST, TIMESTAMP, "0"], "POLY_ADDRESS"),
            ([&ADDRESS.replace("0xf", "0Xf"), FIRST, TIMESTAMP, "0"], "POLY_ADDRESS"),
            ([&ADDRESS.replace('d', "g"), FIRST, TIMESTAMP, "0"], "POLY_ADDRESS"),
            ([ADDRESS, "", TIMESTAMP, "0"], "POLY_SIGNATURE"),
            ([ADDRESS, &long, TIMESTAMP, "0"], "POLY_SIGNATURE"),
            ([ADDRESS, short, TIMESTAMP, "0"], "POLY_SIGNATURE"),
            ([ADDRESS, bare, TIMESTAMP, "0"], "POLY_SIGNATURE"),
            ([ADDRESS, &letters, TIMESTAMP, "0"], "POLY_SIGNATURE"),
            ([ADDRESS, FIRST, "", "0"], "POLY_TIMESTAMP"),
            ([ADDRESS, FIRST, "-1", "0"], "POLY_TIMESTAMP"),
            ([ADDRESS, FIRST, "1790932445.5", "0"], "POLY_TIMESTAMP"),
            ([ADDRESS, FIRST, "1790932445000", "0"], "POLY_TIMESTAMP"),
            ([ADDRESS, FIRST, TIMESTAMP, ""], "POLY_NONCE"),
            ([ADDRESS, FIRST, TIMESTAMP, "-1"], "POLY_NONCE"),
            ([ADDRESS, FIRST, TIMESTAMP, "0x1"], "POLY_NONCE"),
            ([ADDRESS, FIRST, TIMESTAMP, too_big], "POLY_NONCE"),
            ([ADDRESS, FIRST, TIMESTAMP, &digits_79], "POLY_NONCE"),
        ];
        for (fields, expected) in cases {
            assert_eq!(Claim::read(&headers(fields)), Err(NoClaim::Malformed(expected)), "{fields:?}");
        }
        assert_eq!(Claim::read(&HeaderMap::new()), Err(NoClaim::Absent));
        let mut one = HeaderMap::new();
        one.insert("poly_nonce", HeaderValue::from_static("0"));
        assert_eq!(Claim::read(&one), Err(NoClaim::Malformed("POLY_ADDRESS")));
        let largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(number(largest.as_bytes()), Some([0xff; 32]));
        println!("{} cases", cases.len() + 3);
    }

    #[test]
    fn what_tests_sign_is_what_clients_sign() {
        let mut headers = HeaderMap::new();
        for (name, value) in signed(1, TIMESTAMP, "5") {
            headers.insert(name, HeaderValue::try_from(value).unwrap());
        }
        // The address of the key 1 is well known.
        let claim = Claim::read(&headers).unwrap();
        assert_eq!(claim.address.to_string(), "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf");
        assert!(claim.is_signed());
    }
}
