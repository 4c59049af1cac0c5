//! Header names with the brand.

use super::limit::RateState;
use crate::settings::TIERS;
use engine::user::Tier;
use hyper::header::{HeaderName, HeaderValue};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::decimal;

/// Brands made so far: one, except in tests.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Header names with the brand, made once.
#[derive(Clone, Debug)]
pub struct Names {
    pub request_id: HeaderName,
    pub code: HeaderName,
    pub verbose: HeaderName,
    pub order_id: HeaderName,
    pub beta_cutoff: HeaderName,
    pub history_from: HeaderName,
    pub strict: HeaderName,
    /// The six rate headers, each with its plain and its branded name.
    pub rate: [(HeaderName, HeaderName); 6],
    /// The same as starts of header lines.
    rate_lines: [Pair; 6],
    /// Identifies the brand in the key of the cached header lines.
    number: u64,
    /// Headers that a script in a browser may send, and may read.
    pub allowed_request_headers: HeaderValue,
    pub exposed_headers: HeaderValue,
}

impl Names {
    /// Header names under a prefix like `X-Svc`; `None` if it cannot begin a header name.
    pub fn new(prefix: &str, key_header_aliases: &[String]) -> Option<Names> {
        let name = |text: String| HeaderName::try_from(text).ok();
        let branded = |suffix: &str| name(format!("{prefix}-{suffix}"));
        let rate =
            |suffix: &str| Some((name(format!("X-RateLimit{suffix}"))?, branded(&format!("RateLimit{suffix}"))?));
        let rate = [
            rate("-Limit")?,
            rate("-Remaining")?,
            rate("-Reset")?,
            rate("-Limit-Per-Second")?,
            rate("-Remaining-Per-Second")?,
            rate("-Tier")?,
        ];
        let mut allowed = vec!["X-API-Key".to_owned()];
        allowed.extend(key_header_aliases.iter().cloned());
        allowed.extend(["Authorization", "Content-Type", "Idempotency-Key", "X-Request-Id"].map(str::to_owned));
        allowed.push(format!("{prefix}-Verbose"));
        allowed.push("X-Confirm-Cancel-All".to_owned());
        let mut exposed = vec!["X-Request-Id".to_owned(), format!("{prefix}-Code"), format!("{prefix}-Order-Id")];
        exposed.push(format!("{prefix}-History-From"));
        exposed.extend(["Retry-After", "X-API-Beta-Cutoff"].map(str::to_owned));
        exposed.extend(rate.iter().flat_map(|(plain, branded)| [plain.to_string(), branded.to_string()]));
        Some(Names {
            request_id: HeaderName::from_static("x-request-id"),
            code: branded("Code")?,
            verbose: branded("Verbose")?,
            order_id: branded("Order-Id")?,
            beta_cutoff: HeaderName::from_static("x-api-beta-cutoff"),
            history_from: branded("History-From")?,
            strict: branded("Strict")?,
            rate_lines: rate.each_ref().map(|(plain, branded)| Pair { plain: line(plain), branded: line(branded) }),
            number: NUMBERS.fetch_add(1, Relaxed),
            rate,
            allowed_request_headers: HeaderValue::try_from(allowed.join(", ")).ok()?,
            exposed_headers: HeaderValue::try_from(exposed.join(", ")).ok()?,
        })
    }
}

impl Names {
    /// Writes the twelve lines of the rate headers, with the values of [`RateState::values`].
    pub fn write_rate(&self, out: &mut Vec<u8>, rate: &RateState) {
        let [limit, remaining, reset, per_second, remaining_per_second, tier] = &self.rate_lines;
        remaining.write(out, rate.remaining.into());
        remaining_per_second.write(out, rate.remaining_per_second.into());
        // The other four values are the same for all requests of a tier in a minute, so their lines are cached.
        let key = (self.number, rate.per_minute, rate.per_second, rate.reset, rate.tier);
        LAST.with_borrow_mut(|(last, text)| {
            if *last != Some(key) {
                *last = Some(key);
                text.clear();
                limit.write(text, rate.per_minute.into());
                reset.write(text, rate.reset);
                per_second.write(text, rate.per_second.into());
                tier.write_word(text, TIERS[rate.tier as usize].1);
            }
            out.extend_from_slice(text);
        });
    }
}

/// Rate lines that rarely change, with the values that they depend on.
type Cached = (Option<(u64, u32, u32, u64, Tier)>, Vec<u8>);

thread_local! {
    static LAST: RefCell<Cached> = const { RefCell::new((None, Vec::new())) };
}

/// The starts of the two lines of a header, with its plain and its branded name.
#[derive(Clone, Debug)]
struct Pair {
    plain: Box<[u8]>,
    branded: Box<[u8]>,
}

impl Pair {
    fn write(&self, out: &mut Vec<u8>, value: u64) {
        out.extend_from_slice(&self.plain);
        let begun = out.len();
        decimal::integer(out, value);
        out.extend_from_slice(b"\r\n");
        let ended = out.len();
        out.extend_from_slice(&self.branded);
        out.extend_from_within(begun..ended);
    }

    fn write_word(&self, out: &mut Vec<u8>, word: &str) {
        for name in [&self.plain, &self.branded] {
            out.extend_from_slice(name);
            out.extend_from_slice(word.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// `name: `
fn line(name: &HeaderName) -> Box<[u8]> {
    format!("{name}: ").into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and the values have the same lines.
    #[test]
    fn rates_are_written_as_they_are_made() {
        let brands = ["X-Svc", "X-Acme"].map(|prefix| Names::new(prefix, &[]).expect("a prefix"));
        let mut cases = 0;
        for turn in 0..24 {
            let tier = [Tier::Free, Tier::Pro, Tier::ProPlus, Tier::Enterprise][turn / 2 % 4];
            let rate = RateState {
                per_minute: 100 * (1 + turn as u32 / 6),
                remaining: turn as u32,
                reset: 1_790_932_500 + turn as u64 / 3,
                per_second: 10,
                remaining_per_second: 10 - turn as u32 % 10,
                tier,
            };
            for names in &brands {
                let mut out = Vec::new();
                names.write_rate(&mut out, &rate);
                let text = String::from_utf8(out).expect("ASCII");
                let mut written: Vec<&str> = text.split_terminator("\r\n").collect();
                let pairs = names.rate.iter().zip(rate.values());
                let mut made: Vec<String> = pairs
                    .flat_map(|((plain, branded), value)| {
                        let value = value.to_str().expect("ASCII").to_owned();
                        [format!("{plain}: {value}"), format!("{branded}: {value}")]
                    })
                    .collect();
                written.sort_unstable();
                made.sort_unstable();
                assert_eq!(written, made);
                cases += 1;
            }
        }
        println!("rate lines: {cases} cases");
    }

    #[test]
    fn the_brand_is_in_every_name_that_has_one() {
        let names = Names::new("X-Acme", &[]).unwrap();
        assert_eq!(names.code, "x-acme-code");
        assert_eq!(names.rate[5].1, "x-acme-ratelimit-tier");
        assert!(Names::new("X Acme", &[]).is_none());
    }
}
