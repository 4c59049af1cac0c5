//! Settings of the alerts (gateway/docs/settings.md).

use host::secret::Secret;
use std::path::PathBuf;
use std::time::Duration;

/// Attempts to deliver one alert to one target.
pub const ATTEMPTS_MAX: u32 = 5;

/// All settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Hosts that chats may be on, in lower case.
    pub chat_hosts: Vec<String>,
    /// Targets may have addresses that are not public.
    pub allow_private_targets: bool,
    /// The pause after the first failed attempt; each further one is four times as long.
    pub first_retry: Duration,
    /// Longest attempt, from the resolution of the name to the end of the answer.
    pub timeout: Duration,
    /// Name of the header with the signature.
    pub signature_header: String,
    /// `None`: no mail goes out.
    pub mail: Option<Mail>,
}

/// How mail goes out.
#[derive(Clone, Debug)]
pub struct Mail {
    pub by: MailBy,
    /// The address of the sender.
    pub from: String,
    pub credentials: Option<(String, Secret)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailBy {
    /// One file for each message in this folder.
    Folder(PathBuf),
    Smtp {
        host: String,
        port: u16,
        security: Security,
    },
}

/// How the connection to a mail server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Not at all: only for a server on this machine.
    Plain,
    StartTls,
    /// TLS from the first byte.
    Tls,
}

impl MailBy {
    /// Reads `email.smtp_url`: `file:<dir>`, `smtp://host[:port]` or `smtps://host[:port]`. `None` for another text, also
    /// for one with a user or a path.
    pub fn parse(text: &str) -> Option<MailBy> {
        if let Some(dir) = text.strip_prefix("file:") {
            return (!dir.is_empty()).then(|| MailBy::Folder(dir.into()));
        }
        let (scheme, rest) = text.split_once("://")?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(v6) => {
                let (host, port) = v6.split_once(']')?;
                let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
                (is_address.then_some(host)?, port.strip_prefix(':'))
            }
            None => match rest.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let is_named = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        if host.is_empty() || !(is_named || rest.starts_with('[')) {
            return None;
        }
        let is_here = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        let (security, default) = match scheme {
            "smtp" if is_here => (Security::Plain, 25),
            "smtp" => (Security::StartTls, 587),
            "smtps" => (Security::Tls, 465),
            _ => return None,
        };
        let port = port.map_or(Some(default), |port| port.parse().ok().filter(|port| *port > 0))?;
        Some(MailBy::Smtp { host: host.to_owned(), port, security })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_goes_by_file_or_server() {
        use Security::{Plain, StartTls, Tls};
        let smtp = |host: &str, port, security| Some(MailBy::Smtp { host: host.to_owned(), port, security });
        let rows = [
            ("file:/var/mail/out", Some(MailBy::Folder("/var/mail/out".into()))),
            ("file:out", Some(MailBy::Folder("out".into()))),
            ("file:", None),
            ("smtp://mail.example.net", smtp("mail.example.net", 587, StartTls)),
            ("smtp://mail.example.net:25/", smtp("mail.example.net", 25, StartTls)),
            ("smtps://mail.example.net", smtp("mail.example.net", 465, Tls)),
            ("smtp://localhost", smtp("localhost", 25, Plain)),
            ("smtp://127.0.0.1:2525", smtp("127.0.0.1", 2_525, Plain)),
            ("smtp://[::1]:2525", smtp("::1", 2_525, Plain)),
            ("smtp://[2001:db8::1]", smtp("2001:db8::1", 587, StartTls)),
            ("smtp://[x]:1", None),
            ("smtp://user:pass@mail.example.net", None),
            ("smtp://mail.example.net/path", None),
            ("smtp://mail.example.net:0", None),
            ("smtp://mail.example.net:70000", None),
            ("smtp://", None),
            ("http://mail.example.net", None),
            ("mail.example.net", None),
            ("", None),
        ];
        for (text, expected) in &rows {
            assert_eq!(MailBy::parse(text), *expected, "{text}");
        }
        println!("addresses of mail: {} cases", rows.len());
    }
}
