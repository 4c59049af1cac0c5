use super::*;
use serde_json::json;

fn prices() -> Vec<Price> {
    vec![
        Price { id: "price_pro".to_owned(), product: Product::Pro, interval: BillingInterval::Monthly },
        Price { id: "price_sim".to_owned(), product: Product::BacktestingPro, interval: BillingInterval::Yearly },
    ]
}

fn of(kind: &str, object: &Value) -> Value {
    json!({"id": "evt_1", "object": "event", "type": kind, "created": 1_790_932_500, "data": {"object": object}})
}

/// The user, the name by which it is found, the customer, and the news; or why there is none.
type Short = Result<(Option<u64>, Option<String>, Option<String>, BillingNews), Unheeded>;

fn short(kind: &str, object: &Value) -> Short {
    match read(of(kind, object).to_string().as_bytes(), &prices()).expect("it is an event") {
        Reading::Nothing { why, event, kind: read } => {
            assert_eq!((event.as_str(), read.as_str()), ("evt_1", kind));
            Err(why)
        }
        Reading::Notice(notice) => {
            let Notice { user, name, kind: read, event } = *notice;
            assert_eq!((event.id.as_str(), read.as_str(), event.created.secs()), ("evt_1", kind, 1_790_932_500));
            Ok((user.map(|user| user.0), name, event.customer, event.news))
        }
    }
}

/// An object with some fields replaced; null is what the provider sends for none.
fn with(object: &Value, fields: &Value) -> Value {
    let mut object = object.clone();
    for (name, value) in fields.as_object().expect("fields") {
        object[name] = value.clone();
    }
    object
}

#[test]
fn sessions_are_purchases_at_the_listed_price() {
    let session = json!({
        "id": "cs_1", "object": "checkout.session", "mode": "payment", "payment_status": "paid", "amount_total": 299,
        "currency": "usd", "customer": "cus_1", "client_reference_id": "7", "payment_intent": "pi_1",
        "subscription": null, "metadata": {"user_id": "7", "sku": "topup_500", "wallet_id": "101"},
    });
    let bought = |sku, wallet: Option<u64>, payment: &str| {
        let news = BillingNews::Purchase { payment: payment.to_owned(), sku, wallet: wallet.map(WalletId) };
        Ok((Some(7), Some("cus_1".to_owned()), Some("cus_1".to_owned()), news))
    };
    let nothing = Ok((Some(7), Some("cus_1".to_owned()), Some("cus_1".to_owned()), BillingNews::Nothing));
    let ours = |sku: &str, wallet: &str| json!({"metadata": {"user_id": "7", "sku": sku, "wallet_id": wallet}});
    let rows: Vec<(Value, Short)> = vec![
        (json!({}), bought(Sku::Topup500, Some(101), "pi_1")),
        (json!({"currency": "USD"}), bought(Sku::Topup500, Some(101), "pi_1")),
        (json!({"payment_intent": null}), bought(Sku::Topup500, Some(101), "cs_1")),
        (json!({"payment_intent": {"id": "pi_2"}}), bought(Sku::Topup500, Some(101), "pi_2")),
        (ours("topup_main_reset", ""), bought(Sku::MainReset, None, "pi_1")),
        (json!({"mode": "subscription"}), nothing),
        (json!({"mode": "setup"}), Err(Unheeded::Type)),
        (json!({"payment_status": "unpaid"}), Err(Unheeded::Type)),
        (json!({"payment_status": "no_payment_required"}), Err(Unheeded::Type)),
        // The amount is that of the list; another one is not believed.
        (json!({"amount_total": 298}), Err(Unheeded::Amount)),
        (json!({"amount_total": 999}), Err(Unheeded::Amount)),
        (json!({"amount_total": 0}), Err(Unheeded::Amount)),
        (json!({"amount_total": -299}), Err(Unheeded::Amount)),
        (json!({"amount_total": 299.5}), Err(Unheeded::Amount)),
        (json!({"amount_total": "299"}), Err(Unheeded::Amount)),
        (json!({"amount_total": null}), Err(Unheeded::Amount)),
        (json!({"currency": "eur"}), Err(Unheeded::Amount)),
        (json!({"currency": null}), Err(Unheeded::Amount)),
        (ours("topup_10000", "101"), Err(Unheeded::Amount)),
        (ours("topup_9", "101"), Err(Unheeded::Price)),
        (json!({"metadata": {"user_id": "7"}}), Err(Unheeded::Price)),
        (json!({"metadata": null}), Err(Unheeded::Price)),
        (json!({"metadata": {"user_id": "x", "sku": "topup_500"}}), Err(Unheeded::Fields)),
        (ours("topup_500", "1e3"), Err(Unheeded::Fields)),
        (json!({"payment_intent": null, "id": null}), Err(Unheeded::Fields)),
        (json!({"payment_intent": "p".repeat(256), "id": "p".repeat(256)}), Err(Unheeded::Fields)),
    ];
    println!("sessions: {} cases", rows.len());
    for (fields, expected) in rows {
        assert_eq!(short("checkout.session.completed", &with(&session, &fields)), expected, "{fields}");
    }
    let later = short("checkout.session.async_payment_succeeded", &session);
    assert_eq!(later, bought(Sku::Topup500, Some(101), "pi_1"));
}

