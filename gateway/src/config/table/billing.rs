//! Rows of billing (gateway/docs/billing.md §7).

use super::texts;
use crate::config::BillingProvider;
use crate::config::setting::{Setting, integer, list, secret, secrets, text, word};
use engine::user::billing::{BillingInterval, Product};

pub(super) fn rows() -> Vec<Setting> {
    let mut rows = vec![
        word(
            "billing.provider",
            BillingProvider::None,
            "Payment provider. `none`: checkout, portal and webhook answer 404 `NOT_FOUND`. `stub`: for development; a checkout \
                 answers a link to this server that applies the purchase without a payment.",
        ),
        secret("billing.secret_key", "no calls", "Secret key of calls to the provider `stripe`."),
        secrets(
            "billing.webhook_secrets",
            "no events",
            "Secrets of the signatures of its events. Of a list, which only the file can hold, all verify: for a rollover.",
        ),
        text(
            "billing.stripe_base_url",
            "https://api.stripe.com",
            texts::CALLS_ADDRESS,
            "Address to which the paths of its calls are appended.",
        ),
    ];
    for product in Product::ALL {
        for interval in BillingInterval::ALL {
            let key = price_key(product, interval);
            rows.push(text(
                key,
                "",
                texts::PRICE,
                "Id of the price of this plan at the provider; \"\": it is not sold.",
            ));
        }
    }
    rows.extend([
        text("billing.success_url", "", texts::PUBLIC_URL, "Address of the page after a payment. `stripe` needs it."),
        text(
            "billing.cancel_url",
            "",
            texts::PUBLIC_URL,
            "Address of the page after a checkout that was left. `stripe` needs it.",
        ),
        text("billing.return_url", "", texts::PUBLIC_URL, "Address of the page after the portal. `stripe` needs it."),
        integer(
            "billing.calls_max",
            8,
            1..=256,
            "Calls to the provider in flight at most; the next one is 503 `SERVER_BUSY`.",
        ),
        integer(
            "billing.refund_days",
            14,
            0..=3_650,
            "Days after a purchase in which it is refunded, as the refund policy states it.",
        ),
        text(
            "billing.refund_text",
            "Purchases are refunded on request within the window.",
            texts::PRINTABLE,
            "Text of the refund policy.",
        ),
        list(
            "billing.refund_conditions",
            &["What was bought is taken back as far as it was not used."],
            texts::CONDITION,
            "Conditions of the refund policy.",
        ),
    ]);
    rows
}

/// The key of the price of a plan.
pub(in crate::config) fn price_key(product: Product, interval: BillingInterval) -> String {
    format!("billing.price_{}_{}", product.name(), interval.name())
}
