//! Chats and webhooks that alerts go to (gateway/docs/integrations.md §3, §4).

use super::kinds::{self, EventType};
use super::port::{Delivery, DeliveryOutcome, NoTarget, NotSent};
use super::sender;
use crate::api::refuse::unexpected;
use crate::http::auth::uuid_text;
use crate::http::call::{self, Call};
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::{Timestamp, Uuid, words};
use engine::command::{Answer, Command, NewAlertTarget, Query, TargetChange};
use engine::user::alerts::{AlertKinds, Channel, TARGETS_PER_CHANNEL_MAX};
use engine::user::key::entitlement;
use engine::user::{AlertTarget, Tier};
use engine::view::{AlertsView, TargetView};
use std::borrow::Cow;
use wire::fields::Body;
use wire::value::Value;

const URL_CHARS_MAX: usize = 2_048;
const LABEL_CHARS_MAX: usize = 120;
const SECRET_CHARS_MIN: usize = 16;
const SECRET_CHARS_MAX: usize = 128;
/// Characters at the end of an address that are shown.
const SHOWN_CHARS: usize = 4;
/// The entitlement for adding a target.
const FEATURE: &str = "alerts.chat";

/// The routes that a handler belongs to: which channel, and which variable of the path is the id.
#[derive(Clone, Copy)]
pub struct Place {
    channel: Channel,
    id: usize,
}

pub const WEBHOOK: Place = Place { channel: Channel::Webhook, id: 0 };
/// The first variable of its paths is the name of the service.
pub const CHAT: Place = Place { channel: Channel::Chat, id: 1 };

words! {
    TargetRemovedText = "Subscription removed";
    TestStatus = "sent";
    OutcomeName = "delivered", "failed", "given_up", "disabled";
}

record! {
    /// A chat or webhook that alerts go to.
    pub struct Target<'a> {
        id: u32 = 4;
        label: Option<&'a str> = Some("fills");
        url_masked: Cow<'a, str> = "hooks.example.net/…k9Qz".into(), "Host and last characters of the address.";
        event_types: Vec<EventType> = vec!["order_filled".into(), "position_settled".into()];
        enabled: bool = true;
        created_at: Timestamp = Timestamp::of("2026-10-01T10:00:00Z");
        last_delivery_at: Option<Timestamp> = None;
        last_error: Option<&'a str> = None, "Why the last attempt failed; null after a delivery.";
        failures: u32 = 0, "Failed attempts in a row; 20 switch it off.";
    }

    /// All of a kind, the oldest first.
    pub struct TargetList<'a> {
        #[schemars(length(max = TARGETS_PER_CHANNEL_MAX))]
        subscriptions: Vec<Target<'a>> = Vec::example();
    }

    /// A chat webhook to add. Other fields are ignored.
    pub struct NewChat<'a> {
        #[schemars(length(min = 1, max = URL_CHARS_MAX))]
        url: &'a str = "https://discord.com/api/webhooks/1001/k9Qz", "On a host that the server allows, with https.";
        #[schemars(length(max = LABEL_CHARS_MAX), extend("x-or-null" = true))]
        label: Option<&'a str> = Some("fills"), skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        event_types: Option<Vec<EventType>> = Some(vec!["order_filled".into()]), "Null or absent: all.",
            skip_serializing_if;
    }

    /// A webhook to add. Other fields are ignored.
    pub struct NewWebhook<'a> {
        #[schemars(length(min = 1, max = URL_CHARS_MAX))]
        url: &'a str = "https://hooks.example.net/alerts/k9Qz", "With http or https.";
        #[schemars(length(max = LABEL_CHARS_MAX), extend("x-or-null" = true))]
        label: Option<&'a str> = Some("fills"), skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        event_types: Option<Vec<EventType>> = Some(vec!["order_filled".into()]), "Null or absent: all.",
            skip_serializing_if;
        #[schemars(length(min = SECRET_CHARS_MIN, max = SECRET_CHARS_MAX), extend("x-or-null" = true))]
        secret: Option<&'a str> = Some("0123456789abcdef0123"), "Signs the deliveries; it is never shown.",
            skip_serializing_if;
    }

    /// What is to change of a chat or webhook; absent fields stay.
    pub struct ChangedTarget<'a> {
        #[schemars(length(max = LABEL_CHARS_MAX), extend("x-or-null" = true))]
        label: Option<&'a str> = Some("fills"), "Null takes the old one away.", skip_serializing_if;
        enabled: Option<bool> = Some(true), "On again, its failures are forgotten.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        event_types: Option<Vec<EventType>> = Some(vec!["order_filled".into()]), "Null: all.", skip_serializing_if;
    }

    /// What was done.
    pub struct TargetRemoved {
        message: TargetRemovedText = "Subscription removed".into();
    }

    /// The target has taken the test.
    pub struct TestSent {
        status: TestStatus = "sent".into();
    }

    /// An attempt to deliver an alert.
    pub struct DeliveryRow<'a> {
        at: Timestamp = Timestamp::of("2026-10-02T09:30:00Z");
        event_id: Uuid<'a> = "5d4c0f6e-8f6b-8d1e-9f3c-2b1a09f8e7d6".into(), "`id` of the payload.";
        event_type: EventType = "order_filled".into();
        attempt: u32 = 1;
        outcome: OutcomeName = "failed".into(),
            "`failed`: another attempt follows; `given_up`: it was the last; `disabled`: the target was switched off.";
        http_status: Option<u16> = Some(503), "Null without an answer.";
        error: Option<&'a str> = Some("the target answered 503");
    }

    /// The last attempts, and what waits.
    pub struct DeliveryList<'a> {
        deliveries: Vec<DeliveryRow<'a>> = Vec::example();
        owed: u64 = 3, "Alerts that wait for this target.";
        dropped: u64 = 0, "Alerts of the account that were dropped because too many waited.";
    }
}

