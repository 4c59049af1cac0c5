use super::*;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::JoinHandle;

const NOW: Timestamp = Timestamp(1_790_932_500_000_000);
const SECRET_KEY: &str = "sk_test_0123456789abcdef";

/// A call as the provider receives it.
#[derive(Debug)]
struct Received {
    line: String,
    content_length: Option<String>,
    idempotency_key: Option<String>,
    form: String,
}

/// A provider that gives each call the next of these answers, one connection each.
fn provider(answers: Vec<Value>) -> (String, JoinHandle<Vec<Received>>) {
    provider_of(answers.into_iter().map(|answer| (200, answer)).collect())
}

/// The same, with the status of each answer.
fn provider_of(answers: Vec<(u16, Value)>) -> (String, JoinHandle<Vec<Received>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let serve = move || {
        let one = |(status, answer): (u16, Value)| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let received = received(&stream);
            let body = answer.to_string();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).expect("the caller reads it");
            received
        };
        answers.into_iter().map(one).collect()
    };
    (base_url, std::thread::spawn(serve))
}

fn received(stream: &TcpStream) -> Received {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let mut headers = lines.iter().filter_map(|line| line.split_once(": "));
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    assert_eq!(header("authorization"), Some(format!("Bearer {SECRET_KEY}")));
    let content_length = header("content-length");
    let length = content_length.as_deref().map_or(0, |text| text.parse().expect("a length"));
    let mut form = vec![0; length];
    reader.read_exact(&mut form).expect("the whole form");
    let form = String::from_utf8(form).expect("a form is ASCII");
    Received { line: lines[0].clone(), content_length, idempotency_key: header("idempotency-key"), form }
}

fn stripe(base_url: &str, server_secret: &str) -> Stripe {
    let price = |id: &str, product| Price { id: id.to_owned(), product, interval: BillingInterval::Monthly };
    let settings = Settings {
        base_url: base_url.to_owned(),
        secret_key: Secret::new(SECRET_KEY.to_owned()),
        server_secret: Secret::new(server_secret.to_owned()),
        webhook_secrets: Vec::new(),
        prices: vec![price("price_pro", Product::Pro), price("price_plus", Product::ProPlus)],
        success_url: "https://paper.example/success".to_owned(),
        cancel_url: "https://paper.example/cancel".to_owned(),
        return_url: "https://paper.example/return".to_owned(),
        calls_max: 4,
    };
    Stripe::start(settings).expect("a thread can be made")
}

/// Runs a future like an IO thread does.
fn run<T>(future: impl Future<Output = T>) -> T {
    host::runtime::runtime().expect("a runtime").block_on(future)
}

