//! Customers that are deleted at the provider.

use super::*;

#[test]
fn a_customer_that_was_deleted_is_replaced() {
    let cases = Cases::of("deleted customers");
    let (mut world, payments) = paying(|_| {});
    let mut payer = Payer::new(&world, &payments, "ada");
    payer.subscribe(&world, "evt_1", "pro_monthly", unix_now() - 100);
    let old = payer.customer.clone();
    payments.delete_customer(&old);
    payments.take_calls();
    // The portal makes no customer.
    payer.session.post("/v1/billing/portal", &json!({})).refused(400, "INVALID_REQUEST");
    payments.take_calls();
    // The living subscription ended with its customer, so the page is for a new one.
    payer.session.post("/v1/billing/checkout", &plan("pro_plus", "monthly")).expect(200);
    let calls = payments.take_calls();
    let made = calls.iter().find(|call| call.path == "/v1/customers").expect("a new customer");
    assert_eq!((made.form["metadata[replaces]"].as_str(), calls.len()), (&*old, 5), "{calls:?}");
    let page = calls.last().expect("a page");
    let new = page.form["customer"].clone();
    assert_eq!((page.path.as_str(), page.form["mode"].as_str()), ("/v1/checkout/sessions", "subscription"));
    assert_ne!(new, old);
    // It is in the log.
    world.crash();
    payer.session.moved_to(world.server.address());
    payer.session.post("/v1/billing/portal", &json!({})).expect(200);
    assert_eq!(payments.take_calls()[0].form["customer"], new);
    // The end of the old subscription comes late, and still counts; a new one of the old customer does not.
    let admin = world.server.admin().expect("there is one");
    let deleted = "customer.subscription.deleted";
    let object = |id: &str, customer: &str, status: &str| {
        subscription(id, customer, payer.user, "pro_monthly", status, unix_now() + DAY)
    };
    deliver(&world.server, &event("evt_2", deleted, unix_now(), &object("sub_1", &old, "canceled")), 0).expect(200);
    assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/status"), "canceled");
    let created = "customer.subscription.created";
    deliver(&world.server, &event("evt_3", created, unix_now(), &object("sub_2", &old, "active")), 0).expect(200);
    assert_eq!((counted(admin, "applied"), counted(admin, "other_customer")), (1, 1));
    deliver(&world.server, &event("evt_4", created, unix_now(), &object("sub_3", &new, "active")), 0).expect(200);
    assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/status"), "active");
    // A second one, within the hour in which attempts have one idempotency key.
    payments.delete_customer(&new);
    let reset = json!({"sku": "topup_main_reset", "consent_acknowledged": true});
    payer.session.post("/v1/billing/topup/checkout", &reset).expect(200);
    let third = payments.take_calls().pop().expect("a page").form["customer"].clone();
    assert!(third != new && third != old);
    // One that is deleted as well in between: the checkout fails, and the next one is for another customer.
    payments.delete_customer(&third);
    payments.fail(Some(Fault::At("/v1/customers", 500)));
    payer.session.post("/v1/billing/topup/checkout", &reset).refused(502, "UPSTREAM_UNAVAILABLE");
    payments.fail(None);
    payer.session.post("/v1/billing/topup/checkout", &reset).expect(200);
    cases.add(10);
}
