//! The caller, its plan and its wallets (gateway/docs/accounts.md §1, §2).

pub mod entitlements;
pub mod wallets;

use super::account::view::CurrencyName;
use super::keys::view::{PermissionName, TierName, permission_names};
use super::refuse::unexpected;
use super::wallets::{WALLET_ID, covers, in_query};
use crate::http::call::{Call, Caller};
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Route};
use crate::http::scalar::Money;
use engine::amount::nearest;
use engine::command::{Answer, Command, Query, Wallets};
use engine::user::Permissions;
use engine::view::UserView;
use wire::fields::Params;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/me", "get_me")
        .about("The caller's identity and plan. `wallet_id` says whose balance is shown.")
        .auth(Auth::KeyOrJwt)
        .params(&[WALLET_ID])
        .gives::<Me<'_>>(200)
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

record! {
    /// The caller.
    struct Me<'a> {
        user_id: u64 = 42;
        balance: Money = Money::of("81.40"), "Available cash of the chosen wallets.";
        currency: CurrencyName = "USD".into();
        key_count: u64 = 2, "Active keys.";
        tier: TierName = "free".into(), "Of the key, or of the plan.";
        permissions: Vec<PermissionName> = permission_names(Permissions::ReadTrade),
            "Of the key, or of one issued now.";
        auth_user_id: Option<&'a str> = Some("9b1f…"), "The subject of the session token.";
        email: Option<&'a str> = Some("trader@example.net");
    }
}

async fn me(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let wallets = in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let user = match call.ask(Command::Query(Query::User)).await? {
        Answer::User(user) => user,
        other => return Err(unexpected(&other, call.now)),
    };
    let chosen = user.wallets.iter().filter(|wallet| covers(wallets, wallet));
    if chosen.clone().next().is_none() {
        return Err(Code::WalletNotFound.into());
    }
    let sum: i128 = chosen.map(|wallet| i128::from(wallet.available().0)).sum();
    Ok(Reply::json(&Me::new(&user, Money(nearest(sum)), call.caller())))
}

impl<'a> Me<'a> {
    fn new(user: &'a UserView, balance: Money, caller: &Caller) -> Me<'a> {
        Me {
            user_id: user.id.0,
            balance,
            currency: "USD".into(),
            key_count: user.active_keys as u64,
            tier: caller.tier.into(),
            permissions: permission_names(caller.permissions),
            auth_user_id: user.sub.as_deref(),
            email: user.email.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::record::{Record as _, value};
    use engine::id::UserId;
    use engine::time::Timestamp;
    use engine::user::Tier;

    #[test]
    fn a_user_is_shown_as_in_the_example() {
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
        assert_eq!(value(&Me::new(&user, Money::of("81.40"), &caller)), value(&Me::example()));
    }
}