/// The keys of customers and refunds do not depend on the attempt; those of sessions do.
#[test]
fn another_attempt_has_the_same_key() {
    let hour = NOW.plus(ATTEMPTS_SECS * 1_000_000);
    let ada = Some("ada@example.net");
    // User, email, the customer that is replaced, time, secret of the server.
    let customers = [
        (7, ada, None, NOW, "one"),
        (7, ada, None, NOW.plus(1_000_000), "one"),
        (7, None, None, NOW, "one"),
        (8, ada, None, NOW, "one"),
        (7, ada, None, hour, "one"),
        (7, ada, None, NOW, "two"),
        (7, ada, Some("cus_1"), NOW, "one"),
        (7, ada, Some("cus_2"), NOW, "one"),
    ];
    // Payment, refunds of it that failed, time.
    let refunds =
        [("pi_1", 0, NOW), ("pi_1", 0, NOW.plus(1_000_000)), ("pi_2", 0, NOW), ("ch_1", 0, NOW), ("pi_1", 1, NOW)];
    let answers = vec![json!({"id": "x_1", "url": "https://pay.example/1"}); customers.len() + refunds.len() + 2];
    let (base_url, received) = provider(answers);
    for (user, email, instead_of, now, secret) in customers {
        let made = run(stripe(&base_url, secret).customer(UserId(user), email, instead_of, now));
        assert_eq!(made, Ok("x_1".to_owned()));
    }
    let stripe = stripe(&base_url, "one");
    for (payment, failed, now) in refunds {
        assert_eq!(run(stripe.refund(payment, failed, now)), Ok(Some("x_1".to_owned())));
    }
    for _ in 0..2 {
        let portal = Portal { user: UserId(7), customer: "cus_1", base: String::new(), subscription: None, now: NOW };
        assert_eq!(run(stripe.portal(portal)), Ok("https://pay.example/1".to_owned()));
    }
    // The stub's payments are not sent.
    assert_eq!(run(stripe.refund("pi_stub_1", 0, NOW)), Ok(None));
    let received = received.join().expect("no panic");
    let keys: Vec<&str> = received.iter().map(|call| call.idempotency_key.as_deref().expect("it has one")).collect();
    assert!(keys.iter().all(|key| key.len() == 32), "{keys:?}");
    assert_eq!((keys[0], keys[8]), (keys[1], keys[9]), "a second later");
    let different: std::collections::BTreeSet<&str> = keys.iter().copied().collect();
    assert_eq!(different.len(), keys.len() - 2, "all others differ: {keys:?}");
    assert_eq!(received[0].form, "metadata%5Buser_id%5D=7&email=ada%40example.net");
    assert!(received[6].form.ends_with("&metadata%5Breplaces%5D=cus_1"), "{}", received[6].form);
    assert_eq!((received[8].form.as_str(), received[11].form.as_str()), ("payment_intent=pi_1", "charge=ch_1"));
    println!("keys of calls: {} cases", keys.len() + 1);
}

/// An id that an event could not name is refused.
#[test]
fn an_id_of_another_form_is_refused() {
    let (longest, longer) = ("c".repeat(255), "c".repeat(256));
    let huge = "c".repeat(5_000);
    // The id, and whether it is taken.
    let rows = [
        (json!("cus_1"), true),
        (json!(longest), true),
        (json!(longer), false),
        (json!(huge), false),
        (json!(""), false),
        (json!("cus_1\n"), false),
        (json!("cus_\u{1b}[31m"), false),
        (json!("cus_\u{0}"), false),
        (json!("cus 1"), false),
        (json!("cüs_1"), false),
        (json!(7), false),
        (Value::Null, false),
    ];
    println!("ids of answers: {} cases", 2 * rows.len());
    let answers = rows.iter().flat_map(|(id, _)| [json!({ "id": id }), json!({ "id": id })]).collect();
    let (base_url, received) = provider(answers);
    let stripe = stripe(&base_url, "one");
    for (id, is_taken) in &rows {
        let expected = if *is_taken { Ok(id.as_str().unwrap_or_default().to_owned()) } else { Err(Failed::Away) };
        assert_eq!(run(stripe.customer(UserId(7), None, None, NOW)), expected, "{id}");
        assert_eq!(run(stripe.refund("pi_1", 0, NOW)), expected.map(Some), "{id}");
    }
    assert_eq!(received.join().expect("no panic").len(), 2 * rows.len());
}

