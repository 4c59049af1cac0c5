//! Why a request of the namespace is refused. `gateway` gives each reason its code, status and text.

use hyper::Method;
use wire::fields::Problems;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request shows no token.
    NoToken,
    /// It shows something else than the token.
    WrongToken,
    /// It has an `Origin`: the listener is not for browsers.
    FromBrowser,
    /// Its body is not `application/json`.
    NotJsonType,
    NoRoute,
    /// The route takes only these methods.
    Method(&'static [Method]),
    /// Its body did not arrive in time.
    SlowBody,
    /// Its body is longer than 64 KiB.
    LongBody,
    /// Its body cannot be read to its end.
    BrokenBody,
    /// Its body is not a JSON object.
    NotObject,
    /// Fields of its body are wrong.
    Fields(Problems),
    /// There is no such user.
    NoUser,
    /// There is no such key.
    NoKey,
    /// The user cannot have it; the text says why.
    Impossible(&'static str),
    /// The payment provider does not answer.
    ProviderAway,
    /// Another control runs.
    OtherControl,
    /// Server time is the machine's clock.
    ClockNotControlled,
    /// The clock moves: another gate, or a step that is being made.
    ClockRunning,
    /// The time is before the present one.
    ClockBackwards,
    /// The server cannot do it now; the text says why.
    Unavailable(String),
    /// Whether it is done is not known.
    Unknown,
    /// The server failed to do it; the text says why.
    Failed(String),
    /// A thread of the server panicked.
    Lost,
}
