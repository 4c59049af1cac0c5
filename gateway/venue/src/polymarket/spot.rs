//! Prices of the underlyings of up-or-down markets, as the venue relays them (gateway/docs/live-venues.md §3.3).

use super::dto;
use super::translate::Translate;
use crate::FeedUpdate;
use crate::loose::Loose;
use crate::skips::Skip;
use engine::market::spot::{Family, asset};
use engine::time::{SECOND, Timestamp};

/// A price dated further ahead than this gets its time of arrival.
pub(super) const AHEAD_MAX: u64 = 60 * SECOND;

impl Translate {
    /// Translates a message with a topic.
    pub(super) fn spot(&mut self, message: &dto::Message<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let topic = message.topic.text().unwrap_or_default();
        let family = match &*topic {
            "crypto_prices" => Family::Binance,
            "crypto_prices_chainlink" => Family::Chainlink,
            other => return self.skips.count(Skip::UnknownType, || format!("topic {other}")),
        };
        let Some(payload) = message.payload.object::<dto::SpotPrice<'_>>() else {
            return self.skips.count(Skip::MissingField, || format!("{topic} without its payload"));
        };
        let Some(asset) = payload.symbol.text().and_then(|symbol| asset(&symbol)) else {
            return self.skips.count(Skip::Unlisted, || format!("{topic} of {:?}", payload.symbol));
        };
        // The response to a subscription contains earlier prices; the last of them is current.
        let latest = payload.data.elements().and_then(|before| before.last()?.object()).unwrap_or(payload);
        let Some(micros) = micros(&latest) else {
            return self.skips.count(Skip::BadNumber, || format!("{topic} {latest:?}"));
        };
        let at = latest.timestamp.or(message.timestamp).millis().unwrap_or(received);
        let at = if at.since(received) > AHEAD_MAX { received } else { at };
        updates.push(FeedUpdate::Spot { asset, family, micros, at });
    }
}

/// The price in 10⁻⁶ dollars, parsed from its digits.
fn micros(price: &dto::SpotPrice<'_>) -> Option<u64> {
    let exact = || {
        let digits = price.full_accuracy_value.text()?;
        let scaled = if digits.contains('.') { digits.into_owned() } else { format!("{digits}e-18") };
        Loose::of(&serde_json::to_string(&scaled).ok()?).figure()
    };
    price.value.figure().or_else(exact).filter(|micros| *micros > 0)
}