#[test]
fn subscriptions_have_their_states_and_prices() {
    use SubscriptionStatus::{Active, Canceled, Incomplete, PastDue, Trialing};
    let end = 1_793_491_200;
    let object = json!({
        "id": "sub_1", "object": "subscription", "customer": "cus_1", "status": "active",
        "cancel_at_period_end": false, "cancel_at": null, "trial_end": null, "current_period_end": end,
        "items": {"data": [{"id": "si_1", "price": {"id": "price_pro"}}]}, "metadata": {"user_id": "7"},
    });
    let plain = SubscriptionNews {
        subscription: "sub_1".to_owned(),
        product: Some((Product::Pro, BillingInterval::Monthly)),
        price: None,
        status: Active,
        period_end: Some(Timestamp::from_secs(end)),
        cancel_at_period_end: false,
        trial_ends_at: None,
    };
    let said = |news: SubscriptionNews| {
        Ok((Some(7), Some("cus_1".to_owned()), Some("cus_1".to_owned()), BillingNews::Subscription(news)))
    };
    let is = |status| said(SubscriptionNews { status, ..plain.clone() });
    let ends = || said(SubscriptionNews { cancel_at_period_end: true, ..plain.clone() });
    let trial = SubscriptionNews {
        status: Trialing,
        trial_ends_at: Some(Timestamp::from_secs(1_790_000_000)),
        ..plain.clone()
    };
    let simulation =
        SubscriptionNews { product: Some((Product::BacktestingPro, BillingInterval::Yearly)), ..plain.clone() };
    let unpriced = |status| {
        said(SubscriptionNews { product: None, price: Some("price_other".to_owned()), status, ..plain.clone() })
    };
    let without_price = |status| said(SubscriptionNews { product: None, status, ..plain.clone() });
    let other = |status: &str| json!({"status": status, "items": {"data": [{"price": {"id": "price_other"}}]}});
    let items = |items: Value| json!({"items": {"data": items}});
    let updated = "customer.subscription.updated";
    let rows: Vec<(&str, Value, Short)> = vec![
        (updated, json!({}), is(Active)),
        ("customer.subscription.created", json!({}), is(Active)),
        ("customer.subscription.resumed", json!({}), is(Active)),
        (updated, json!({"status": "trialing", "trial_end": 1_790_000_000}), said(trial)),
        (updated, json!({"status": "past_due"}), is(PastDue)),
        (updated, json!({"status": "unpaid"}), is(PastDue)),
        (updated, json!({"status": "canceled"}), is(Canceled)),
        (updated, json!({"status": "incomplete"}), is(Incomplete)),
        (updated, json!({"status": "incomplete_expired"}), is(Incomplete)),
        ("customer.subscription.deleted", json!({}), is(Canceled)),
        ("customer.subscription.paused", json!({"status": "paused"}), is(Canceled)),
        (updated, json!({"cancel_at_period_end": true}), ends()),
        (updated, json!({"cancel_at": end}), ends()),
        // The newer place of the end of the period, and the older one of a price.
        (
            updated,
            json!({
                "current_period_end": null,
                "items": {"data": [{"price": {"id": "price_pro"}, "current_period_end": end}]},
            }),
            is(Active),
        ),
        (updated, items(json!([{"plan": {"id": "price_pro"}}])), is(Active)),
        (updated, items(json!([{"price": {"id": "x"}}, {"price": {"id": "price_pro"}}])), is(Active)),
        (updated, items(json!([{"price": {"id": "price_sim"}}])), said(simulation)),
        // It is kept with a price that is not known; without one it is not.
        (updated, items(json!([{"price": {"id": "price_other"}}])), unpriced(Active)),
        (updated, items(json!([{"plan": {"id": "price_other"}}, {"price": {"id": "x"}}])), unpriced(Active)),
        (updated, other("trialing"), unpriced(Trialing)),
        (updated, items(json!([])), Err(Unheeded::Price)),
        (updated, items(json!([{"price": {"id": "p".repeat(256)}}])), Err(Unheeded::Price)),
        (updated, items(json!([{"price": null}])), Err(Unheeded::Price)),
        // Its end counts though its price is not known, or not any more.
        ("customer.subscription.deleted", other("active"), unpriced(Canceled)),
        (updated, other("canceled"), unpriced(Canceled)),
        (updated, other("paused"), unpriced(Canceled)),
        (updated, other("past_due"), unpriced(PastDue)),
        (updated, other("unpaid"), unpriced(PastDue)),
        (updated, other("incomplete"), unpriced(Incomplete)),
        (updated, json!({"status": "canceled", "items": {"data": []}}), without_price(Canceled)),
        (updated, json!({"items": null}), Err(Unheeded::Fields)),
        (updated, json!({"status": "gold"}), Err(Unheeded::Fields)),
        (updated, json!({"status": null}), Err(Unheeded::Fields)),
        (updated, json!({"id": ""}), Err(Unheeded::Fields)),
        ("customer.subscription.trial_will_end", json!({}), Err(Unheeded::Type)),
        ("customer.created", json!({}), Err(Unheeded::Type)),
    ];
    println!("subscriptions: {} cases", rows.len());
    for (kind, fields, expected) in rows {
        assert_eq!(short(kind, &with(&object, &fields)), expected, "{kind} {fields}");
    }
    let unnamed = short(updated, &with(&object, &json!({"metadata": {}}))).expect("it is news");
    assert_eq!((unnamed.0, unnamed.1.as_deref()), (None, Some("cus_1")), "the customer finds the user");
}