#[test]
fn a_change_is_of_the_item_with_a_known_price() {
    let item = |id: &str, price: &str| json!({"id": id, "price": {"id": price}});
    let rows = [
        (json!([item("si_1", "price_pro")]), Some("si_1")),
        (json!([item("si_0", "support"), item("si_1", "price_pro")]), Some("si_1")),
        (json!([item("si_0", "support"), {"id": "si_1", "plan": {"id": "price_plus"}}]), Some("si_1")),
        // The only one, of a price that the settings do not name any more.
        (json!([item("si_1", "price_old")]), Some("si_1")),
        (json!([item("si_0", "support"), item("si_1", "price_old")]), None),
        (json!([]), None),
        (Value::Null, None),
    ];
    let mut cases = 0;
    for (items, expected) in rows {
        let mut answers = vec![json!({"id": "sub_1", "items": {"data": items}})];
        answers.extend(expected.map(|_| json!({"url": "https://pay.example/1"})));
        let (base_url, received) = provider(answers);
        let wanted = Wanted::Plan {
            product: Product::ProPlus,
            interval: BillingInterval::Monthly,
            instead_of: Some("sub_1".to_owned()),
        };
        let (customer, base) = ("cus_1".to_owned(), String::new());
        let checkout = Checkout { user: UserId(7), customer, base, wanted, now: NOW };
        let page = run(stripe(&base_url, "one").checkout(checkout));
        let received = received.join().expect("no panic");
        assert_eq!(received[0].line, "GET /v1/subscriptions/sub_1 HTTP/1.1");
        assert_eq!(received[0].idempotency_key, None, "a read needs none");
        match expected {
            Some(item) => {
                assert_eq!(page, Ok("https://pay.example/1".to_owned()), "{items}");
                let field = format!("%5Bitems%5D%5B0%5D%5Bid%5D={item}&");
                assert!(received[1].form.contains(&field), "{}", received[1].form);
            }
            None => assert_eq!(page, Err(Failed::Away), "{items}"),
        }
        cases += 1;
    }
    println!("items of a change: {cases} cases");
}

/// An open page for another plan of the same kind is ended before a new one is made.
#[test]
fn a_new_page_for_a_plan_ends_the_open_ones() {
    let open = |id: &str, mode: &str, user: &str, plan: Option<&str>| {
        let mut metadata = json!({"user_id": user});
        if let Some(plan) = plan {
            metadata["plan"] = json!(plan);
        }
        json!({"id": id, "mode": mode, "status": "open", "metadata": metadata})
    };
    let rows: Vec<(Value, &[&str])> = vec![
        (json!([]), &[]),
        (Value::Null, &[]),
        (json!([open("cs_1", "subscription", "7", Some("pro"))]), &["cs_1"]),
        (json!([open("cs_1", "subscription", "7", Some("pro_plus"))]), &["cs_1"]),
        // Of an earlier build, which did not name the plan.
        (json!([open("cs_1", "subscription", "7", None)]), &["cs_1"]),
        (json!([open("cs_1", "subscription", "7", Some("backtesting_pro"))]), &[]),
        (json!([open("cs_1", "payment", "7", None)]), &[]),
        (json!([open("cs_1", "subscription", "8", Some("pro"))]), &[]),
        (
            json!([
                open("cs_1", "payment", "7", None),
                open("cs_2", "subscription", "7", Some("pro")),
                open("cs_3", "subscription", "7", None),
            ]),
            &["cs_2", "cs_3"],
        ),
    ];
    let checkout = || {
        let wanted = Wanted::Plan { product: Product::Pro, interval: BillingInterval::Monthly, instead_of: None };
        Checkout { user: UserId(7), customer: "cus_1".to_owned(), base: String::new(), wanted, now: NOW }
    };
    let made = || (200, json!({"id": "cs_9", "url": "https://pay.example/9"}));
    let mut cases = 0;
    for (sessions, ended) in rows {
        let mut answers = vec![(200, json!({"data": sessions}))];
        answers.extend(ended.iter().map(|id| (200, json!({"id": id, "status": "expired"}))));
        answers.push(made());
        let (base_url, received) = provider_of(answers);
        assert_eq!(run(stripe(&base_url, "one").checkout(checkout())), Ok("https://pay.example/9".to_owned()));
        let received = received.join().expect("no panic");
        assert_eq!(received[0].line, "GET /v1/checkout/sessions?customer=cus_1&status=open&limit=100 HTTP/1.1");
        for (call, id) in received[1..].iter().zip(ended) {
            assert_eq!(call.line, format!("POST /v1/checkout/sessions/{id}/expire HTTP/1.1"));
            assert_eq!((call.form.as_str(), call.content_length.as_deref()), ("", Some("0")));
            assert!(call.idempotency_key.is_some());
        }
        let last = received.last().expect("the page");
        assert!(last.form.contains("metadata%5Bplan%5D=pro&"), "{}", last.form);
        cases += 1;
    }
    // No page is made while another one may still be open, and none for a customer that is not there.
    let page = json!([open("cs_1", "subscription", "7", Some("pro"))]);
    let gone = json!({"error": {"type": "invalid_request_error", "code": "resource_missing", "param": "customer"}});
    let other = json!({"error": {"type": "invalid_request_error", "code": "resource_missing", "param": "price"}});
    let (none, broken) = ((200, json!({"data": []})), json!([open("../x", "subscription", "7", None)]));
    let failures: Vec<(Vec<(u16, Value)>, Failed)> = vec![
        (vec![(500, json!({}))], Failed::Away),
        (vec![(200, json!({"data": page})), (400, json!({"error": {"code": "x"}}))], Failed::Away),
        (vec![(200, json!({"data": broken}))], Failed::Away),
        (vec![(404, gone.clone())], Failed::NoCustomer),
        (vec![none.clone(), (400, gone)], Failed::NoCustomer),
        (vec![none, (400, other)], Failed::Away),
    ];
    for (answers, expected) in failures {
        let count = answers.len();
        let (base_url, received) = provider_of(answers);
        assert_eq!(run(stripe(&base_url, "one").checkout(checkout())), Err(expected));
        assert_eq!(received.join().expect("no panic").len(), count);
        cases += 1;
    }
    println!("open pages: {cases} cases");
}

