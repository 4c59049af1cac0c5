//! Who the caller is, what his plan includes, and his wallets (account.md §1, §2).

pub mod entitlements;
pub mod wallets;

use super::keys::view::permissions;
use super::refuse::unexpected;
use super::wallets::{self as asked_wallets, WALLET_ID};
use crate::http::call::{Call, Caller};
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Route};
use crate::http::schema::{INTEGER, MONEY, Schema, Shape, TEXT_OR_NULL, field};
use crate::settings::TIERS;
use engine::amount::Cash;
use engine::command::{Answer, Command, Query, Wallets};
use engine::view::UserView;
use wire::fields::Params;
use wire::write::object;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/me", "get_me")
        .about("Who the caller is. `wallet_id` says whose balance is shown.")
        .auth(Auth::KeyOrJwt)
        .params(&[WALLET_ID])
        .gives_shape(200, &ME, EXAMPLE)
        .fails(&[Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(me(call))),
    entitlements::GET,
    wallets::LIST,
    wallets::OPEN,
    wallets::GET,
    wallets::RELABEL,
    wallets::ARCHIVE,
    wallets::RESET,
];

const ME: Schema = Schema::Object(&Shape::new(
    "Me",
    "The caller.",
    &[
        field("user_id", INTEGER, ""),
        field("balance", MONEY, "Available cash of the chosen wallets."),
        field("currency", Schema::Word(&["USD"]), ""),
        field("key_count", INTEGER, "Active keys."),
        field("tier", Schema::Word(&["free", "pro", "pro_plus", "enterprise"]), "Of the key, or of the plan."),
        field("permissions", Schema::Array(&Schema::Word(&["read", "trade"])), "Of the key, or of one issued now."),
        field("auth_user_id", TEXT_OR_NULL, "The subject of the session token."),
        field("email", TEXT_OR_NULL, ""),
    ],
));

/// The example of account.md §6.
const EXAMPLE: &str = r#"{"user_id":42,"balance":"81.40","currency":"USD","key_count":2,"tier":"free","permissions":["read","trade"],"auth_user_id":"9b1f…","email":"trader@example.net"}"#;

async fn me(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let asked = asked_wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let user = match call.ask(Command::Query(Query::User)).await? {
        Answer::User(user) => user,
        other => return Err(unexpected(&other, call.now)),
    };
    let chosen = user.wallets.iter().filter(|wallet| asked_wallets::covers(asked, wallet));
    if chosen.clone().next().is_none() {
        return Err(Code::WalletNotFound.into());
    }
    let sum: i128 = chosen.map(|wallet| i128::from(wallet.available().0)).sum();
    let balance = Cash(sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64);
    let mut out = Vec::with_capacity(256);
    write(&mut out, &user, balance, call.caller());
    Ok(Reply::json(out))
}

fn write(out: &mut Vec<u8>, user: &UserView, balance: Cash, caller: &Caller) {
    object(out, |o| {
        o.integer("user_id", user.id.0);
        o.money("balance", balance);
        o.word("currency", "USD");
        o.integer("key_count", user.active_keys as u64);
        o.word("tier", TIERS[caller.tier as usize].1);
        permissions(o, caller.permissions);
        o.text_or_null("auth_user_id", user.sub.as_deref());
        o.text_or_null("email", user.email.as_deref());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::id::UserId;
    use engine::time::Timestamp;
    use engine::user::{Permissions, Tier};

    #[test]
    fn a_user_is_shown_as_in_the_contract() {
        let user = UserView {
            id: UserId(42),
            sub: Some("9b1f…".into()),
            email: Some("trader@example.net".into()),
            created_at: Timestamp(1),
            grant: None,
            active_keys: 2,
            wallets: Vec::new(),
        };
        let permissions = Permissions::ReadTrade;
        let caller = Caller { user: user.id, key: None, tier: Tier::Free, permissions, grant: None, expires_at: None };
        let mut out = Vec::new();
        write(&mut out, &user, Cash(81_400_000), &caller);
        assert_eq!(String::from_utf8(out).unwrap(), EXAMPLE);
    }
}
