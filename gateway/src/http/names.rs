//! Names of the headers that carry the brand.

use super::limit::RateState;
use crate::config::TIERS;
use crate::wire::decimal;
use hyper::header::{HeaderName, HeaderValue};

/// Header names that carry the brand (contract, neutral names), made once.
#[derive(Clone, Debug)]
pub struct Names {
    pub request_id: HeaderName,
    pub code: HeaderName,
    pub verbose: HeaderName,
    pub order_id: HeaderName,
    pub beta_cutoff: HeaderName,
    /// The six rate headers, each plain and branded.
    pub rate: [(HeaderName, HeaderName); 6],
    /// Both names of each of them as lines begin with them.
    rate_lines: [(Box<[u8]>, Box<[u8]>); 6],
    /// What a browser's script may send and read.
    pub allowed_request_headers: HeaderValue,
    pub exposed_headers: HeaderValue,
}

impl Names {
    /// Names under a prefix like `X-Svc`; `None` when it cannot begin a header name.
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
        exposed.extend(["Retry-After", "X-API-Beta-Cutoff"].map(str::to_owned));
        exposed.extend(rate.iter().flat_map(|(plain, branded)| [plain.to_string(), branded.to_string()]));
        Some(Names {
            request_id: HeaderName::from_static("x-request-id"),
            code: branded("Code")?,
            verbose: branded("Verbose")?,
            order_id: branded("Order-Id")?,
            beta_cutoff: HeaderName::from_static("x-api-beta-cutoff"),
            rate_lines: rate.each_ref().map(|(plain, branded)| (line(plain), line(branded))),
            rate,
            allowed_request_headers: HeaderValue::try_from(allowed.join(", ")).ok()?,
            exposed_headers: HeaderValue::try_from(exposed.join(", ")).ok()?,
        })
    }
}

impl Names {
    /// Writes the twelve lines of the rate headers, as [`RateState::values`] has their values.
    pub fn write_rate(&self, out: &mut Vec<u8>, rate: &RateState) {
        let numbers = [
            rate.per_minute.into(),
            rate.remaining.into(),
            rate.reset,
            rate.per_second.into(),
            rate.remaining_per_second.into(),
        ];
        let [lines @ .., tier] = &self.rate_lines;
        let pair = |out: &mut Vec<u8>, (plain, branded): &(Box<[u8]>, Box<[u8]>), value: &[u8]| {
            for name in [plain, branded] {
                out.extend_from_slice(name);
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
        };
        let mut text = Vec::with_capacity(20);
        for (lines, number) in lines.iter().zip(numbers) {
            text.clear();
            decimal::integer(&mut text, number);
            pair(out, lines, &text);
        }
        pair(out, tier, TIERS[rate.tier as usize].1.as_bytes());
    }
}

/// `name: `
fn line(name: &HeaderName) -> Box<[u8]> {
    format!("{name}: ").into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brand_is_in_every_name_that_has_one() {
        let names = Names::new("X-Acme", &[]).unwrap();
        assert_eq!(names.code, "x-acme-code");
        assert_eq!(names.rate[5].1, "x-acme-ratelimit-tier");
        assert!(Names::new("X Acme", &[]).is_none());
    }
}
