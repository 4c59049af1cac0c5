//! Events of a payment provider, and their signatures.

use ::billing::event::{self, Price};
use ::billing::signature::{HEADER_BYTES_MAX, header, is_genuine};
use edge::api::billing::provider::Reading;
use engine::command::BillingNews;
use engine::user::billing::{BillingInterval, NAME_BYTES_MAX, Product};
use host::secret::Secret;

/// Ids fit what is stored, and an amount is only that of a refund within its payment.
pub fn event(bytes: &[u8]) {
    let price = |id: &str, product| Price { id: id.to_owned(), product, interval: BillingInterval::Monthly };
    let prices = [price("price_pro", Product::Pro), price("price_sim", Product::BacktestingPro)];
    let Ok(Reading::Notice(notice)) = event::read(bytes, &prices) else { return };
    let is_name = |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.is_ascii();
    assert!(is_name(&notice.event.id) && notice.event.created.0 > 0);
    assert!(notice.event.customer.as_deref().is_none_or(is_name) && notice.name.as_deref().is_none_or(is_name));
    assert!(notice.user.is_none_or(|user| user.0 > 0));
    match &notice.event.news {
        BillingNews::Nothing => {}
        BillingNews::Subscription(news) => {
            assert!(is_name(&news.subscription));
            let is_listed = |(product, _)| matches!(product, Product::Pro | Product::BacktestingPro);
            assert!(news.product.is_none_or(is_listed), "only of the list");
            assert!(news.price.as_deref().is_none_or(is_name) && (news.product.is_none() || news.price.is_none()));
        }
        BillingNews::Payment { subscription, .. } => assert!(is_name(subscription)),
        BillingNews::Purchase { payment, .. } | BillingNews::Refund { payment, .. } => assert!(is_name(payment)),
        BillingNews::RefundFailed { payment, refund, .. } => assert!(is_name(payment) && is_name(refund)),
    }
}

/// A header that was not made with the secret signs nothing; the first line of the input is the header, the rest the
/// body.
pub fn signature(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (shown, body) = (&bytes[..at], &bytes[(at + 1).min(bytes.len())..]);
    let (secret, now) = (Secret::new("whsec_fuzz".to_owned()), 1_790_932_500);
    let own = header(&secret, body, now);
    let digits = own.split_once("v1=").map_or("", |(_, digits)| digits);
    let has_own = shown.len() <= HEADER_BYTES_MAX
        && shown.windows(digits.len()).any(|part| part.eq_ignore_ascii_case(digits.as_bytes()));
    for now in [now, now + 200, now + 400] {
        assert!(!is_genuine(shown, body, std::slice::from_ref(&secret), now) || has_own);
    }
    assert!(is_genuine(own.as_bytes(), body, &[secret], now));
}
