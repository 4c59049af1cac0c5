//! The options of the command line and their bounds. A value out of bounds is one sentence, and exit code 2.

use super::kind::Kind;
use hyper::Uri;
use std::fmt;
use std::time::Duration;

/// Fastest schedule, operations a second.
const RATE_MAX: u32 = 10_000_000;
/// Longest run, and the shortest one.
const SECONDS_MAX: f64 = 86_400.0;
const SECONDS_MIN: f64 = 0.1;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// `host:port`, as in a `Host` header.
    pub authority: String,
}

impl Target {
    /// `http://host:port` without a path; the default port is 80.
    pub fn parse(text: &str) -> Result<Target, String> {
        const SHAPE: &str = "the address of a server is http://host:port";
        let uri: Uri = text.parse().map_err(|_| format!("{SHAPE}, and this is not"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(format!("{SHAPE}; TLS is not supported, so name the server and not a proxy before it"));
            }
            _ => return Err(format!("{SHAPE}, and this does not begin with http://")),
        }
        if uri.query().is_some() || !matches!(uri.path(), "" | "/") || text.contains('#') {
            return Err(format!("{SHAPE}, without a path"));
        }
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        if authority.contains('@') {
            return Err(format!("{SHAPE}, without a user"));
        }
        let host =
            uri.host().filter(|host| !host.is_empty()).ok_or_else(|| format!("{SHAPE}, and the host is missing"))?;
        let port = match &authority[host.len()..] {
            "" => 80,
            rest => rest[1..]
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| format!("{SHAPE}, with a port from 1 to 65535"))?,
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Target { host, port, authority: authority.to_owned() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// How the load is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Open loop: this many operations are due each second, independent of the operations before.
    PerSecond(u32),
    /// Closed loop: each connection keeps its pipeline full.
    Max,
}

impl Rate {
    pub fn parse(text: &str) -> Result<Rate, String> {
        match text.parse() {
            _ if text == "max" => Ok(Rate::Max),
            Ok(rate) if (1..=RATE_MAX).contains(&rate) => Ok(Rate::PerSecond(rate)),
            _ => Err(format!("a rate is max or a whole number of operations a second from 1 to {RATE_MAX}")),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::PerSecond(rate) => write!(f, "{rate}"),
            Rate::Max => f.write_str("max"),
        }
    }
}

/// Seconds, with an optional fraction.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (SECONDS_MIN..=SECONDS_MAX).contains(seconds));
    let seconds =
        seconds.ok_or_else(|| format!("a duration is a number of seconds from {SECONDS_MIN} to {SECONDS_MAX}"))?;
    Ok(Duration::from_secs_f64(seconds))
}

/// How many of a hundred operations are of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix([u8; Kind::COUNT]);

impl Mix {
    pub fn parse(text: &str) -> Result<Mix, String> {
        const SHAPE: &str = "a mix is percentages by kind, such as rest=60,cross=25,cancel=15";
        let mut mix = [None; Kind::COUNT];
        for part in text.split(',') {
            let (name, percent) =
                part.split_once('=').ok_or_else(|| format!("{SHAPE}, and {part:?} is not kind=percent"))?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name.trim());
            let kind = kind
                .ok_or_else(|| format!("{SHAPE}, and {name:?} is not a kind: the kinds are rest, cross and cancel"))?;
            let percent = percent.trim().parse::<u8>().ok().filter(|percent| *percent <= 100);
            let percent = percent
                .ok_or_else(|| format!("{SHAPE}, and the percentage of {kind} is not a whole number from 0 to 100"))?;
            if mix[kind as usize].replace(percent).is_some() {
                return Err(format!("{SHAPE}, and {kind} is named twice"));
            }
        }
        let mix = mix.map(Option::unwrap_or_default);
        let sum: u32 = mix.iter().copied().map(u32::from).sum();
        match sum {
            100 if mix[Kind::Cancel as usize] == 100 => {
                Err("a mix of cancels alone has nothing to cancel: give rest a share".to_owned())
            }
            100 => Ok(Mix(mix)),
            _ => Err(format!("{SHAPE}; these are percentages, and they sum to {sum} instead of 100")),
        }
    }

    pub fn percent(&self, kind: Kind) -> u8 {
        self.0[kind as usize]
    }

    /// The kind of an operation, by its number on its connection: exact in every hundred of a connection, evenly
    /// spread, and shifted from one connection to the next.
    pub fn kind(&self, connection: usize, number: u64) -> Kind {
        // Both factors are coprime to 100, so a hundred consecutive numbers visit each place once.
        let place = ((number % 100) * 61 + (connection as u64 % 100) * 37) % 100;
        let mut below = 0;
        for kind in Kind::ALL {
            below += u64::from(self.percent(kind));
            if place < below {
                return kind;
            }
        }
        unreachable!("percentages sum to 100")
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rest, cross, cancel] = self.0;
        write!(f, "rest={rest},cross={cross},cancel={cancel}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_percentages_that_sum_to_a_hundred() {
        let cases = [
            ("rest=60,cross=25,cancel=15", Ok("rest=60,cross=25,cancel=15")),
            ("cancel=15, rest=60, cross=25", Ok("rest=60,cross=25,cancel=15")),
            ("rest=100", Ok("rest=100,cross=0,cancel=0")),
            ("cross=100", Ok("rest=0,cross=100,cancel=0")),
            ("rest=50,cross=0,cancel=50", Ok("rest=50,cross=0,cancel=50")),
            ("", Err("not kind=percent")),
            (",", Err("not kind=percent")),
            ("rest", Err("not kind=percent")),
            ("rest=60,cross=25", Err("percentages, and they sum to 85 instead of 100")),
            ("rest=60,cross=25,cancel=16", Err("percentages, and they sum to 101 instead of 100")),
            ("rest=0", Err("sum to 0")),
            ("cancel=100", Err("nothing to cancel")),
            ("rest=60,taker=40", Err("the kinds are rest, cross and cancel")),
            ("rest=60,rest=40", Err("named twice")),
            ("rest=-1,cross=101", Err("not a whole number from 0 to 100")),
            ("rest=101", Err("not a whole number from 0 to 100")),
            ("rest=0.5,cross=99.5", Err("not a whole number from 0 to 100")),
            ("rest=,cross=100", Err("not a whole number from 0 to 100")),
        ];
        for (text, expected) in cases {
            check(text, Mix::parse(text), expected);
        }
        println!("mixes: {} cases", cases.len());
    }

