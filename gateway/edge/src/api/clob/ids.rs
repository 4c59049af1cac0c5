//! Ids of venue-shaped rows, made of ours (gateway/docs/venue-clients.md §7.1, §0.2): order ids of 66 characters, the
//! account's UUID and address, transaction hashes of paper trades. None needs a table: each follows from the user or the
//! trade, and an order's own id can be read back. A signed order has its EIP-712 hash as id in the strict dialect; the
//! shard finds the order by it.

use super::signature;
use crate::api::refuse::unexpected;
use crate::http::auth;
use crate::http::call::{self, Call};
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::reply::Refusal;
use crate::http::scalar::OrderHexId;
use engine::command::{Answer, Command, Query};
use engine::id::{OrderId, UserId};
use engine::order::Order;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Digits of a decimal id.
const DECIMAL_DIGITS_MAX: usize = 19;
/// Characters of the venue-shaped form: `0x` and 32 bytes.
const HEX_ID_CHARS: usize = 66;
/// RFC 9562's name space of object identifiers, in which the number of a user is a name.
const NAMESPACE: [u8; 16] =
    [0x6b, 0xa7, 0xb8, 0x12, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8];

/// The order id of examples.
pub const ORDER_EXAMPLE: &str = "0x51c07f6c1bb4a0b2e5f3d8c9a6071425364758695a4b3c2d0000000010000004";

/// Order ids of one user in one dialect.
#[derive(Clone, Copy, Debug)]
pub struct OrderIds {
    account: [u8; 24],
    dialect: Dialect,
}

/// An id of an order as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentId {
    Ours(OrderId),
    /// Possibly the hash of a signed order.
    Hash([u8; 32]),
}

impl OrderIds {
    /// `salt` is the server's secret: without it no client can make the ids of another user.
    pub fn new(salt: &str, user: UserId, dialect: Dialect) -> OrderIds {
        let mut hash = Sha256::new_with_prefix(salt.as_bytes());
        hash.update(user.0.to_string());
        let hash: [u8; 32] = hash.finalize().into();
        let mut account = [0; 24];
        account.copy_from_slice(&hash[..24]);
        OrderIds { account, dialect }
    }

    /// Those of the caller.
    pub fn of(call: &Call) -> OrderIds {
        OrderIds::new(call.front().settings.auth.server_secret.expose(), call.caller().user, call.dialect())
    }

    /// Pushes the venue-shaped form of an order with that hash, if it has one.
    pub fn push(&self, out: &mut Vec<u8>, id: OrderId, hash: Option<&[u8; 32]>) {
        out.extend_from_slice(b"0x");
        match hash.filter(|_| self.dialect.is_strict()) {
            Some(hash) => hex(out, hash),
            None => {
                hex(out, &self.account);
                hex(out, &id.0.to_be_bytes());
            }
        }
    }

    /// The id of an order.
    pub fn shown(&self, order: &Order) -> OrderHexId<'static> {
        self.text(order.id, order.terms.order_hash()).into()
    }

    /// The same as a text.
    pub fn text(&self, id: OrderId, hash: Option<&[u8; 32]>) -> String {
        let mut text = Vec::with_capacity(HEX_ID_CHARS);
        self.push(&mut text, id, hash);
        String::from_utf8(text).expect("hexadecimal digits are ASCII")
    }

    /// Reads any form. `None` is an id that no order of this user has.
    pub fn read(&self, text: &str) -> Option<SentId> {
        let Some(bytes) = signature::hexadecimal::<32>(text.as_bytes()) else {
            return decimal(text).map(|id| SentId::Ours(OrderId(id)));
        };
        let (account, order) = bytes.split_at(24);
        let same = self.account.iter().zip(account).fold(true, |same, (one, other)| same & (one == other));
        Some(match <[u8; 8]>::try_from(order) {
            Ok(order) if same => SentId::Ours(OrderId(u64::from_be_bytes(order))),
            _ => SentId::Hash(bytes),
        })
    }

    /// Finds the orders that the caller means by these ids; `None` where it has no such order. An id of ours is not looked
    /// up.
    ///
    /// # Errors
    /// Every refusal of the shard.
    pub async fn find(&self, call: &Call, texts: &[&str]) -> Result<Vec<Option<OrderId>>, Refusal> {
        let sent: Vec<Option<SentId>> = texts.iter().map(|text| self.read(text)).collect();
        let hashes: Vec<[u8; 32]> = sent
            .iter()
            .filter_map(|sent| match sent {
                Some(SentId::Hash(hash)) => Some(*hash),
                Some(SentId::Ours(_)) | None => None,
            })
            .collect();
        let found = match hashes.is_empty() {
            true => Vec::new(),
            false => match call.ask(Command::Query(Query::SignedOrders(hashes))).await? {
                Answer::SignedOrders(found) => found,
                other => return Err(unexpected(&other, call.now)),
            },
        };
        let mut found = found.into_iter();
        let orders = sent.into_iter().map(|sent| match sent? {
            SentId::Ours(id) => Some(id),
            SentId::Hash(_) => found.next().flatten(),
        });
        Ok(orders.collect())
    }
}

