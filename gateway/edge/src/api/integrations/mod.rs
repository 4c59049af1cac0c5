//! Alerts by mail, chat and webhook (gateway/docs/integrations.md).
//!
//! | File | Holds |
//! |---|---|
//! | [`port`] | what sends alerts, as a port |
//! | [`kinds`] | names of the kinds of alerts |
//! | `mail.rs` | preferences of mail, and the test mail |
//! | `targets.rs` | chats and webhooks: list, add, change, remove, test, last deliveries |
//! | [`message`] | an alert as JSON, as a line of chat and as mail; pure |

pub mod kinds;
mod mail;
pub mod message;
pub mod port;
mod targets;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use crate::http::route::{Auth, BodyKind, Route};
use port::Integrations;

/// Codes of every write.
macro_rules! write_codes {
    ($($code:ident),*) => {
        &[$(Code::$code,)* Code::Http503, Code::TradeInProgress, Code::ServerBusy, Code::PersistenceUnknown,
            Code::DeadlineOvershotButPersisted]
    };
}

/// The six routes of a kind of target. `$chat`: the segment of the path is a variable.
macro_rules! target_routes {
    ($base:literal, $name:literal, $what:literal, $new:ty, $in:ident) => {
        [
            Route::get($base, concat!("list_", $name, "s"))
                .about(concat!("The ", $what, "s of the account that alerts go to."))
                .auth(Auth::KeyOrJwt)
                .gives::<targets::TargetList<'_>>(200)
                .fails(&[Code::NotFound])
                .run(|call| Box::pin(targets::list(call, targets::$in))),
            Route::post($base, concat!("add_", $name))
                .about(concat!("Adds a ", $what, " that alerts go to."))
                .auth(Auth::KeyOrJwt)
                .takes::<$new>()
                .gives::<targets::Target<'_>>(201)
                .fails(write_codes![NotFound, InvalidBody, ValidationFailed, UpgradeRequired, InvalidRequest])
                .run(|call| Box::pin(targets::add(call, targets::$in))),
            Route::patch(concat!($base, "/{id}"), concat!("change_", $name))
                .about(concat!("Changes label and event types of a ", $what, ", or switches it on or off."))
                .auth(Auth::KeyOrJwt)
                .takes::<targets::ChangedTarget<'_>>()
                .gives::<targets::Target<'_>>(200)
                .fails(write_codes![NotFound, InvalidBody, ValidationFailed])
                .run(|call| Box::pin(targets::change(call, targets::$in))),
            Route::delete(concat!($base, "/{id}"), concat!("remove_", $name))
                .about(concat!("Removes a ", $what, " with all deliveries that it is owed."))
                .auth(Auth::KeyOrJwt)
                .gives::<targets::TargetRemoved>(200)
                .fails(write_codes![NotFound])
                .run(|call| Box::pin(targets::remove(call, targets::$in))),
            Route::post(concat!($base, "/{id}/test"), concat!("test_", $name))
                .about(concat!("Sends a test to a ", $what, " once, without a place in its queue."))
                .auth(Auth::KeyOrJwt)
                .body(BodyKind::Ignored)
                .gives::<targets::TestSent>(200)
                .fails(&[Code::NotFound, Code::UpstreamUnavailable, Code::ServerBusy])
                .run(|call| Box::pin(targets::test(call, targets::$in))),
            Route::get(concat!($base, "/{id}/deliveries"), concat!("list_", $name, "_deliveries"))
                .about(concat!("The last attempts to deliver to a ", $what, " since the server started, newest first."))
                .auth(Auth::KeyOrJwt)
                .gives::<targets::DeliveryList<'_>>(200)
                .fails(&[Code::NotFound])
                .run(|call| Box::pin(targets::deliveries(call, targets::$in))),
        ]
    };
}

const MAIL: &[Route] = &[
    Route::get("/v1/integrations/email/preferences", "get_email_preferences")
        .about("Which alerts go by mail, and where.")
        .auth(Auth::KeyOrJwt)
        .gives::<mail::Preferences<'_>>(200)
        .run(|call| Box::pin(mail::get(call))),
    Route::patch("/v1/integrations/email/preferences", "change_email_preferences")
        .about("Chooses which alerts go by mail; types that are not named stay as they are.")
        .auth(Auth::KeyOrJwt)
        .takes::<mail::Choices>()
        .gives::<mail::Preferences<'_>>(200)
        .fails(write_codes![InvalidBody, ValidationFailed, InvalidRequest])
        .run(|call| Box::pin(mail::change(call))),
    Route::post("/v1/integrations/email/test", "send_test_email")
        .about("Sends a test mail immediately; at most one a minute.")
        .auth(Auth::KeyOrJwt)
        .body(BodyKind::Ignored)
        .gives::<mail::TestMail<'_>>(200)
        .fails(&[
            Code::NotFound,
            Code::InvalidRequest,
            Code::RateLimitExceeded,
            Code::UpstreamUnavailable,
            Code::ServerBusy,
        ])
        .run(|call| Box::pin(mail::test(call))),
];

const WEBHOOKS: &[Route] =
    &target_routes!("/v1/integrations/webhook", "webhook", "webhook", targets::NewWebhook<'_>, WEBHOOK);
const CHATS: &[Route] = &target_routes!("/v1/integrations/{chat}", "chat", "chat webhook", targets::NewChat<'_>, CHAT);

const TARGETS: &[Route] = &crate::http::route::joined::<12>(WEBHOOKS, CHATS);

pub const ROUTES: &[Route] = &crate::http::route::joined::<15>(MAIL, TARGETS);

/// What sends alerts.
///
/// # Errors
/// `SERVER_BUSY` if the server has nothing that does.
fn sender(call: &Call) -> Result<&dyn Integrations, Refusal> {
    call.reads().integrations.as_deref().ok_or_else(|| Code::ServerBusy.into())
}

#[cfg(test)]
mod tests;