/// A purchase that is known by its page is returned by the payment of the page.
#[test]
fn a_purchase_is_returned_by_its_page() {
    let session = |intent: Value| json!({"id": "cs_1", "payment_intent": intent});
    // The session, the form of the refund.
    let form = "payment_intent=pi_7&metadata%5Bpurchase%5D=cs_1";
    let rows = [
        (session(json!("pi_7")), Some(form)),
        (session(json!({"id": "pi_7"})), Some(form)),
        (session(Value::Null), None),
        (session(json!(7)), None),
    ];
    let mut cases = 0;
    for (session, form) in rows {
        for is_refund in [true, false] {
            let mut answers = vec![session.clone()];
            answers.extend(form.filter(|_| is_refund).map(|_| json!({"id": "re_1"})));
            let (base_url, received) = provider(answers);
            let stripe = stripe(&base_url, "one");
            if is_refund {
                assert_eq!(run(stripe.refund("cs_1", 0, NOW)), Ok(form.map(|_| "re_1".to_owned())));
            } else {
                assert_eq!(run(stripe.payment_of("cs_1")), Ok(form.map(|_| "pi_7".to_owned())));
            }
            let received = received.join().expect("no panic");
            assert_eq!(received[0].line, "GET /v1/checkout/sessions/cs_1 HTTP/1.1");
            assert_eq!(received.get(1).map(|call| call.form.as_str()), form.filter(|_| is_refund));
            cases += 1;
        }
    }
    // Not a page, or not an id: nothing is called.
    let stripe = stripe("http://127.0.0.1:1", "one");
    for (page, expected) in
        [("pi_7", Ok(None)), ("", Ok(None)), ("cs_../x", Err(Failed::Away)), ("cs_é", Err(Failed::Away))]
    {
        assert_eq!(run(stripe.payment_of(page)), expected, "{page}");
        cases += 1;
    }
    println!("purchases by their page: {cases} cases");
}

/// `a_change_is_of_the_item_with_a_known_price` in a process whose environment names a proxy on which nothing listens.
#[test]
fn a_plain_call_goes_to_no_proxy() {
    let mut again = Command::new(std::env::current_exe().expect("the path of this program"));
    again.args(["--exact", "stripe::tests::a_change_is_of_the_item_with_a_known_price"]);
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        again.env(name, "http://127.0.0.1:1");
    }
    let output = again.env_remove("no_proxy").env_remove("NO_PROXY").output().expect("it can be run");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}
