//! The `wallet_id` parameter of reads and sweeps (gateway/docs/accounts.md §1).

use crate::http::record::forms;
use crate::http::scalar::{WalletChoice, words};
use crate::http::schema::{Param, Schema};
use engine::command::Wallets;
use engine::id::WalletId;
use engine::user::Wallet;
use engine::user::WalletKind;
use wire::fields::Problems;
use wire::query::Query;
use wire::value::Value;

/// The parameter as the routes declare it.
pub const WALLET_ID: Param =
    Param::query("wallet_id", Schema::of::<WalletChoice<'static>>(), "Which wallets; the API wallet where absent.");
/// The same of the routes of orders.
pub const WALLET_OF_ORDERS: Param = Param::query(
    "wallet_id",
    Schema::of::<SentWallet>(),
    "A wallet's id, `api` (the API wallet, the default) or `all` (every active wallet).",
);

words! {
    pub WalletWord = "api", "all";
}

forms! {
    pub SentWallet = Id(u64), Word(WalletWord); SentWallet::Word("all".into());
}

/// The most digits of an integer (gateway/docs/wire.md §1).
const DIGITS_MAX: usize = 18;
/// An id that no wallet has: that of a negative integer.
const NO_WALLET: WalletId = WalletId(u64::MAX);

/// The wallet of that number; `None` when the text is not an integer. The shard checks that it is the caller's.
pub fn numbered(text: &str) -> Option<WalletId> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(if text.starts_with('-') { NO_WALLET } else { WalletId(digits.parse().ok()?) })
}

/// `api`, `all`, or an integer.
fn named(text: &str) -> Option<Wallets> {
    match text {
        _ if text.eq_ignore_ascii_case("api") => Some(Wallets::Api),
        _ if text.eq_ignore_ascii_case("all") => Some(Wallets::All),
        _ => numbered(text).map(Wallets::One),
    }
}

fn wrong(problems: &mut Problems, place: &'static str) {
    problems.add(place, "wallet_id", "wallet_id", "must be api, all or the id of a wallet");
}

/// The wallets that a query names; `None` without `wallet_id`, and, with a problem, for a wrong one.
pub fn in_query(query: &Query<'_>, problems: &mut Problems) -> Option<Wallets> {
    let text = query.get("wallet_id")?;
    let wallets = named(text);
    if wallets.is_none() {
        wrong(problems, "query");
    }
    wallets
}

/// As [`in_query`], of a JSON body: a word, or a number as such or as text.
pub fn in_body(body: &Value<'_>, problems: &mut Problems) -> Option<Wallets> {
    let wallets = match body.get("wallet_id")? {
        Value::Null => return None,
        Value::Text(text) => named(text),
        Value::Number(text) => numbered(text).map(Wallets::One),
        _ => None,
    };
    if wallets.is_none() {
        wrong(problems, "body");
    }
    wallets
}

/// Whether `wallets` includes `wallet`.
pub fn covers(wallets: Wallets, wallet: &Wallet) -> bool {
    match wallets {
        Wallets::Api => wallet.kind == WalletKind::Api && wallet.is_active(),
        Wallets::All => wallet.is_active(),
        Wallets::One(id) => wallet.id == id,
        Wallets::Any => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wallets_are_named_by_word_or_number() {
        for (text, expected) in [
            ("api", Some(Wallets::Api)),
            ("API", Some(Wallets::Api)),
            ("All", Some(Wallets::All)),
            ("3", Some(Wallets::One(WalletId(3)))),
            ("0", Some(Wallets::One(WalletId(0)))),
            ("-0", Some(Wallets::One(NO_WALLET))),
            ("-5", Some(Wallets::One(NO_WALLET))),
            ("999999999999999999", Some(Wallets::One(WalletId(999_999_999_999_999_999)))),
            ("9999999999999999999", None),
            ("", None),
            ("-", None),
            ("main", None),
            ("1.0", None),
            ("1e3", None),
            ("+1", None),
            (" 1", None),
            ("１", None),
        ] {
            assert_eq!(named(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_wrong_choice_is_a_problem_and_an_absent_one_is_not() {
        for (query, expected, wrong) in [
            ("", None, false),
            ("wallet_id=all", Some(Wallets::All), false),
            ("wallet_id=3", Some(Wallets::One(WalletId(3))), false),
            ("wallet_id=", None, true),
            ("wallet_id=x", None, true),
        ] {
            let mut problems = Problems::default();
            assert_eq!(in_query(&Query::read(query), &mut problems), expected, "{query}");
            assert_eq!(!problems.is_empty(), wrong, "{query}");
        }
        for (body, expected, wrong) in [
            (r#"{}"#, None, false),
            (r#"{"wallet_id":null}"#, None, false),
            (r#"{"wallet_id":3}"#, Some(Wallets::One(WalletId(3))), false),
            (r#"{"wallet_id":"3"}"#, Some(Wallets::One(WalletId(3))), false),
            (r#"{"wallet_id":"ALL"}"#, Some(Wallets::All), false),
            (r#"{"wallet_id":1.5}"#, None, true),
            (r#"{"wallet_id":true}"#, None, true),
            (r#"{"wallet_id":[]}"#, None, true),
        ] {
            let mut problems = Problems::default();
            let value = wire::read::json(body.as_bytes()).expect("JSON");
            assert_eq!(in_body(&value, &mut problems), expected, "{body}");
            assert_eq!(!problems.is_empty(), wrong, "{body}");
        }
    }
}