#[test]
fn invoices_and_refunds_name_what_they_are_about() {
    let invoice = json!({
        "id": "in_1", "customer": "cus_1", "subscription": "sub_1",
        "subscription_details": {"metadata": {"user_id": "7"}},
    });
    let newer = json!({
        "id": "in_1", "customer": "cus_1",
        "parent": {"subscription_details": {"subscription": "sub_1", "metadata": {"user_id": "7"}}},
    });
    let charge = json!({
        "id": "ch_1", "customer": "cus_1", "payment_intent": "pi_1", "amount": 299, "amount_refunded": 100,
        "refunded": false, "currency": "usd", "metadata": {"user_id": "7"},
    });
    let refund = json!({
        "id": "re_1", "amount": 299, "charge": "ch_1", "payment_intent": "pi_1", "currency": "usd",
        "status": "succeeded", "metadata": {},
    });
    let customer = Some("cus_1".to_owned());
    let paid = |is_paid| {
        let news = BillingNews::Payment { subscription: "sub_1".to_owned(), is_paid };
        Ok((Some(7), customer.clone(), customer.clone(), news))
    };
    let returned = |payment: &str, refunded| BillingNews::Refund { payment: payment.to_owned(), refunded };
    let charged =
        |payment: &str, refunded| Ok((Some(7), customer.clone(), customer.clone(), returned(payment, refunded)));
    let alone = |payment: &str| Ok((None, Some(payment.to_owned()), None, returned(payment, 299)));
    let failed = |payment: &str| {
        let news = BillingNews::RefundFailed { payment: payment.to_owned(), refund: "re_1".to_owned(), cents: 299 };
        Ok((None, Some(payment.to_owned()), None, news))
    };
    let of_purchase = |purchase: &str| json!({"metadata": {"purchase": purchase}});
    let rows: Vec<(&str, Value, Short)> = vec![
        ("invoice.paid", invoice.clone(), paid(true)),
        ("invoice.payment_succeeded", invoice.clone(), paid(true)),
        ("invoice.payment_failed", invoice.clone(), paid(false)),
        ("invoice.paid", newer, paid(true)),
        ("invoice.paid", with(&invoice, &json!({"subscription": null})), Err(Unheeded::Type)),
        ("invoice.created", invoice, Err(Unheeded::Type)),
        ("charge.refunded", charge.clone(), charged("pi_1", 100)),
        ("charge.refunded", with(&charge, &json!({"amount_refunded": 299})), charged("pi_1", 299)),
        ("charge.refunded", with(&charge, &json!({"payment_intent": null})), charged("ch_1", 100)),
        ("charge.refunded", with(&charge, &json!({"amount_refunded": 300})), Err(Unheeded::Amount)),
        // That of a subscription.
        ("charge.refunded", with(&charge, &json!({"invoice": "in_1"})), Err(Unheeded::Type)),
        ("charge.refunded", with(&charge, &json!({"invoice": null})), charged("pi_1", 100)),
        ("charge.refunded", with(&charge, &json!({"currency": "jpy"})), Err(Unheeded::Amount)),
        ("charge.refunded", with(&charge, &json!({"amount_refunded": "all"})), Err(Unheeded::Fields)),
        ("charge.succeeded", charge, Err(Unheeded::Type)),
        ("refund.created", refund.clone(), alone("pi_1")),
        ("refund.updated", with(&refund, &json!({"status": "pending"})), Err(Unheeded::Type)),
        ("refund.updated", with(&refund, &json!({"status": "requires_action"})), Err(Unheeded::Type)),
        ("refund.updated", with(&refund, &json!({"status": null})), Err(Unheeded::Type)),
        ("refund.failed", with(&refund, &json!({"status": "failed"})), failed("pi_1")),
        ("refund.updated", with(&refund, &json!({"status": "failed"})), failed("pi_1")),
        ("charge.refund.updated", with(&refund, &json!({"status": "failed"})), failed("pi_1")),
        ("refund.updated", with(&refund, &json!({"status": "canceled"})), failed("pi_1")),
        ("charge.refund.updated", refund.clone(), alone("pi_1")),
        ("refund.failed", with(&refund, &json!({"status": "failed", "payment_intent": null})), failed("ch_1")),
        ("refund.failed", with(&refund, &json!({"status": "failed", "id": null})), Err(Unheeded::Fields)),
        ("refund.failed", with(&refund, &json!({"status": "failed", "id": "r".repeat(256)})), Err(Unheeded::Fields)),
        ("refund.failed", with(&refund, &json!({"status": "failed", "amount": -1})), Err(Unheeded::Fields)),
        ("refund.failed", with(&refund, &json!({"status": "failed", "currency": "eur"})), Err(Unheeded::Amount)),
        // One that this server made of a purchase that is known by its page.
        ("refund.created", with(&refund, &of_purchase("cs_1")), alone("cs_1")),
        ("refund.created", with(&refund, &of_purchase("")), alone("pi_1")),
        ("refund.created", with(&refund, &of_purchase(&"c".repeat(256))), alone("pi_1")),
        ("refund.updated", with(&refund, &json!({"payment_intent": null})), alone("ch_1")),
        ("refund.updated", with(&refund, &json!({"currency": "eur"})), Err(Unheeded::Amount)),
        ("refund.updated", with(&refund, &json!({"amount": null})), Err(Unheeded::Fields)),
    ];
    println!("invoices and refunds: {} cases", rows.len());
    for (kind, object, expected) in rows {
        assert_eq!(short(kind, &object), expected, "{kind} {object}");
    }
}

#[test]
fn another_body_is_no_event() {
    let whole = of("invoice.paid", &json!({}));
    let mut cases = 0;
    for fields in [
        json!({"id": null}),
        json!({"id": "evt 1"}),
        json!({"id": "e".repeat(256)}),
        json!({"type": 7}),
        json!({"created": null}),
        json!({"created": 0}),
        json!({"created": -5}),
        json!({"created": 1.5}),
        json!({"created": u64::MAX}),
        json!({"data": {}}),
        json!({"data": {"object": []}}),
        json!({"data": null}),
    ] {
        let body = with(&whole, &fields).to_string();
        assert_eq!(read(body.as_bytes(), &prices()), Err(NotGenuine), "{fields}");
        cases += 1;
    }
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for body in ["", "{}", "[]", "null", "{", "\u{0}", "{\"id\":\"evt_1\"}", &deep, &format!("{whole}x")] {
        assert_eq!(read(body.as_bytes(), &prices()), Err(NotGenuine), "{body:.40}");
        cases += 1;
    }
    assert_eq!(read(&[0xff, 0xfe, b'{', b'}'], &prices()), Err(NotGenuine));
    println!("no events: {} cases", cases + 1);
}
