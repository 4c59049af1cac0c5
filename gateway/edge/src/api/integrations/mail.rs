//! Alerts by mail (gateway/docs/integrations.md §2): the choice of each kind, and the test mail.

use super::kinds::{self, EventType};
use super::port::NotSent;
use super::sender;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::mailbox::is_mailbox;
use crate::http::record::{ByName, Record, record};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::{Timestamp, words};
use engine::command::{Answer, Command, Query};
use engine::time::SECOND;
use engine::user::alerts::{AlertKind, AlertKinds};
use engine::view::AlertsView;
use schemars::JsonSchema;
use serde::Serialize;
use wire::fields::Problems;
use wire::value::Value;

/// Kinds that cannot be switched off.
const LOCKED: AlertKinds = AlertKinds::of(&[AlertKind::SystemNotice]);
/// Test mails of a user in a minute.
const TESTS_PER_MINUTE: u32 = 1;

words! {
    TestStatus = "sent";
    TestEvent = "system_notice";
}

record! {
    /// Whether alerts of a type go by mail.
    pub struct Preference {
        event_type: EventType = "order_filled".into();
        enabled: bool = false;
        default: bool = false, "While the user has chosen nothing.";
        locked: bool = false, "It cannot be switched off.";
    }

    /// Where mail goes, and the choice of every type in its order.
    pub struct Preferences<'a> {
        email: Option<&'a str> = Some("trader@example.net"), "Null: no mail goes out.";
        email_verified: bool = true, "Whether there is one: an unverified address is not kept.";
        preferences: Vec<Preference> = preferences(AlertKinds::BY_MAIL);
    }

    /// A test mail that was sent.
    pub struct TestMail<'a> {
        status: TestStatus = "sent".into();
        email: &'a str = "trader@example.net";
        event_type: TestEvent = "system_notice".into();
        message_id: &'a str = "0b6a4d1c-5c2e-4f7b-9a53-3d1f5a0c7e21@example.net", "Its `Message-ID`.";
        sent_at: Timestamp = Timestamp::of("2026-10-02T09:30:00Z");
    }
}

/// Choices by type: those that are to change.
#[derive(Serialize, JsonSchema)]
pub struct Choices {
    preferences: ByName<EventType, bool>,
}

impl Record for Choices {
    fn example() -> Choices {
        Choices { preferences: ByName(vec![("order_filled".into(), true)]) }
    }
}

fn preferences(mail: AlertKinds) -> Vec<Preference> {
    let one = |kind| Preference {
        event_type: kinds::name(kind).into(),
        enabled: mail.contains(kind),
        default: AlertKinds::BY_MAIL.contains(kind),
        locked: LOCKED.contains(kind),
    };
    AlertKind::ALL.into_iter().map(one).collect()
}

pub async fn get(call: Call) -> Outcome {
    Ok(Reply::json(&Preferences::new(&alerts(&call).await?)))
}

pub async fn change(call: Call) -> Outcome {
    let body = call.json_object()?;
    let (on, off) = choices(&body)?;
    if off.iter().any(|kind| LOCKED.contains(kind)) {
        return Err(Refusal::new(Code::InvalidRequest, "system_notice cannot be switched off."));
    }
    match call.ask(Command::ChooseMail { on, off }).await? {
        Answer::Alerts(alerts) => Ok(Reply::json(&Preferences::new(&alerts))),
        other => Err(unexpected(&other, call.now)),
    }
}

/// The kinds to switch on and off.
///
/// # Errors
/// `VALIDATION_FAILED` for an unknown type and for a value that is not a boolean.
fn choices(body: &Value<'_>) -> Result<(AlertKinds, AlertKinds), Refusal> {
    let mut problems = Problems::default();
    let (mut on, mut off) = (Vec::new(), Vec::new());
    match body.get("preferences") {
        Some(Value::Object(fields)) => {
            for (name, value) in fields {
                match (kinds::named(name), value) {
                    (Some(kind), Value::Bool(true)) => on.push(kind),
                    (Some(kind), Value::Bool(false)) => off.push(kind),
                    (Some(_), other) => {
                        let field = format!("preferences.{name}");
                        problems.add("body", &field, "bool_type", format!("is {}, not a boolean", other.kind()));
                    }
                    (None, _) => {
                        let message = format!("holds an unknown type; known are {}", kinds::NAMES.join(", "));
                        problems.add("body", "preferences", "literal_error", message);
                    }
                }
            }
        }
        None | Some(Value::Null) => problems.add("body", "preferences", "missing", "is required"),
        Some(other) => {
            problems.add("body", "preferences", "dict_type", format!("is {}, not an object", other.kind()));
        }
    }
    if problems.is_empty() {
        Ok((AlertKinds::of(&on), AlertKinds::of(&off)))
    } else {
        Err(Refusal::validation(&problems))
    }
}

/// Checks in the order of gateway/docs/integrations.md §2.
pub async fn test(call: Call) -> Outcome {
    let mailer = call.reads().integrations.as_deref().filter(|integrations| integrations.has_mailer());
    let no_mailer = || Refusal::new(Code::NotFound, "This server sends no mail: email.smtp_url is not set.");
    mailer.ok_or_else(no_mailer)?;
    let alerts = alerts(&call).await?;
    let Some(email) = address(&alerts) else {
        return Err(Refusal::new(Code::InvalidRequest, "The account has no email address."));
    };
    match sender(&call)?.test_mail(call.caller().user, email, call.now).await {
        Ok(sent) => Ok(Reply::json(&TestMail {
            status: "sent".into(),
            email,
            event_type: "system_notice".into(),
            message_id: &sent.message_id,
            sent_at: Timestamp(sent.at),
        })),
        Err(NotSent::Busy) => Err(Code::ServerBusy.into()),
        Err(NotSent::TooSoon(after)) => {
            let resets_at = call.now.plus(u64::from(after) * SECOND);
            Err(Refusal::rate_limit("minute", TESTS_PER_MINUTE, resets_at, after))
        }
        Err(NotSent::Failed(why)) => Err(Refusal::new(Code::UpstreamUnavailable, format!("No mail was sent: {why}"))),
    }
}

async fn alerts(call: &Call) -> Result<AlertsView, Refusal> {
    match call.ask(Command::Query(Query::Alerts)).await? {
        Answer::Alerts(alerts) => Ok(*alerts),
        other => Err(unexpected(&other, call.now)),
    }
}

/// The address that mail goes to. Earlier versions kept any text of a token.
fn address(alerts: &AlertsView) -> Option<&str> {
    alerts.email.as_deref().filter(|email| is_mailbox(email))
}

impl<'a> Preferences<'a> {
    fn new(alerts: &'a AlertsView) -> Preferences<'a> {
        let email = address(alerts);
        Preferences {
            email,
            // Only the identity provider's token gives an address, and one that it calls unverified is not read.
            email_verified: email.is_some(),
            preferences: preferences(alerts.mail),
        }
    }
}