/// The order that a text names, in any form.
///
/// # Errors
/// `ORDER_NOT_FOUND` for an id that no order of the caller has.
pub async fn named(call: &Call, text: &str) -> Result<OrderId, Refusal> {
    if let Some(id) = call::id(text) {
        return Ok(OrderId(id));
    }
    let found = OrderIds::of(call).find(call, &[text]).await?.pop().flatten();
    found.ok_or_else(|| Code::OrderNotFound.into())
}

/// The plain decimal form of an id: digits without leading zeros.
pub fn decimal(text: &str) -> Option<u64> {
    let plain = (1..=DECIMAL_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    (plain && (text.len() == 1 || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}

/// The `owner` of strict rows: the UUID that the request authenticated with, else the account's.
pub fn owner(call: &Call) -> String {
    let front = call.front();
    let shown = auth::credentials(&call.headers, &front.key_aliases, &front.settings.brand.key_prefix);
    let alias = shown.key.and_then(|key| std::str::from_utf8(key).ok()).filter(|key| uuid(key).is_some());
    alias.map_or_else(|| account(call.caller().user), str::to_owned)
}

/// The account's UUID: version 5, of the number of the user.
pub fn account(user: UserId) -> String {
    let mut name = NAMESPACE.to_vec();
    name.extend_from_slice(user.0.to_string().as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha1::digest(&name)[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    uuid_text(&bytes)
}

/// The account's address: 20 bytes that follow from the number of the user.
pub fn address(user: UserId) -> String {
    let hash: [u8; 32] = Sha256::digest(format!("addr:{}", user.0)).into();
    wire::decimal::text(|out| {
        out.extend_from_slice(b"0x");
        hex(out, &hash[..20]);
    })
}

/// The `transaction_hash` of a paper trade in the strict dialect, from its fill on: `0x` and the lower-case hex of
/// SHA-256 of `paper:` and the trade's id. Typed clients want 32 bytes here; a paper trade has no transaction.
pub fn paper_transaction_hash(trade_id: &str) -> String {
    let mut hash = Sha256::new_with_prefix(b"paper:");
    hash.update(trade_id);
    let hash: [u8; 32] = hash.finalize().into();
    wire::decimal::text(|out| {
        out.extend_from_slice(b"0x");
        hex(out, &hash);
    })
}

/// The bytes of a UUID; `None` for any other text.
pub fn uuid(text: &str) -> Option<[u8; 16]> {
    let dashes = |(at, byte): (usize, u8)| (byte == b'-') == matches!(at, 8 | 13 | 18 | 23);
    if text.len() != 36 || !text.bytes().enumerate().all(dashes) {
        return None;
    }
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    let mut bytes = [0; 16];
    for (byte, digits) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair(digits)?;
    }
    Some(bytes)
}

pub fn uuid_text(bytes: &[u8; 16]) -> String {
    wire::decimal::text(|out| {
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            hex(out, std::slice::from_ref(byte));
        }
    })
}

/// Lower-case hex.
pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}

fn pair(digits: &[u8]) -> Option<u8> {
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    Some((nibble(*digits.first()?)? * 16 + nibble(*digits.get(1)?)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(salt: &str, user: u64) -> OrderIds {
        OrderIds::new(salt, UserId(user), Dialect::Strict)
    }

    #[test]
    fn a_signed_order_has_its_hash_in_the_strict_dialect() {
        let (strict, plain) = (ids("salt", 7), OrderIds::new("salt", UserId(7), Dialect::Plain));
        let hash = [0xab; 32];
        assert_eq!(strict.text(OrderId(1), Some(&hash)), format!("0x{}", "ab".repeat(32)));
        assert_eq!(plain.text(OrderId(1), Some(&hash)), strict.text(OrderId(1), None));
        for dialect in [strict, plain] {
            assert_eq!(dialect.read(&strict.text(OrderId(1), Some(&hash))), Some(SentId::Hash(hash)));
            assert_eq!(dialect.read(&strict.text(OrderId(1), None)), Some(SentId::Ours(OrderId(1))));
        }
    }

    #[test]
    fn an_order_id_is_read_back_by_its_user_only() {
        let (ours, theirs) = (ids("salt", 7), ids("salt", 8));
        let mut cases = 0;
        for id in [0, 1, 90_412, 268_435_456, (1 << 53) - 1, u64::MAX] {
            let text = ours.text(OrderId(id), None);
            assert!(text.len() == 66 && text.starts_with("0x"), "{text}");
            assert_eq!(ours.read(&text), Some(SentId::Ours(OrderId(id))));
            assert_eq!(ours.read(&text.to_uppercase().replace("0X", "0x")), Some(SentId::Ours(OrderId(id))));
            assert!(matches!(theirs.read(&text), Some(SentId::Hash(_))), "which it has no order with");
            assert!(matches!(ids("another", 7).read(&text), Some(SentId::Hash(_))));
            cases += 4;
        }
        let whole = ours.text(OrderId(1), None);
        for (text, expected) in [
            ("90412", Some(OrderId(90_412))),
            ("0", Some(OrderId(0))),
            ("090412", None),
            ("-1", None),
            ("+1", None),
            ("18446744073709551616", None),
            ("9999999999999999999", Some(OrderId(9_999_999_999_999_999_999))),
            ("", None),
            ("0x", None),
            ("0x1", None),
            (&whole[..65], None),
            (&format!("{whole}0"), None),
            (&whole.replacen("0x", "0X", 1), None),
            (&format!("{}g", &whole[..65]), None),
            (&format!("{}+000000000000001", &whole[..50]), None),
            (&format!("0x{}", "é".repeat(32)), None),
            ("１", None),
        ] {
            assert_eq!(ours.read(text), expected.map(SentId::Ours), "{text}");
            cases += 1;
        }
        println!("{cases} cases");
    }

    #[test]
    fn a_paper_trade_has_a_hash_of_its_own() {
        // Python: hashlib.sha256(b"paper:268435460").hexdigest().
        assert_eq!(
            paper_transaction_hash("268435460"),
            "0x4161462203901016f766fdf2d4d7409024052305ef422a7053e520eea999df15"
        );
        assert_ne!(paper_transaction_hash("268435460"), paper_transaction_hash("268435461"));
    }

    #[test]
    fn accounts_have_their_own_uuid_and_address() {
        // Python: uuid.uuid5(uuid.NAMESPACE_OID, "42"); hashlib.sha256(b"addr:42").
        assert_eq!(account(UserId(42)), "ba293c61-ad33-57b9-9671-f3319f57d789");
        assert_eq!(address(UserId(42)), "0x66be8bc043595eb593728e1fa285e61f95f2e774");
        assert_ne!(account(UserId(1)), account(UserId(2)));
        assert_eq!(uuid(&account(UserId(42))).map(|bytes| uuid_text(&bytes)), Some(account(UserId(42))));
        for text in [
            "",
            "x",
            "4f0c9d2a-0011-8233-9455-66778899aab",
            "4f0c9d2a00-11-8233-9455-66778899aabb",
            "4f0c9d2a-0011-8233-9455-66778899aabg",
        ] {
            assert_eq!(uuid(text), None, "{text}");
        }
    }
}
