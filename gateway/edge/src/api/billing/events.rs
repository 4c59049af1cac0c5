//! Events of the payment provider: checked, matched with their user, and applied (gateway/docs/billing.md §4).

use super::checkout::desk;
use super::provider::{Counted, Desk, NotGenuine, Notice, Reading};
use crate::api::refuse::unexpected;
use crate::engine_client::AskError;
use crate::http::call::{Call, unanswered};
use crate::http::code::Code;
use crate::http::record::{ByName, record};
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, BillingNews, BillingOutcome, Command, Query};
use engine::id::UserId;
use engine::reject::Reject;

/// Bytes of an event at most, also where `http.body_bytes_max` allows more.
pub(super) const BODY_BYTES_MAX: usize = 256 << 10;

record! {
    /// An event of the payment provider, in its own form; these fields are read, and some of its object.
    pub struct ProviderEvent<'a> {
        id: &'a str = "evt_1";
        #[serde(rename = "type")]
        kind: &'a str = "customer.subscription.updated";
        created: u64 = 1_790_932_500, "Unix seconds.";
        data: ByName<&'a str, serde_json::Value> = ByName(vec![("object", serde_json::json!({"id": "sub_1"}))]),
            "The object that it is about.";
    }

    /// The event has arrived.
    pub struct Received {
        received: bool = true;
    }
}

/// An event by the webhook. All genuine ones have the same answer.
pub async fn webhook(call: Call) -> Outcome {
    let desk = desk(&call)?;
    if call.body.len() > BODY_BYTES_MAX {
        let message = format!("The body is larger than {BODY_BYTES_MAX} bytes.");
        return Err(Refusal::new(Code::Http413, message).closing());
    }
    let mut signatures = call.headers.get_all(desk.provider.signature_header()).iter();
    let signature = signatures.next().filter(|_| signatures.next().is_none()).map(|value| value.as_bytes());
    let read = desk.provider.read(&call.body, signature, call.reads().clock.wall_now());
    match read {
        Err(NotGenuine) => {
            desk.count(Counted::NotGenuine);
            Err(Refusal::new(Code::InvalidRequest, "This is not an event with a valid signature."))
        }
        Ok(Reading::Nothing { why, event, kind }) => {
            let counted = Counted::from(why);
            desk.count(counted);
            if counted != Counted::Ignored {
                tracing::warn!(event, kind, why = counted.name(), "an event of the payment provider has no effect");
            }
            Ok(received())
        }
        Ok(Reading::Notice(notice)) => apply(&call, desk, *notice).await.map(|_| received()),
    }
}

/// The event of a link that this server made. `HEAD` answers as `GET` would and applies nothing.
pub async fn confirm(call: Call) -> Outcome {
    let desk = desk(&call)?;
    let used = || Refusal::new(Code::InvalidRequest, "The link is not valid, has ended, or was used already.");
    let Ok(notice) = desk.provider.confirm(&call.variable(0), call.now) else {
        desk.count(Counted::NotGenuine);
        return Err(used());
    };
    if call.is_head {
        return if is_new(&call, &notice).await? { Ok(received()) } else { Err(used()) };
    }
    match apply(&call, desk, notice).await? {
        Counted::Applied | Counted::NotCredited | Counted::SecondSubscription => Ok(received()),
        _ => Err(used()),
    }
}

fn received() -> Reply {
    Reply::json(&Received { received: true })
}

/// Applies an event to its user, and counts what became of it.
///
/// # Errors
/// The event is not applied, or that is not known: the provider sends it again.
async fn apply(call: &Call, desk: &Desk, notice: Notice) -> Result<Counted, Refusal> {
    let (event, kind, about) = (notice.event.id.clone(), notice.kind.clone(), About::of(&notice.event.news));
    let counted = match owner(call, &notice) {
        Err(counted) => Ok(counted),
        Ok(user) => deliver(call, user, notice).await,
    };
    match &counted {
        Ok(Counted::Applied | Counted::Repeated) => {}
        Ok(Counted::UnknownPrice) => {
            let About { subscription, price } = about;
            let why = Counted::UnknownPrice.name();
            tracing::warn!(
                event,
                kind,
                why,
                subscription,
                price,
                "a plan is kept without effect until its price is set"
            );
        }
        Ok(Counted::SecondSubscription) => {
            let (subscription, why) = (about.subscription, Counted::SecondSubscription.name());
            tracing::warn!(event, kind, why, subscription, "a user pays for a second subscription of the same kind");
        }
        Ok(other) => tracing::warn!(event, kind, why = other.name(), "an event of the payment provider has no effect"),
        Err(refusal) => {
            tracing::warn!(event, kind, code = refusal.code().text(), "an event of the payment provider is refused");
        }
    }
    desk.count(*counted.as_ref().unwrap_or(&Counted::Unavailable));
    counted
}

/// What the log says of an event of a subscription.
struct About {
    subscription: String,
    price: String,
}

impl About {
    fn of(news: &BillingNews) -> About {
        match news {
            BillingNews::Subscription(news) => {
                let price = news.price.clone().unwrap_or_default();
                About { subscription: news.subscription.clone(), price }
            }
            _ => About { subscription: String::new(), price: String::new() },
        }
    }
}

/// The user of an event: the one that it names, which must be that of its customer or payment.
fn owner(call: &Call, notice: &Notice) -> Result<UserId, Counted> {
    let directory = &call.reads().directory;
    let known = notice.name.as_deref().and_then(|name| directory.by_billed_name(name));
    match (notice.user, known) {
        (Some(named), Some(known)) if named != known => Err(Counted::OtherCustomer),
        (Some(named), _) if directory.exists(named) => Ok(named),
        (None, Some(known)) => Ok(known),
        _ => Err(Counted::UnknownUser),
    }
}

/// Whether an event has a user and was not processed yet.
async fn is_new(call: &Call, notice: &Notice) -> Result<bool, Refusal> {
    let Ok(user) = owner(call, notice) else { return Ok(false) };
    match call.edge.engine.ask(user, Command::Query(Query::Billing), call.now).await.map_err(unanswered)? {
        Answer::Billing(billing) => Ok(!billing.knows(&notice.event.id)),
        other => Err(unexpected(&other, call.now)),
    }
}

async fn deliver(call: &Call, user: UserId, notice: Notice) -> Result<Counted, Refusal> {
    let command = Command::Bill(Box::new(notice.event));
    let answer = match call.edge.engine.ask(user, command, call.now).await {
        Ok(answer) => answer,
        // It is in the log.
        Err(AskError::Overshot(answer)) => *answer,
        Err(error) => return Err(unanswered(error)),
    };
    match answer {
        Answer::Billed(BillingOutcome::Applied) => Ok(Counted::Applied),
        Answer::Billed(BillingOutcome::Repeated) => Ok(Counted::Repeated),
        Answer::Billed(BillingOutcome::OtherCustomer) => Ok(Counted::OtherCustomer),
        Answer::Billed(BillingOutcome::NotCredited) => Ok(Counted::NotCredited),
        Answer::Billed(BillingOutcome::UnknownPrice) => Ok(Counted::UnknownPrice),
        Answer::Billed(BillingOutcome::SecondSubscription) => Ok(Counted::SecondSubscription),
        Answer::Refused(Reject::InvalidTerms) => Ok(Counted::WrongFields),
        Answer::Refused(Reject::UserNotFound) => Ok(Counted::UnknownUser),
        other => Err(unexpected(&other, call.now)),
    }
}
