//! `POST /v1/admin/grants`, `/v1/admin/wallets` and `/v1/admin/refunds`: a plan without payment, a COMPETITION wallet, and
//! the return of a payment (gateway/docs/billing.md §8).

use crate::namespace::Reply;
use crate::node::{NoRefund, Node};
use crate::refusal::Refusal;
use engine::amount::Cash;
use engine::id::{KeyId, UserId};
use engine::rules::CASH_MAX;
use engine::time::Timestamp;
use engine::user::{Tier, Wallet};
use std::time::Duration;
use wire::decimal::Decimal;
use wire::fields::Body;
use wire::value::Value;
use wire::{instant, read, write};

/// How long the shard of the user may take.
pub(crate) const DONE_WITHIN: Duration = Duration::from_secs(10);
/// Longest subject of an identity token, and longest label of a wallet, in characters.
const SUB_CHARS_MAX: usize = 128;
const LABEL_CHARS_MAX: usize = 64;
/// Names of the plans.
pub const PLANS: [(&str, Tier); 4] =
    [("free", Tier::Free), ("pro", Tier::Pro), ("pro_plus", Tier::ProPlus), ("enterprise", Tier::Enterprise)];

/// The user that an administrator names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Id(UserId),
    /// The subject of identity tokens.
    Sub(String),
}

/// What an administrator does for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// `until`: `None` is without end.
    Grant {
        tier: Tier,
        until: Option<Timestamp>,
    },
    OpenWallet {
        label: Option<String>,
        balance: Cash,
    },
    /// `set`: `None` is the one of keys without a choice.
    ChooseRealism {
        key: KeyId,
        set: Option<String>,
    },
}

/// What was done.
#[derive(Clone, Debug)]
pub enum Done {
    Granted,
    Opened(Box<Wallet>),
    /// The set of realism of a key.
    Chose(Option<Box<str>>),
    /// The user cannot have it; the text says why.
    Refused(&'static str),
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoDeed {
    UnknownUser,
    UnknownKey,
    /// The queue of the user's shard is full, or its log has no room.
    Busy,
}

/// A request of either route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeedRequest {
    user: Named,
    deed: Deed,
}

impl Named {
    /// A text of digits is an id.
    pub fn of(text: &str) -> Named {
        match text.parse() {
            Ok(id) if text.bytes().all(|byte| byte.is_ascii_digit()) => Named::Id(UserId(id)),
            _ => Named::Sub(text.to_owned()),
        }
    }
}

/// A time of a grant: RFC 3339, or `none`.
pub fn until(text: &str) -> Option<Option<Timestamp>> {
    if text == "none" { Some(None) } else { instant::read(text).map(Some) }
}

/// The balance of a wallet: above zero, and at most half of what a wallet may hold, so that it can still win.
pub fn balance(text: &str) -> Option<Cash> {
    let cash = Decimal::parse(text).ok().and_then(Decimal::cash_exact)?;
    (1..=CASH_MAX.0 / 2).contains(&cash.0).then_some(cash)
}

/// A label of a wallet.
pub fn is_label(text: &str) -> bool {
    text.chars().count() <= LABEL_CHARS_MAX
}

impl DeedRequest {
    /// # Errors
    /// [`Refusal::NotObject`], [`Refusal::Fields`].
    pub(crate) fn grant(body: &[u8]) -> Result<DeedRequest, Refusal> {
        let value = object(body)?;
        let mut body = Body::new(&value);
        let user = named(&mut body);
        let tier = required(&mut body, "plan", "is not free, pro, pro_plus or enterprise", |text| {
            PLANS.iter().find(|(name, _)| *name == text).map(|(_, tier)| *tier)
        });
        let until = required(&mut body, "until", "is neither an RFC 3339 time nor none", until);
        match (user, tier, until) {
            (Some(user), Some(tier), Some(until)) => Ok(DeedRequest { user, deed: Deed::Grant { tier, until } }),
            _ => Err(Refusal::Fields(body.problems)),
        }
    }

