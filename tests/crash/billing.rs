//! Events of a payment provider and `kill -9` at random moments: what was answered is there, once, and so is what is sent
//! again (gateway/docs/billing.md §4).

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::http::Request;
use tests::json::{int, list, text};
use tests::payments::{Payments, event, paid, signature, subscription};
use tests::token::{token, unix_now};
use tests::world::World;

/// Kills, and top-ups between two of them.
const KILLS: u64 = 6;
const TOPUPS: u64 = 30;

#[test]
fn every_top_up_is_credited_once() {
    let cases = Cases::of("top-ups across kills");
    let (payments, mut chance) = (Payments::start(), Chance::seeded(7));
    let mut world = World::start_with(0, |place| payments.settings(place));
    let token = token("ada");
    let mut session = world.server.with_token(&token);
    let user = int(&session.get("/v1/me").expect(200), "/user_id");
    let plan = json!({"plan": "pro", "billing": "monthly", "consent_acknowledged": true});
    session.post("/v1/billing/checkout", &plan).expect(200);
    let customer = payments.take_calls().pop().expect("a session").form["customer"].clone();
    let active = subscription("sub_1", &customer, user, "pro_monthly", "active", unix_now() + 86_400);
    let events = |world: &World| world.server.client();
    let send = |client: &mut tests::http::Client, event: &serde_json::Value| {
        let body = event.to_string();
        let request = Request::post("/v1/billing/webhook").text("application/json", &body);
        client.call(&request.header("Stripe-Signature", &signature(&body, unix_now())))
    };
    let created = event("evt_0", "customer.subscription.created", unix_now(), &active);
    send(&mut events(&world), &created).expect("an answer").expect(200);
    let wallet = session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201);
    let wallet = int(&wallet, "/id");
    let mut sent = 0;
    for kill in 0..KILLS {
        let batch: Vec<_> = (0..TOPUPS)
            .map(|number| {
                let payment = format!("pi_{kill}_{number}");
                let object = paid(&payment, &customer, user, "topup_500", Some(wallet), 299);
                event(&format!("evt_{kill}_{number}"), "checkout.session.completed", unix_now(), &object)
            })
            .collect();
        // A client sends them; the process ends somewhere among them, after a random count of answers.
        let answered = Arc::new(AtomicU64::new(0));
        let (mut client, counting, sending) = (events(&world), Arc::clone(&answered), batch.clone());
        let sender = std::thread::spawn(move || {
            for event in &sending {
                match send(&mut client, event) {
                    Ok(answer) if answer.status == 200 => _ = counting.fetch_add(1, Ordering::SeqCst),
                    _ => break,
                }
            }
        });
        let enough = chance.below(TOPUPS as usize) as u64;
        eventually("some answers", || (answered.load(Ordering::SeqCst) >= enough).then_some(()));
        world.server.kill();
        sender.join().expect("no panic");
        let answered = answered.load(Ordering::SeqCst);
        world.server = world.place.start();
        session.moved_to(world.server.address());
        let balance = |session: &mut tests::http::Client| {
            let shown = session.get(&format!("/v1/me/wallets/{wallet}")).expect(200);
            let whole = text(&shown, "/balance").split('.').next().expect("dollars").parse::<u64>();
            (whole.expect("a number") - 10_000) / 500
        };
        // All answered ones, and at most the one that was on its way.
        let credited = balance(&mut session);
        assert!((sent + answered..=sent + answered + 1).contains(&credited), "{credited} of {sent} + {answered}");
        // The provider sends all of them again, some twice.
        let mut client = events(&world);
        for event in batch.iter().chain(batch.iter().step_by(3)) {
            send(&mut client, event).expect("an answer").expect(200);
            cases.one();
        }
        sent += TOPUPS;
        assert_eq!(balance(&mut session), sent, "each is credited once");
    }
    let wallets = session.get("/v1/me/wallets").expect(200);
    assert_eq!(list(&wallets, "/wallets").len(), 3);
    world.server.kill();
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
}