/// The other targets of a channel do not exist under its path.
///
/// # Errors
/// `NOT_FOUND` for another name than that of the chat service.
fn exists(call: &Call, place: Place) -> Result<(), Refusal> {
    let is_here = place.channel == Channel::Webhook || call.variable(0) == call.front().settings.chat_service;
    if is_here { Ok(()) } else { Err(Code::NotFound.into()) }
}

fn id(call: &Call, place: Place) -> Result<u32, Refusal> {
    call::id(&call.variable(place.id)).and_then(|id| u32::try_from(id).ok()).ok_or_else(|| Code::NotFound.into())
}

pub async fn list(call: Call, place: Place) -> Outcome {
    exists(&call, place)?;
    let alerts = alerts(&call).await?;
    let own = alerts.targets.iter().map(|view| &view.target).filter(|target| target.channel == place.channel);
    Ok(Reply::json(&TargetList { subscriptions: own.map(Target::new).collect() }))
}

pub async fn add(call: Call, place: Place) -> Outcome {
    exists(&call, place)?;
    let mut new = {
        let body = call.json_object()?;
        new_target(&body, place.channel)?
    };
    if entitlement(call.caller().grant, call.now) == Tier::Free {
        return Err(Refusal::upgrade(FEATURE, &call.front().settings.http.upgrade_url));
    }
    match sender(&call)?.check(call.caller().user, place.channel, &new.url).await {
        Ok(url) => new.url = url,
        Err(NoTarget::Busy) => return Err(Code::ServerBusy.into()),
        Err(NoTarget::Wrong(why)) => return Err(Refusal::new(Code::InvalidRequest, why)),
    }
    match call.ask(Command::AddAlertTarget(Box::new(new))).await? {
        Answer::AlertTarget(target) => Ok(Reply::created(&Target::new(&target))),
        other => Err(unexpected(&other, call.now)),
    }
}

/// # Errors
/// `VALIDATION_FAILED`.
fn new_target(value: &Value<'_>, channel: Channel) -> Result<NewAlertTarget, Refusal> {
    let mut body = Body::new(value);
    let url = body.text("url", URL_CHARS_MAX);
    if url.is_none_or(str::is_empty) && body.problems.is_empty() {
        body.missing("url");
    }
    let label = body.text("label", LABEL_CHARS_MAX).map(str::to_owned);
    let kinds = kinds::in_body(value, &mut body).unwrap_or(AlertKinds::ALL);
    let secret = match channel {
        Channel::Webhook => body.text("secret", SECRET_CHARS_MAX),
        Channel::Chat => None,
    };
    if secret.is_some_and(|secret| secret.chars().count() < SECRET_CHARS_MIN) {
        let message = format!("has fewer than {SECRET_CHARS_MIN} characters");
        body.problems.add("body", "secret", "string_too_short", message);
    }
    if !body.problems.is_empty() {
        return Err(Refusal::validation(&body.problems));
    }
    let (url, secret) = (url.unwrap_or_default().to_owned(), secret.map(str::to_owned));
    Ok(NewAlertTarget { channel, url, secret, label, kinds })
}

pub async fn change(call: Call, place: Place) -> Outcome {
    exists(&call, place)?;
    let change = {
        let body = call.json_object()?;
        changed(&body)?
    };
    let target = id(&call, place)?;
    match call.ask(Command::ChangeAlertTarget { channel: place.channel, target, change }).await? {
        Answer::AlertTarget(target) => Ok(Reply::json(&Target::new(&target))),
        other => Err(unexpected(&other, call.now)),
    }
}

/// # Errors
/// `VALIDATION_FAILED`.
fn changed(value: &Value<'_>) -> Result<TargetChange, Refusal> {
    let mut body = Body::new(value);
    let is_null = matches!(value.get("label"), Some(Value::Null));
    let label = body.text("label", LABEL_CHARS_MAX).map(str::to_owned);
    // Of the three fields only this one has no meaning for null.
    if matches!(value.get("enabled"), Some(Value::Null)) {
        body.problems.add("body", "enabled", "bool_type", "is null, not a boolean");
    }
    let is_enabled = body.boolean("enabled");
    let kinds = kinds::in_body(value, &mut body);
    if !body.problems.is_empty() {
        return Err(Refusal::validation(&body.problems));
    }
    let label = if is_null { Some(None) } else { label.map(Some) };
    Ok(TargetChange { label, is_enabled, kinds })
}

