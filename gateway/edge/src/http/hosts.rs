//! Host names that a request may have.
//!
//! A page of a foreign site can make its own name resolve to 127.0.0.1 and so read a local server with that site's
//! origin (DNS rebinding). The browser sends the site's name as `Host`, so a loopback listener refuses names that are
//! not its own. A listener on another address accepts all: a firewall or proxy decides what reaches it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The rule of one listener.
pub struct Hosts {
    /// `None`: any host is accepted.
    listed: Option<Vec<String>>,
}

impl Hosts {
    /// The rule of a listener on that address. `listed` is `server.hosts`.
    pub fn of(listen: SocketAddr, listed: &[String]) -> Hosts {
        Hosts { listed: listen.ip().is_loopback().then(|| listed.to_vec()) }
    }

    /// Whether a request with this `Host` is accepted: an address, `localhost`, a name without a dot or a listed one,
    /// each with or without a port. An empty host is accepted.
    pub fn admits(&self, host: &[u8]) -> bool {
        let Some(listed) = &self.listed else { return true };
        let Ok(host) = std::str::from_utf8(host) else { return false };
        if let Some(rest) = host.strip_prefix('[') {
            return rest.split_once(']').is_some_and(|(address, port)| {
                address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
            });
        }
        let name = match host.rsplit_once(':') {
            Some((name, port)) if is_port(port) => name,
            _ => host,
        };
        let is_listed = |name: &str| listed.iter().any(|listed| listed.eq_ignore_ascii_case(name));
        !name.contains('.')
            || name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost.")
            || is_listed(name)
            || name.strip_suffix('.').is_some_and(is_listed)
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_listener_accepts_only_its_own_names() {
        let listed = ["trade.example".to_owned()];
        let local = Hosts::of("127.0.0.1:0".parse().unwrap(), &listed);
        let open = Hosts::of("0.0.0.0:0".parse().unwrap(), &listed);
        let rows = [
            ("127.0.0.1", true),
            ("127.0.0.1:8080", true),
            ("192.168.1.5:80", true),
            ("[::1]", true),
            ("[::1]:8080", true),
            ("::1", true),
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("localhost.", true),
            ("papertape", true),
            ("papertape:8080", true),
            ("", true),
            ("trade.example", true),
            ("Trade.Example:443", true),
            ("trade.example.", true),
            ("evil.example", false),
            ("evil.example:8080", false),
            ("127.0.0.1.evil.example", false),
            ("127.0.0.1.", false),
            ("127.1", false),
            ("0x7f.0.0.1", false),
            ("localhost.evil.example", false),
            ("sub.trade.example", false),
            ("trade.example.evil.net", false),
            ("localhost@evil.example", false),
            ("evil.example:80:80", false),
            ("[::1].evil.example", false),
            ("[evil.example]", false),
            ("[::1]:x", false),
            ("ai.", false),
        ];
        for (host, expected) in rows {
            assert_eq!(local.admits(host.as_bytes()), expected, "{host:?}");
            assert!(open.admits(host.as_bytes()), "{host:?} of a listener that others reach");
        }
        assert!(!local.admits(b"caf\xe9.example"));
        println!("hosts: {} cases", rows.len() + 1);
    }
}
