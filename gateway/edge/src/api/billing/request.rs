//! Bodies of the routes of billing (gateway/docs/billing.md §1).

use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::Refusal;
use crate::http::scalar::words;
use engine::user::billing::{BillingInterval, Product, Sku};
use wire::fields::Body;
use wire::value::Value;

words! {
    ProductName = "pro", "pro_plus", "backtesting_starter", "backtesting_pro";
    IntervalName = "monthly", "yearly";
    SkuName = "topup_500", "topup_2000", "topup_10000", "topup_main_reset";
}

record! {
    /// A plan to be paid for. Other fields are ignored.
    pub struct PlanCheckout {
        plan: ProductName = "pro".into();
        billing: IntervalName = "monthly".into(), "How often it is paid.";
        #[schemars(extend("x-or-null" = true))]
        consent_acknowledged: Option<bool> = Some(true), "Must be true: the user has accepted the refund policy.",
            skip_serializing_if;
    }

    /// What is bought once. Other fields are ignored.
    pub struct TopupCheckout {
        sku: SkuName = "topup_500".into();
        #[schemars(extend("x-or-null" = true))]
        sandbox_wallet_id: Option<u64> = Some(101), "The active SANDBOX wallet of a top-up.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        consent_acknowledged: Option<bool> = Some(true), "Must be true: the user has accepted the refund policy.",
            skip_serializing_if;
    }
}

/// A plan that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedPlan {
    pub product: Product,
    pub interval: BillingInterval,
}

/// A purchase that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedPurchase {
    pub sku: Sku,
    pub wallet: Option<u64>,
}

impl PlanCheckout {
    /// # Errors
    /// `VALIDATION_FAILED` for fields; `INVALID_REQUEST` without consent.
    pub fn read(body: &Value<'_>) -> Result<AskedPlan, Refusal> {
        let mut body = Body::new(body);
        let product = named(&mut body, "plan", Product::ALL.map(|product| (product.name(), product)));
        let interval = named(&mut body, "billing", BillingInterval::ALL.map(|interval| (interval.name(), interval)));
        let consent = body.boolean("consent_acknowledged");
        match (product, interval) {
            (Some(product), Some(interval)) if body.problems.is_empty() => {
                consented(consent).map(|()| AskedPlan { product, interval })
            }
            _ => Err(Refusal::validation(&body.problems)),
        }
    }
}

impl TopupCheckout {
    /// # Errors
    /// `VALIDATION_FAILED` for fields; `INVALID_REQUEST` without consent, for a top-up without a wallet, and for a reset
    /// with one.
    pub fn read(body: &Value<'_>) -> Result<AskedPurchase, Refusal> {
        let mut body = Body::new(body);
        let sku = named(&mut body, "sku", Sku::ALL.map(|sku| (sku.name(), sku)));
        let wallet = body.integer("sandbox_wallet_id", 0..=u64::MAX);
        let consent = body.boolean("consent_acknowledged");
        let Some(sku) = sku.filter(|_| body.problems.is_empty()) else {
            return Err(Refusal::validation(&body.problems));
        };
        consented(consent)?;
        match (sku, wallet) {
            (Sku::MainReset, Some(_)) => {
                Err(Refusal::new(Code::InvalidRequest, "A reset of the MAIN wallet names no other wallet."))
            }
            (Sku::Topup500 | Sku::Topup2000 | Sku::Topup10000, None) => {
                Err(Refusal::new(Code::InvalidRequest, "A top-up needs sandbox_wallet_id, an active SANDBOX wallet."))
            }
            _ => Ok(AskedPurchase { sku, wallet }),
        }
    }
}

/// One of some names; a problem for another text, and for none.
fn named<T: Copy, const COUNT: usize>(body: &mut Body<'_, '_>, field: &str, names: [(&str, T); COUNT]) -> Option<T> {
    if body.get(field).is_none() {
        body.missing(field);
        return None;
    }
    let text = body.text(field, usize::MAX)?;
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    if found.is_none() {
        let allowed = names.map(|(name, _)| name).join(", ");
        body.problems.add("body", field, "literal_error", format!("is not one of {allowed}"));
    }
    found
}

fn consented(consent: Option<bool>) -> Result<(), Refusal> {
    match consent {
        Some(true) => Ok(()),
        _ => Err(Refusal::new(Code::InvalidRequest, "consent_acknowledged must be true: the refund policy applies.")),
    }
}