pub async fn remove(call: Call, place: Place) -> Outcome {
    exists(&call, place)?;
    let target = id(&call, place)?;
    match call.ask(Command::RemoveAlertTarget { channel: place.channel, target }).await? {
        Answer::Done => {
            if let Some(integrations) = call.reads().integrations.as_deref() {
                integrations.forget(call.caller().user, target);
            }
            Ok(Reply::json(&TargetRemoved { message: "Subscription removed".into() }))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

pub async fn test(call: Call, place: Place) -> Outcome {
    exists(&call, place)?;
    let (view, _) = one(&call, place).await?;
    match sender(&call)?.test(call.caller().user, &view.target, call.now).await {
        Ok(()) => Ok(Reply::json(&TestSent { status: "sent".into() })),
        Err(NotSent::Busy | NotSent::TooSoon(_)) => Err(Code::ServerBusy.into()),
        Err(NotSent::Failed(why)) => {
            Err(Refusal::new(Code::UpstreamUnavailable, format!("The target did not take the test: {why}")))
        }
    }
}

pub async fn deliveries(call: Call, place: Place) -> Outcome {
    exists(&call, place)?;
    let (view, dropped) = one(&call, place).await?;
    let made = match call.reads().integrations.as_deref() {
        Some(integrations) => integrations.deliveries(call.caller().user, view.target.id),
        None => Vec::new(),
    };
    let deliveries = made.iter().map(DeliveryRow::new).collect();
    Ok(Reply::json(&DeliveryList { deliveries, owed: view.owed as u64, dropped }))
}

/// The target of the path, and the alerts that were dropped.
///
/// # Errors
/// `NOT_FOUND`.
async fn one(call: &Call, place: Place) -> Result<(TargetView, u64), Refusal> {
    let id = id(call, place)?;
    let alerts = alerts(call).await?;
    let dropped = alerts.dropped;
    let found = alerts.targets.into_iter().find(|view| (view.target.id, view.target.channel) == (id, place.channel));
    found.map(|view| (view, dropped)).ok_or_else(|| Code::NotFound.into())
}

async fn alerts(call: &Call) -> Result<AlertsView, Refusal> {
    match call.ask(Command::Query(Query::Alerts)).await? {
        Answer::Alerts(alerts) => Ok(*alerts),
        other => Err(unexpected(&other, call.now)),
    }
}

impl<'a> Target<'a> {
    fn new(target: &'a AlertTarget) -> Target<'a> {
        Target {
            id: target.id,
            label: target.label.as_deref(),
            url_masked: masked(&target.url).into(),
            event_types: kinds::listed(target.kinds),
            enabled: target.is_enabled,
            created_at: Timestamp(target.created_at),
            last_delivery_at: target.last_delivery_at.get().map(Timestamp),
            last_error: target.last_error.as_deref(),
            failures: target.failures,
        }
    }
}

/// The host of an address, and the last characters of the rest: the rest is a secret of chats and of many webhooks.
fn masked(url: &str) -> String {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let (authority, rest) = after.split_at(after.find(['/', '\\', '?', '#']).unwrap_or(after.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // No more than a half of a short secret.
    let shown = SHOWN_CHARS.min(rest.chars().count() / 2);
    let last: String = rest.chars().skip(rest.chars().count() - shown).collect();
    format!("{host}/…{last}")
}

impl<'a> DeliveryRow<'a> {
    fn new(delivery: &'a Delivery) -> DeliveryRow<'a> {
        let outcome = match delivery.outcome {
            DeliveryOutcome::Delivered => "delivered",
            DeliveryOutcome::Failed => "failed",
            DeliveryOutcome::GivenUp => "given_up",
            DeliveryOutcome::Disabled => "disabled",
        };
        DeliveryRow {
            at: Timestamp(delivery.at),
            event_id: uuid_text(&delivery.event).to_string().into(),
            event_type: kinds::name(delivery.kind).into(),
            attempt: delivery.attempt,
            outcome: outcome.into(),
            http_status: delivery.status,
            error: delivery.error.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_masked() {
        let rows = [
            ("https://hooks.example.net/services/T0/B0/abcdk9Qz", "hooks.example.net/…k9Qz"),
            ("https://hooks.example.net:8443/abcdefgh", "hooks.example.net:8443/…efgh"),
            ("http://user:pass@h.example/abcdefgh", "h.example/…efgh"),
            ("http://h.example", "h.example/…"),
            ("http://h.example/", "h.example/…"),
            ("http://h.example/abc", "h.example/…bc"),
            ("http://h.example?token=abcdefgh", "h.example/…efgh"),
            ("http://h.example/ééééééééé", "h.example/…éééé"),
            // A parser of addresses takes a backslash for a slash.
            (r"https://hooks.example.net\services\T0\abcdefgh", "hooks.example.net/…efgh"),
            ("nonsense", "nonsense/…"),
            ("", "/…"),
        ];
        for (url, expected) in rows {
            assert_eq!(masked(url), expected, "{url}");
        }
        println!("masked addresses: {} cases", rows.len());
    }
}
