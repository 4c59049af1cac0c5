//! Close codes: why a socket ends, with an error code as reason (gateway/docs/streams.md §1.3).

use crate::http::code::Code;

/// A close code with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    pub code: u16,
    /// At most 123 bytes, which is the bound of a close frame.
    pub reason: &'static str,
}

impl Close {
    /// The reply to a peer's close.
    pub const NORMAL: Close = Close::new(1000, "");
    /// The server stops.
    pub const GOING_AWAY: Close = Close::new(1001, "SERVER_SHUTDOWN");
    /// A frame that the protocol forbids (RFC 6455).
    pub const PROTOCOL: Close = Close::new(1002, "PROTOCOL_ERROR");
    pub const BINARY: Close = Close::new(1003, "TEXT_ONLY");
    pub const NOT_UTF8: Close = Close::new(1007, "INVALID_UTF8");
    pub const TOO_LONG: Close = Close::new(1009, "MESSAGE_TOO_LARGE");
    pub const INTERNAL: Close = Close::new(1011, Code::InternalError.text());
    /// A key that is unknown, revoked, expired or disabled.
    pub const INVALID_KEY: Close = Close::new(4001, Code::InvalidKey.text());
    pub const CONNECTION_LIMIT: Close = Close::new(4002, "CONNECTION_LIMIT");
    pub const RESTRICTED: Close = Close::new(4003, Code::AccessRestricted.text());
    pub const NO_PERMISSION: Close = Close::new(4003, Code::InsufficientPermission.text());
    /// No valid `auth` frame within the deadline.
    pub const AUTH_TIMEOUT: Close = Close::new(4004, "AUTH_TIMEOUT");
    pub const TOO_MANY_FRAMES: Close = Close::new(4008, Code::RateLimitExceeded.text());
    pub const TOO_MANY_BAD_FRAMES: Close = Close::new(4008, Code::InvalidRequest.text());
    pub const SLOW_CONSUMER: Close = Close::new(4009, "SLOW_CONSUMER");
    pub const IDLE: Close = Close::new(4010, "IDLE_TIMEOUT");

    pub const fn new(code: u16, reason: &'static str) -> Close {
        Close { code, reason }
    }

    /// Its name in metrics: the reason, if it has one.
    pub const fn name(self) -> &'static str {
        if self.reason.is_empty() { "NORMAL" } else { self.reason }
    }

    /// The close code for a credential that was refused with `code`.
    pub const fn refused(code: Code) -> Close {
        match code {
            Code::AccessRestricted | Code::InsufficientPermission => Close::new(4003, code.text()),
            _ => Close::new(4001, code.text()),
        }
    }

    /// Whether a peer may send this code (RFC 6455 §7.4).
    pub const fn may_be_sent(code: u16) -> bool {
        matches!(code, 1000..=1003 | 1007..=1011 | 3000..=4999)
    }
}
