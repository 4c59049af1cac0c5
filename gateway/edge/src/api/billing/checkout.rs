//! Pages of the payment provider: for a plan, a purchase, and changes (gateway/docs/billing.md §1, §2).

use super::provider::{Checkout, Desk, Failed, Portal, Wanted};
use super::request::{AskedPlan, AskedPurchase, PlanCheckout, TopupCheckout};
use super::{Link, billing, shown};
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, Command, Query};
use engine::id::WalletId;
use engine::time::Timestamp;
use engine::user::billing::{Billing, PURCHASES_MAX, Subscription};
use engine::user::{Wallet, WalletKind};
use engine::view::UserView;

/// A page for a plan; while a subscription of its kind lives, the page that changes it.
pub async fn plan(call: Call) -> Outcome {
    let desk = desk(&call)?;
    let AskedPlan { product, interval } = PlanCheckout::read(&call.json_object()?)?;
    let billing = billing(&call).await?;
    let living = living(&billing, product.is_simulation(), call.now).find(|known| desk.provider.knows(&known.id));
    let has = living.and_then(|known| known.terms.as_ref()).map(|terms| terms.product);
    if has == Some(product) {
        return Err(Refusal::new(Code::InvalidRequest, "The account is on this plan already."));
    }
    if !desk.provider.sells(product, interval) {
        return Err(Refusal::new(Code::InvalidRequest, "This plan is not sold here."));
    }
    let instead_of = living.map(|known| known.id.to_string());
    page(&call, desk, &billing, Wanted::Plan { product, interval, instead_of }).await
}

/// A page for something that is bought once.
pub async fn topup(call: Call) -> Outcome {
    let desk = desk(&call)?;
    let AskedPurchase { sku, wallet } = TopupCheckout::read(&call.json_object()?)?;
    let wallet = wallet.map(WalletId);
    if let Some(wallet) = wallet {
        let known = user(&call).await?.wallets.into_iter().find(|known| known.id == wallet);
        let known = known.filter(Wallet::is_active).ok_or(Code::WalletNotFound)?;
        if known.kind != WalletKind::Sandbox {
            return Err(Refusal::new(
                Code::InvalidRequest,
                "A top-up needs sandbox_wallet_id, an active SANDBOX wallet.",
            ));
        }
    }
    let billing = billing(&call).await?;
    if billing.purchases().len() >= PURCHASES_MAX {
        return Err(Refusal::new(Code::InvalidRequest, "There have been too many purchases; no more can be made."));
    }
    page(&call, desk, &billing, Wanted::Purchase { sku, wallet }).await
}

/// The page for changes and the end of a subscription.
pub async fn portal(call: Call) -> Outcome {
    let desk = desk(&call)?;
    let billing = billing(&call).await?;
    let Some(customer) = billing.customer.as_deref().filter(|customer| desk.provider.knows(customer)) else {
        return Err(Refusal::new(Code::InvalidRequest, "The account has bought nothing yet."));
    };
    let _turn = desk.turn(call.caller().user).ok_or(Code::ServerBusy)?;
    let subscription = shown(&billing).filter(|known| known.is_live_at(call.now));
    let portal = Portal { user: call.caller().user, customer, base: call.base_url(), subscription, now: call.now };
    let url = desk.provider.portal(portal).await.map_err(|why| match why {
        Failed::NoCustomer => Refusal::new(
            Code::InvalidRequest,
            "The payment provider does not have this customer any more; a checkout makes a new one.",
        ),
        other => refused(other),
    })?;
    Ok(Reply::json(&Link { url: &url }))
}

/// Subscriptions of a kind that are still paid, newest terms first.
fn living(billing: &Billing, is_simulation: bool, now: Timestamp) -> impl Iterator<Item = &Subscription> {
    let of_kind = move |known: &&Subscription| {
        known.is_live_at(now)
            && known.terms.as_ref().is_some_and(|terms| terms.product.is_simulation() == is_simulation)
    };
    let mut living: Vec<_> = billing.subscriptions().iter().filter(of_kind).collect();
    living.sort_by_key(|known| std::cmp::Reverse(known.terms.as_ref().map(|terms| terms.created)));
    living.into_iter()
}

async fn page(call: &Call, desk: &Desk, billing: &Billing, wanted: Wanted) -> Outcome {
    // What is bought could not be noted.
    if !call.reads().rules.formats.is_newest() {
        return Err(Code::ServerBusy.into());
    }
    let (user, base, now) = (call.caller().user, call.base_url(), call.now);
    let _turn = desk.turn(user).ok_or(Code::ServerBusy)?;
    let ask = |customer, wanted| desk.provider.checkout(Checkout { user, customer, base: base.clone(), wanted, now });
    let known = billing.customer.as_deref();
    let Some(customer) = known.filter(|customer| desk.provider.knows(customer)) else {
        let customer = new_customer(call, desk, known).await?;
        let url = ask(customer, wanted).await.map_err(refused)?;
        return Ok(Reply::json(&Link { url: &url }));
    };
    let url = match ask(customer.to_owned(), wanted.clone()).await {
        // It was deleted there, which also ended its subscriptions.
        Err(Failed::NoCustomer) => {
            tracing::warn!(user = user.0, customer, "the payment provider does not have a customer; a new one is made");
            let customer = new_customer(call, desk, known).await?;
            ask(customer, wanted.of_a_new_customer()).await
        }
        answer => answer,
    };
    let url = url.map_err(refused)?;
    Ok(Reply::json(&Link { url: &url }))
}

/// Makes the customer of the caller, in the place of one that the provider does not know.
async fn new_customer(call: &Call, desk: &Desk, instead_of: Option<&str>) -> Result<String, Refusal> {
    let (caller, user) = (call.caller().user, user(call).await?);
    let making = desk.provider.customer(caller, user.email.as_deref(), instead_of, call.now);
    let customer = making.await.map_err(refused)?;
    let instead_of = instead_of.map(str::to_owned);
    match call.ask(Command::NoteCustomer { customer, instead_of }).await? {
        Answer::Billing(billing) => {
            billing.customer.map(String::from).ok_or_else(|| Refusal::from(Code::InternalError))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

async fn user(call: &Call) -> Result<Box<UserView>, Refusal> {
    match call.ask(Command::Query(Query::User)).await? {
        Answer::User(user) => Ok(user),
        other => Err(unexpected(&other, call.now)),
    }
}

/// The provider; its gate is open, so there is one.
pub(super) fn desk(call: &Call) -> Result<&Desk, Refusal> {
    call.edge.app.billing.as_ref().ok_or_else(|| Code::NotFound.into())
}

fn refused(why: Failed) -> Refusal {
    match why {
        Failed::Away | Failed::NoCustomer => {
            Refusal::new(Code::UpstreamUnavailable, "The payment provider does not answer.")
        }
        Failed::Busy => Code::ServerBusy.into(),
    }
}