    /// # Errors
    /// [`Refusal::NotObject`], [`Refusal::Fields`].
    pub(crate) fn wallet(body: &[u8]) -> Result<DeedRequest, Refusal> {
        let value = object(body)?;
        let mut body = Body::new(&value);
        let user = named(&mut body);
        let kind = required(&mut body, "kind", "is not competition", |text| (text == "competition").then_some(()));
        let balance = required(&mut body, "balance", "is not an amount above zero with at most six decimals", balance);
        let label = body.text("label", LABEL_CHARS_MAX).map(str::to_owned);
        match (user, kind, balance) {
            (Some(user), Some(()), Some(balance)) if body.problems.is_empty() => {
                Ok(DeedRequest { user, deed: Deed::OpenWallet { label, balance } })
            }
            _ => Err(Refusal::Fields(body.problems)),
        }
    }
}

/// Does what was asked for, in the shard of the user.
///
/// # Errors
/// [`Refusal::NoUser`], [`Refusal::Unavailable`], [`Refusal::Unknown`]; [`Refusal::Impossible`] if the user cannot have it.
pub(crate) async fn administer(node: &impl Node, request: DeedRequest) -> Result<Reply, Refusal> {
    let DeedRequest { user, deed } = request;
    let busy = || Refusal::Unavailable("the shard of the user has no room now".to_owned());
    let (user, done) = node.administer(&user, deed.clone()).map_err(|why| match why {
        NoDeed::UnknownUser | NoDeed::UnknownKey => Refusal::NoUser,
        NoDeed::Busy => busy(),
    })?;
    let done = tokio::time::timeout(DONE_WITHIN, done).await;
    let done = done.map_err(|_| Refusal::Unknown)?;
    let done = done.map_err(|_| Refusal::Lost)?.map_err(|_| busy())?;
    let mut json = Vec::with_capacity(256);
    match (&done, &deed) {
        (Done::Refused(why), _) => return Err(Refusal::Impossible(why)),
        (Done::Granted, Deed::Grant { tier, until }) => write::object(&mut json, |o| {
            o.integer("user_id", user.0);
            o.word("plan", PLANS[*tier as usize].0);
            o.ts_or_null("expires_at", *until);
        }),
        (Done::Opened(wallet), Deed::OpenWallet { .. }) => write::object(&mut json, |o| {
            o.integer("user_id", user.0);
            o.integer("wallet_id", wallet.id.0);
            o.word("kind", "COMPETITION");
            o.text_or_null("label", wallet.label());
            o.money("balance", wallet.cash);
        }),
        _ => return Err(Refusal::Lost),
    }
    tracing::info!(user = user.0, ?deed, "an administrator changed a user");
    Ok(Reply::Json(json))
}

/// Returns a whole payment at the provider.
///
/// # Errors
/// [`Refusal::NotObject`], [`Refusal::Fields`], [`Refusal::NoUser`], [`Refusal::Impossible`],
/// [`Refusal::ProviderAway`], [`Refusal::Unavailable`], [`Refusal::Unknown`].
pub(crate) async fn refund(node: &impl Node, body: &[u8]) -> Result<Reply, Refusal> {
    let value = object(body)?;
    let mut body = Body::new(&value);
    let user = named(&mut body);
    let payment = required(&mut body, "purchase", "is empty", |text| (!text.is_empty()).then(|| text.to_owned()));
    let (Some(user), Some(payment)) = (user, payment) else { return Err(Refusal::Fields(body.problems)) };
    let (user, refunding) = node.refund(&user, payment.clone()).map_err(|_| Refusal::NoUser)?;
    // The call to the provider has an end of its own, and this covers the shard also.
    let refund = tokio::time::timeout(2 * DONE_WITHIN, refunding).await.map_err(|_| Refusal::Unknown)?;
    let refund = refund.map_err(|why| match why {
        NoRefund::Impossible(why) => Refusal::Impossible(why),
        NoRefund::Away => Refusal::ProviderAway,
        NoRefund::Busy => Refusal::Unavailable("there is no room for the call now".to_owned()),
    })?;
    tracing::info!(user = user.0, "an administrator returned a payment");
    let mut json = Vec::with_capacity(128);
    write::object(&mut json, |o| {
        o.integer("user_id", user.0);
        o.text("purchase", &payment);
        o.text("refund", &refund);
    });
    Ok(Reply::Json(json))
}

pub(crate) fn object(body: &[u8]) -> Result<Value<'_>, Refusal> {
    match read::json(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(Refusal::NotObject),
    }
}

/// The field `user`: an id as a number, or a text as on the command line.
pub(crate) fn named(body: &mut Body<'_, '_>) -> Option<Named> {
    match body.get("user") {
        None => {
            body.missing("user");
            None
        }
        Some(Value::Text(_)) => {
            let text = body.text("user", SUB_CHARS_MAX)?;
            if text.is_empty() {
                body.problems.add("body", "user", "value_error", "is empty");
                return None;
            }
            Some(Named::of(text))
        }
        Some(_) => body.integer("user", 1..=u64::MAX).map(|id| Named::Id(UserId(id))),
    }
}

