//! Replies and refusals of the admin namespace as responses.

use admin::Reply;
use edge::http::body::{Pages, Truncated};
use edge::http::code::Code;
use edge::http::reply::{self, Outcome, Refusal};
use hyper::{Method, StatusCode};

const MISSING: &str = "This route needs the admin token: Authorization: Bearer, with what is in admin.token_file.";

/// The outcome of a request.
pub fn outcome(answered: Result<Reply, admin::Refusal>) -> Outcome {
    match answered {
        Ok(Reply::Json(json)) => Ok(reply::Reply::json(json)),
        Ok(Reply::Accepted(json)) => Ok(reply::Reply::json(json).with_status(StatusCode::ACCEPTED)),
        Ok(Reply::Tar(mut stream)) => {
            let pages = Pages::new(|mut sink| async move {
                while let Some(piece) = stream.next().await.map_err(|admin::Truncated| Truncated)? {
                    sink.send(piece).await;
                }
                Ok(())
            });
            Ok(reply::Reply::streamed("application/x-tar", pages))
        }
        Err(why) => Err(refusal(why)),
    }
}

fn refusal(why: admin::Refusal) -> Refusal {
    match why {
        admin::Refusal::NoToken => Refusal::new(Code::MissingAuth, MISSING),
        admin::Refusal::WrongToken => Refusal::new(Code::InvalidToken, "This is not the admin token."),
        admin::Refusal::FromBrowser => Code::AdminForbidden.into(),
        admin::Refusal::NotJsonType => Refusal::new(Code::AdminForbidden, "A body must be application/json."),
        admin::Refusal::NoRoute => Code::NotFound.into(),
        admin::Refusal::Method(allowed) => {
            let allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
            Refusal::method_not_allowed(allowed.join(", "))
        }
        admin::Refusal::SlowBody => Refusal::broken("The body did not arrive in time."),
        admin::Refusal::LongBody => Refusal::from(Code::Http413).closing(),
        admin::Refusal::BrokenBody => Refusal::broken("The body cannot be read."),
        admin::Refusal::NotObject => Code::InvalidBody.into(),
        admin::Refusal::Fields(problems) => Refusal::validation(&problems),
        admin::Refusal::NoUser => Code::AccountNotFound.into(),
        admin::Refusal::NoKey => Code::KeyNotFound.into(),
        admin::Refusal::Impossible(why) => Refusal::new(Code::InvalidRequest, why),
        admin::Refusal::ProviderAway => {
            Refusal::new(Code::UpstreamUnavailable, "The payment provider does not answer.")
        }
        admin::Refusal::OtherControl => Code::AdminBusy.into(),
        admin::Refusal::ClockNotControlled => Code::ClockNotControlled.into(),
        admin::Refusal::ClockRunning => Code::ClockRunning.into(),
        admin::Refusal::ClockBackwards => Code::ClockBackwards.into(),
        admin::Refusal::Unavailable(why) => Refusal::new(Code::ServerBusy, why),
        admin::Refusal::Unknown => Code::PersistenceUnknown.into(),
        admin::Refusal::Failed(why) => Refusal::new(Code::InternalError, why),
        admin::Refusal::Lost => Code::InternalError.into(),
    }
}