    #[test]
    fn every_hundred_of_a_connection_has_the_mix() {
        let mut cases = 0;
        for text in ["rest=60,cross=25,cancel=15", "rest=1,cross=98,cancel=1", "rest=100", "rest=34,cross=33,cancel=33"]
        {
            let mix = Mix::parse(text).expect("it is valid");
            for connection in [0, 1, 7, 100, 9_999] {
                for first in [0, 1, 99, 12_345] {
                    let mut seen = [0; Kind::COUNT];
                    for number in first..first + 100 {
                        seen[mix.kind(connection, number) as usize] += 1;
                    }
                    assert_eq!(seen, mix.0, "{text}, connection {connection} from {first}");
                    cases += 1;
                }
            }
        }
        // Spread: with 20 % cancels no connection sends ten other operations in a row.
        let mix = Mix::parse("rest=80,cancel=20").expect("it is valid");
        let longest = (0..1_000u64).fold((0, 0), |(run, longest), number| match mix.kind(3, number) {
            Kind::Cancel => (0, longest),
            _ => (run + 1, longest.max(run + 1)),
        });
        assert!(longest.1 < 10, "{} in a row", longest.1);
        println!("hundreds: {} cases", cases + 1);
    }

    #[test]
    fn an_address_is_plain_http_with_host_and_port() {
        let cases = [
            ("http://127.0.0.1:8080", Ok("http://127.0.0.1:8080")),
            ("http://127.0.0.1:8080/", Ok("http://127.0.0.1:8080")),
            ("HTTP://localhost:1", Ok("http://localhost:1")),
            ("http://venue", Ok("http://venue")),
            ("http://[::1]:65535", Ok("http://[::1]:65535")),
            ("", Err("this is not")),
            ("127.0.0.1:8080", Err("does not begin with http://")),
            ("ws://127.0.0.1:8080", Err("does not begin with http://")),
            ("https://venue:443", Err("TLS is not supported")),
            ("http://", Err("this is not")),
            ("http://:8080", Err("host")),
            ("http://venue:0", Err("port from 1 to 65535")),
            ("http://venue:65536", Err("port from 1 to 65535")),
            ("http://venue:", Err("port from 1 to 65535")),
            ("http://venue:80/v1", Err("without a path")),
            ("http://venue:80?a=b", Err("without a path")),
            ("http://venue:80#a", Err("without a path")),
            ("http://me@venue:80", Err("without a user")),
            ("http://ve nue:80", Err("this is not")),
        ];
        for (text, expected) in cases {
            check(text, Target::parse(text), expected);
        }
        let target = Target::parse("http://[::1]:81").expect("it is valid");
        assert_eq!((target.host.as_str(), target.port, target.authority.as_str()), ("::1", 81, "[::1]:81"));
        assert_eq!(Target::parse("http://venue").expect("it is valid").port, 80);
        println!("addresses: {} cases", cases.len() + 2);
    }

    #[test]
    fn rates_and_durations_have_bounds() {
        let rates = [
            ("1", Ok("1")),
            ("10000000", Ok("10000000")),
            ("max", Ok("max")),
            ("0", Err("from 1 to 10000000")),
            ("10000001", Err("from 1 to 10000000")),
            ("-5", Err("from 1 to 10000000")),
            ("1.5", Err("from 1 to 10000000")),
            ("MAX", Err("a rate is max or")),
            ("", Err("a rate is max or")),
        ];
        for (text, expected) in rates {
            check(text, Rate::parse(text), expected);
        }
        let durations = [("0.1", true), ("1", true), ("86400", true)];
        let refused = ["0", "0.05", "-1", "86401", "nan", "inf", "10s", ""];
        for (text, fits) in durations.into_iter().chain(refused.map(|text| (text, false))) {
            assert_eq!(duration(text).is_ok(), fits, "{text}");
        }
        println!("rates and durations: {} cases", rates.len() + durations.len() + refused.len());
    }

    #[track_caller]
    fn check<T: fmt::Display>(text: &str, parsed: Result<T, String>, expected: Result<&str, &str>) {
        match (parsed, expected) {
            (Ok(parsed), Ok(expected)) => assert_eq!(parsed.to_string(), expected, "{text:?}"),
            (Err(error), Err(expected)) => {
                assert!(error.contains(expected), "{text:?}: {error}");
                // One sentence: clap adds the value before it and nothing after it.
                assert!(!error.contains('\n') && !error.ends_with('.'), "{text:?}: {error}");
            }
            (Ok(parsed), Err(expected)) => panic!("{text:?} became {parsed}, not: {expected}"),
            (Err(error), Ok(_)) => panic!("{text:?}: {error}"),
        }
    }
}