pub(crate) fn required<T>(
    body: &mut Body<'_, '_>,
    field: &'static str,
    wrong: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    if body.get(field).is_none() {
        body.missing(field);
        return None;
    }
    let found = read(body.text(field, usize::MAX)?);
    if found.is_none() {
        body.problems.add("body", field, "value_error", wrong);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_or_name_their_first_wrong_field() {
        let grant = |user, tier, until| Ok(DeedRequest { user, deed: Deed::Grant { tier, until } });
        let sub = |text: &str| Named::Sub(text.to_owned());
        let id = |id| Named::Id(UserId(id));
        let rows: Vec<(&str, Result<DeedRequest, &str>)> = vec![
            (r#"{"user":7,"plan":"pro","until":"none"}"#, grant(id(7), Tier::Pro, None)),
            (r#"{"user":"7","plan":"free","until":"none"}"#, grant(id(7), Tier::Free, None)),
            (
                r#"{"user":"ada","plan":"pro_plus","until":"1970-01-01T00:00:01Z"}"#,
                grant(sub("ada"), Tier::ProPlus, Some(Timestamp(1_000_000))),
            ),
            (r#"{"plan":"pro","until":"none"}"#, Err("user")),
            (r#"{"user":"","plan":"pro","until":"none"}"#, Err("user")),
            (r#"{"user":0,"plan":"pro","until":"none"}"#, Err("user")),
            (r#"{"user":[],"plan":"pro","until":"none"}"#, Err("user")),
            (r#"{"user":7,"plan":"gold","until":"none"}"#, Err("plan")),
            (r#"{"user":7,"until":"none"}"#, Err("plan")),
            (r#"{"user":7,"plan":"pro"}"#, Err("until")),
            (r#"{"user":7,"plan":"pro","until":"tomorrow"}"#, Err("until")),
            (r#"{"user":7,"plan":"pro","until":7}"#, Err("until")),
            ("[]", Err("not an object")),
            ("", Err("not an object")),
        ];
        let mut cases = 0;
        let first = |refusal| match refusal {
            Refusal::Fields(problems) => problems.message().split(':').next().unwrap_or_default().to_owned(),
            Refusal::NotObject => "not an object".to_owned(),
            other => panic!("{other:?}"),
        };
        for (body, expected) in rows {
            let found = DeedRequest::grant(body.as_bytes()).map_err(first);
            assert_eq!(found, expected.map_err(str::to_owned), "{body}");
            cases += 1;
        }
        let wallet = |label: Option<&str>, dollars| {
            let deed = Deed::OpenWallet { label: label.map(str::to_owned), balance: Cash::from_dollars(dollars) };
            Ok(DeedRequest { user: id(7), deed })
        };
        let rows: Vec<(String, Result<DeedRequest, &str>)> = vec![
            (r#"{"user":7,"kind":"competition","balance":"5000"}"#.to_owned(), wallet(None, 5_000)),
            (r#"{"user":7,"kind":"competition","balance":"1","label":"cup"}"#.to_owned(), wallet(Some("cup"), 1)),
            (r#"{"user":7,"kind":"sandbox","balance":"5000"}"#.to_owned(), Err("kind")),
            (r#"{"user":7,"kind":"competition","balance":"0"}"#.to_owned(), Err("balance")),
            (r#"{"user":7,"kind":"competition","balance":"-5"}"#.to_owned(), Err("balance")),
            (r#"{"user":7,"kind":"competition","balance":"1e9"}"#.to_owned(), Err("balance")),
            (r#"{"user":7,"kind":"competition","balance":"600000000000"}"#.to_owned(), Err("balance")),
            (r#"{"user":7,"kind":"competition"}"#.to_owned(), Err("balance")),
            (format!(r#"{{"user":7,"kind":"competition","balance":"5","label":"{}"}}"#, "x".repeat(65)), Err("label")),
        ];
        for (body, expected) in rows {
            let found = DeedRequest::wallet(body.as_bytes()).map_err(first);
            assert_eq!(found, expected.map_err(str::to_owned), "{body}");
            cases += 1;
        }
        println!("bodies of administrators: {cases} cases");
    }
}
