//! One broken order for each rule, orders that the venue's own clients signed, and hostile signatures.

use super::super::order_hash::{FIRST_EXCHANGES, ORDER_TYPE, POLYGON, SECOND_EXCHANGES, contents, digest, domain};
use super::super::signature::{Address, hexadecimal, keccak, word};
use super::*;
use crate::api::testing::{Answered, Town, Trader};
use crate::http::testing::NOW;
use engine::amount::Price;
use engine::command::{Command, Placement};
use engine::directory::Reservation;
use engine::fact;
use engine::id::{Outcome, UserId};
use engine::mutation::Mutation;
use engine::rehearsal::{AddressKind, DeclaredAddress, Finding};
use engine::user::{Permissions, Tier};
use k256::ecdsa::{Signature, SigningKey};
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::rc::Rc;
use wire::read;

const AMOY: u64 = 80_002;
const THIRD_EXCHANGE: &[u8] = b"0xe3333700ca9d93003f00f0f71f8515005f6c00aa";
const ENTERPRISE: &str = "[limits.tiers.enterprise]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n";

/// A key of the account with this number; its secret is the number.
fn key_of(number: u8) -> SigningKey {
    let mut secret = [0; 32];
    secret[31] = number;
    SigningKey::from_slice(&secret).expect("a small number is a key")
}

fn address_of(number: u8) -> Address {
    Address::of(key_of(number).verifying_key())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// r, s and v of a digest.
fn signature_of(number: u8, digest: &[u8; 32]) -> [u8; 65] {
    let (signature, recovery) = key_of(number).sign_prehash_recoverable(digest).expect("32 bytes");
    let mut bytes = [0; 65];
    bytes[..64].copy_from_slice(&signature.to_bytes());
    bytes[64] = recovery.to_byte() + 27;
    bytes
}

fn contents_of(order: &Json) -> Option<[u8; 32]> {
    let text = order.to_string();
    contents(&read::json(text.as_bytes()).expect("JSON"))
}

/// Signs an order by a key, for an exchange.
fn sign(order: &mut Json, number: u8, version: &[u8], chain: u64, exchange: &[u8]) {
    let contents = contents_of(order).expect("every field is sound");
    let signature = signature_of(number, &digest(&domain(version, chain, exchange), &contents));
    order["signature"] = json!(format!("0x{}", hex(&signature)));
}

/// Signs an order for its own exchange, as its deposit wallet accepts it.
fn wrap(order: &mut Json, number: u8, chain: u64, exchange: &[u8]) {
    let contents = contents_of(order).expect("every field is sound");
    let wallet: [u8; 20] = hexadecimal(order["maker"].as_str().expect("a text").as_bytes()).expect("an address");
    let domain = domain(b"2", chain, exchange);
    let kind = "TypedDataSign(Order contents,string name,string version,uint256 chainId,address verifyingContract,\
                bytes32 salt)";
    let signed = [
        keccak(&[kind.as_bytes(), ORDER_TYPE.as_bytes()]),
        contents,
        keccak(&[b"DepositWallet"]),
        keccak(&[b"1"]),
        word(&chain.to_be_bytes()),
        word(&wallet),
        [0; 32],
    ];
    let inner = signature_of(number, &digest(&domain, &keccak(&[&signed.concat()])));
    let kind = ORDER_TYPE.as_bytes();
    let all = [&inner[..], &domain, &contents, kind, &(kind.len() as u16).to_be_bytes()].concat();
    order["signature"] = json!(format!("0x{}", hex(&all)));
}

/// An order of account 1, as its client sends it: BUY 10 at 0.41, signed.
fn body(owner: &str) -> Json {
    let mut order = json!({
        "salt": 479_249_096_354_u64,
        "maker": address_of(1).to_string(),
        "signer": address_of(1).to_string(),
        "tokenId": "81140002",
        "makerAmount": "4100000",
        "takerAmount": "10000000",
        "side": "BUY",
        "signatureType": 0,
        "timestamp": (NOW.0 / 1_000).to_string(),
        "metadata": format!("0x{}", "0".repeat(64)),
        "builder": format!("0x{}", "0".repeat(64)),
        "expiration": "0",
    });
    sign(&mut order, 1, b"2", POLYGON, SECOND_EXCHANGES[0]);
    json!({"order": order, "owner": owner, "orderType": "GTC", "deferExec": false, "postOnly": false})
}

/// A town with the account of address 1, and what its shard got.
struct Stage {
    town: Town,
    key: String,
    placed: Rc<RefCell<Vec<Placement>>>,
    noted: Rc<RefCell<Vec<Finding>>>,
}

impl Stage {
    fn new(settings: &str) -> Stage {
        let town = Town::with(&format!("{ENTERPRISE}[venue]\n{settings}"));
        let sub = format!("address:{}", address_of(1));
        let Reservation::Reserved(user) = town.directory().reserve(&sub) else { panic!("it is new") };
        town.note(user, Mutation::UserCreated(fact::UserCreated { sub: Some(sub), email: None, at: NOW }));
        let tier = Tier::Enterprise;
        town.note(user, Mutation::GrantSet(fact::GrantSet { tier, expires_at: None, at: NOW }));
        let key = town.another_key(user, tier, Permissions::ReadTrade);
        let (placed, noted) = (Rc::<RefCell<Vec<Placement>>>::default(), Rc::<RefCell<Vec<Finding>>>::default());
        let stage = Stage { town, key, placed, noted };
        stage.answer(|placement| match placement.terms {
            Ok(_) => None,
            Err(InvalidTerms) => Some(Reject::InvalidTerms),
        });
        stage
    }

    /// Sets which placements the shard refuses; it accepts the others.
    fn answer(&self, refuse: impl Fn(&Placement) -> Option<Reject> + 'static) {
        let mut trader = Trader::new(1_000_000_000_000, self.town.market.instrument(Outcome::First));
        let terms = trader.terms(4_100, 10);
        trader.place(90_460, terms, NOW);
        let view = trader.view(90_460);
        let (placed, noted) = (Rc::clone(&self.placed), Rc::clone(&self.noted));
        self.town.shard(move |_: UserId, command| {
            let answer = |placement: &Placement| match refuse(placement) {
                Some(reject) => BatchEntry::Refused(reject),
                None => BatchEntry::Placed(view.clone()),
            };
            Ok(match command {
                Command::Place(placement) => {
                    let entry = answer(&placement);
                    placed.borrow_mut().push(*placement);
                    match entry {
                        BatchEntry::Placed(view) => Answer::Order(view),
                        BatchEntry::Refused(reject) => Answer::Refused(reject),
                        BatchEntry::Killed { reject, order } => Answer::Killed { reject, order },
                    }
                }
                Command::PlaceBatch(placements) => {
                    let entries = placements.iter().map(answer).collect();
                    placed.borrow_mut().extend(placements);
                    Answer::Batch(entries)
                }
                Command::NoteStrict { findings, .. } => {
                    noted.borrow_mut().extend(findings);
                    Answer::Done
                }
                other => panic!("not expected: {other:?}"),
            })
        });
    }

    fn send(&self, target: &str, body: &Json) -> Answered {
        self.town.send_as(&self.key, "POST", target, &body.to_string())
    }

    /// What was journaled about rules, but for S07, which every order of these types has: `S03 Refused OtherChain`.
    fn found(&self) -> Vec<String> {
        let noted = self.noted.borrow();
        let is_shown =
            |found: &&Finding| found.rule != Rule::Orders && (found.rule, found.class) != (Rule::S07, Class::Depends);
        let shown = noted.iter().filter(is_shown);
        shown.map(|found| format!("{:?} {:?} {:?}", found.rule, found.class, found.diagnosis)).collect()
    }
}

/// What is done to a sound order, before or after it is signed.
type Change = Box<dyn Fn(&mut Json)>;

/// A broken order: its name, settings, what is done to it, its findings; code and sentence of the first refusal.
type Row = (&'static str, &'static str, Change, &'static [&'static str], &'static str, &'static str);

fn set(place: &'static str, value: Json) -> Change {
    Box::new(move |body| {
        let (parent, field) = place.rsplit_once('/').expect("a pointer");
        let parent = body.pointer_mut(parent).and_then(Json::as_object_mut).expect("an object");
        if value.is_null() {
            parent.remove(field);
        } else {
            parent.insert(field.to_owned(), value.clone());
        }
    })
}

/// Sets fields and signs the order again.
fn signed(changes: Vec<(&'static str, Json)>) -> Change {
    Box::new(move |body| {
        changes.iter().for_each(|(place, value)| set(place, value.clone())(body));
        sign(&mut body["order"], 1, b"2", POLYGON, SECOND_EXCHANGES[0]);
    })
}

fn signed_for(version: &'static [u8], chain: u64, exchange: &'static [u8]) -> Change {
    Box::new(move |body| sign(&mut body["order"], 1, version, chain, exchange))
}

fn in_secs(ahead: u64) -> Json {
    json!((NOW.secs() + ahead).to_string())
}

fn rows() -> Vec<Row> {
    let text = |address: Address| json!(address.to_string());
    let signature = "invalid signature";
    let invalid = ("INVALID_SIGNATURE", signature);
    let payload = ("INVALID_ORDER_PAYLOAD", "Invalid order payload");
    let expiration = ("INVALID_ORDER_EXPIRATION", "invalid expiration");
    let row = |name: &'static str,
               change: Change,
               found: &'static [&'static str],
               (code, sentence): (&'static str, &'static str)|
     -> Row { (name, "", change, found, code, sentence) };
    let nothing = || -> Change { Box::new(|_| {}) };
    let first = |fee: &'static str| -> Change {
        Box::new(move |body| {
            let order = body["order"].as_object_mut().expect("an object");
            ["timestamp", "metadata", "builder"].iter().for_each(|name| drop(order.remove(*name)));
            order.insert("nonce".to_owned(), json!("0"));
            order.insert("feeRateBps".to_owned(), json!(fee));
        })
    };
    let high: Change = Box::new(|body| {
        let text = body["order"]["signature"].as_str().expect("a text").to_owned();
        let bytes: [u8; 65] = hexadecimal(text.as_bytes()).expect("a signature");
        let low = Signature::from_slice(&bytes[..64]).expect("r and s");
        let high = Signature::from_scalars(low.r().to_bytes(), (-*low.s()).to_bytes()).expect("s is not 0");
        body["order"]["signature"] = json!(format!("0x{}{:02x}", hex(&high.to_bytes()), 55 - bytes[64]));
    });
    let version = ("ORDER_VERSION_MISMATCH", "order_version_mismatch");
    let mut rows = vec![
        row("sound", nothing(), &[], ("", "")),
        row("first generation", first("1000"), &["S01 Refused FirstGeneration"], version),
        row("another fee", first("0"), &["S01 Refused FirstGeneration", "S17 Depends Plain"], version),
        row(
            "another owner",
            set("/owner", json!("svc_live_00")),
            &["S02 Refused Plain"],
            ("OWNER_NOT_KEY", "the order owner has to be the owner of the API KEY"),
        ),
        row(
            "no owner",
            set("/owner", Json::Null),
            &["S02 Refused Plain"],
            ("OWNER_NOT_KEY", "the order owner has to be the owner of the API KEY"),
        ),
        row("other exchange", signed_for(b"2", POLYGON, SECOND_EXCHANGES[1]), &["S03 Refused OtherExchange"], invalid),
        row("other chain", signed_for(b"2", AMOY, SECOND_EXCHANGES[0]), &["S03 Refused OtherChain"], invalid),
        row(
            "other exchange and chain",
            signed_for(b"2", AMOY, SECOND_EXCHANGES[1]),
            &["S03 Refused OtherExchangeAndChain"],
            invalid,
        ),
        row(
            "first version",
            signed_for(b"1", POLYGON, FIRST_EXCHANGES[0]),
            &["S01 Refused FirstVersion", "S03 Refused FirstVersion"],
            version,
        ),
        row("third version", signed_for(b"3", POLYGON, THIRD_EXCHANGE), &["S18 Depends ThirdVersion"], ("", "")),
        row("high s", high, &["S03 Refused HighS"], invalid),
        row("another order", set("/order/salt", json!(7)), &["S03 Refused OtherSigner"], invalid),
        row("a short signature", set("/order/signature", json!("0x5f")), &["S03 Refused Length"], invalid),
        row("no signature", set("/order/signature", Json::Null), &["S03 Refused Length"], invalid),
        row(
            "no point",
            set("/order/signature", json!(format!("0x{}1b", "0".repeat(128)))),
            &["S03 Refused NoPoint"],
            invalid,
        ),
        row(
            "another maker",
            signed(vec![("/order/maker", text(address_of(2)))]),
            &["S04 Refused MakerIsNotSigner"],
            invalid,
        ),
        row(
            "a proxy",
            signed(vec![("/order/signatureType", json!(1)), ("/order/maker", text(wallets::proxy(&address_of(1))))]),
            &[],
            ("", ""),
        ),
        row(
            "a Safe",
            signed(vec![("/order/signatureType", json!(2)), ("/order/maker", text(wallets::safe(&address_of(1))))]),
            &[],
            ("", ""),
        ),
        row(
            "an unknown Safe",
            signed(vec![("/order/signatureType", json!(2)), ("/order/maker", text(address_of(9)))]),
            &["S04 Unverifiable NoOwner"],
            ("", ""),
        ),
        row(
            "a declared proxy",
            signed(vec![("/order/signatureType", json!(1)), ("/order/maker", text(Address([0xaa; 20])))]),
            &[],
            ("", ""),
        ),
        row(
            "a proxy of another owner",
            signed(vec![("/order/signatureType", json!(1)), ("/order/maker", text(Address([0xbb; 20])))]),
            &["S04 Refused OtherOwner"],
            invalid,
        ),
        row(
            "another account",
            Box::new(|body| {
                let other = json!(address_of(2).to_string());
                body["order"]["maker"] = other.clone();
                body["order"]["signer"] = other;
                sign(&mut body["order"], 2, b"2", POLYGON, SECOND_EXCHANGES[0]);
            }),
            &["S06 Refused Plain"],
            ("SIGNER_NOT_KEY", "the order signer address has to be the address of the API KEY"),
        ),
        row(
            "decimals of a BUY",
            signed(vec![("/order/makerAmount", json!("4100410")), ("/order/takerAmount", json!("10001000"))]),
            &["S09 Refused Plain"],
            (
                "INVALID_AMOUNTS",
                "invalid amounts, the buy orders maker amount supports a max accuracy of 4 decimals, taker amount a max of \
                 2 decimals",
            ),
        ),
        row(
            "decimals of a market BUY",
            signed(vec![
                ("/orderType", json!("FOK")),
                ("/order/makerAmount", json!("4105000")),
                ("/order/takerAmount", json!("10012100")),
            ]),
            &["S09 Refused Plain"],
            (
                "INVALID_AMOUNTS",
                "invalid amounts, the market buy orders maker amount supports a max accuracy of 2 decimals, taker amount a \
                 max of 4 decimals",
            ),
        ),
        row(
            "decimals of a SELL",
            signed(vec![
                ("/order/side", json!("SELL")),
                ("/order/makerAmount", json!("10001000")),
                ("/order/takerAmount", json!("4100410")),
            ]),
            &["S09 Refused Plain"],
            (
                "INVALID_AMOUNTS",
                "invalid amounts, the sell orders maker amount supports a max accuracy of 2 decimals, taker amount a max of \
                 4 decimals",
            ),
        ),
        row(
            "between two ticks",
            signed(vec![("/order/makerAmount", json!("4150000"))]),
            &["S10 Refused Plain"],
            ("INVALID_ORDER_MIN_TICK_SIZE", "Price (0.415) breaks minimum tick size rule: 0.01"),
        ),
        row(
            "what clients make of a budget",
            signed(vec![
                ("/orderType", json!("FAK")),
                ("/order/makerAmount", json!("5000000")),
                ("/order/takerAmount", json!("12195100")),
            ]),
            &[],
            ("", ""),
        ),
        row(
            "a market order off the grid",
            signed(vec![
                ("/orderType", json!("FAK")),
                ("/order/makerAmount", json!("5000000")),
                ("/order/takerAmount", json!("12100000")),
            ]),
            &["S10 Refused Plain"],
            ("INVALID_ORDER_MIN_TICK_SIZE", "breaks minimum tick size rule: 0.01"),
        ),
        row(
            "too few shares",
            signed(vec![("/order/makerAmount", json!("410000")), ("/order/takerAmount", json!("1000000"))]),
            &["S10 Refused Plain"],
            ("INVALID_ORDER_MIN_SIZE", "Size (1) lower than the minimum: 5"),
        ),
        row(
            "half a dollar",
            signed(vec![
                ("/orderType", json!("FOK")),
                ("/order/makerAmount", json!("500000")),
                ("/order/takerAmount", json!("1219500")),
            ]),
            &["S11 Refused Plain"],
            ("MARKETABLE_MIN", "invalid amount for a marketable BUY order ($0.5), min size: $1"),
        ),
        row(
            "a small order that crosses",
            signed(vec![("/order/makerAmount", json!("840000")), ("/order/takerAmount", json!("2000000"))]),
            &["S10 Refused Plain", "S11 Refused Plain"],
            ("INVALID_ORDER_MIN_SIZE", "Size (2) lower than the minimum: 5"),
        ),
        row("GTC with an end", set("/order/expiration", in_secs(600)), &["S12 Refused Plain"], expiration),
        row("GTC with a wrong end", set("/order/expiration", json!([])), &["S12 Refused Plain"], expiration),
        row("GTC without an end", set("/order/expiration", Json::Null), &[], ("", "")),
        row(
            "GTD in a minute",
            signed(vec![("/orderType", json!("GTD")), ("/order/expiration", in_secs(60))]),
            &["S12 Refused Plain"],
            expiration,
        ),
        row(
            "GTD in three minutes",
            signed(vec![("/orderType", json!("GTD")), ("/order/expiration", in_secs(61))]),
            &["S16 Depends Plain"],
            ("", ""),
        ),
        row(
            "GTD in time",
            signed(vec![("/orderType", json!("GTD")), ("/order/expiration", in_secs(181))]),
            &[],
            ("", ""),
        ),
        row("no metadata", set("/order/metadata", Json::Null), &["S13 Refused Fields"], payload),
        row("a short builder", set("/order/builder", json!("0x00")), &["S13 Refused Fields"], payload),
        row("a salt with a point", set("/order/salt", json!("1.5")), &["S13 Refused Fields"], payload),
        row(
            "an unknown type",
            set("/order/signatureType", json!(4)),
            &["S03 Refused OtherSigner", "S13 Refused Fields"],
            invalid,
        ),
        row("a malformed maker", set("/order/maker", json!("0x1")), &["S03 Refused Fields"], invalid),
        row(
            "an old order",
            signed(vec![("/order/timestamp", json!("1790932144999"))]),
            &["S13 Depends Time"],
            ("", ""),
        ),
        row("a recent order", signed(vec![("/order/timestamp", json!("1790932145000"))]), &[], ("", "")),
    ];
    let maker = ("MAKER_NOT_ALLOWED", "maker address not allowed, please use the deposit wallet flow");
    rows.push(("a new account", "accounts = \"new\"\n", nothing(), &["S07 Refused Plain"], maker.0, maker.1));
    let balance = ("INSUFFICIENT_BALANCE", "not enough balance / allowance");
    rows.push(("no allowance", "allowances = \"declared\"\n", nothing(), &["S14 Refused Plain"], balance.0, balance.1));
    rows.push((
        "an allowance",
        "allowances = \"declared\"\n",
        signed(vec![("/order/signatureType", json!(1)), ("/order/maker", text(Address([0xaa; 20])))]),
        &[],
        "",
        "",
    ));
    rows.push((
        "an allowance of the other exchange",
        "allowances = \"declared\"\n",
        signed(vec![("/order/signatureType", json!(1)), ("/order/maker", text(Address([0xcc; 20])))]),
        &["S14 Refused Plain"],
        balance.0,
        balance.1,
    ));
    // The only finding of an order of the second generation, with any signature.
    rows.push((
        "the first profile",
        "profile = \"2026-03-30\"\n",
        set("/order/signature", json!("0x5f")),
        &["S01 Refused SecondGeneration"],
        version.0,
        version.1,
    ));
    rows.push(("first generation in its time", "profile = \"2026-03-30\"\n", first("1000"), &[], "", ""));
    rows
}

/// Owners of wallets: aa and cc are of account 1, bb of account 2.
fn declare(town: &Town) {
    for (byte, number, exchange) in [(0xaa, 1, true), (0xbb, 2, true), (0xcc, 1, false)] {
        let owner = Some(address_of(number).0);
        let declared = DeclaredAddress { kind: AddressKind::Proxy, owner, exchange, neg_risk: !exchange };
        town.edge.app.rehearsal.addresses.set([byte; 20], declared);
    }
}

/// `warn` reports the findings of each order, and changes neither its body nor what goes to the shard. `enforce` refuses
/// the first one that the venue would refuse, by its code and sentence.
#[test]
fn every_rule_finds_its_order_and_no_other() {
    let mut cases = 0;
    let town = Town::new();
    let top = town.books.effective_top(town.market.instrument(Outcome::First)).expect("a book");
    assert_eq!(top.ask, Some(Price(4_200)), "the rows are about this book");
    for (name, settings, change, expected, code, sentence) in rows() {
        let of = |mode: &str| {
            let stage = Stage::new(&format!("rehearse = \"{mode}\"\n{settings}"));
            declare(&stage.town);
            let mut body = body(&stage.key);
            change(&mut body);
            let answer = stage.send("/v1/order", &body);
            (stage, answer)
        };
        let (off, plain) = of("off");
        assert_eq!((plain.header("x-svc-strict"), off.noted.borrow().len()), (None, 0), "{name}");
        let (warn, answer) = of("warn");
        assert_eq!(warn.found(), expected, "{name}");
        assert_eq!((answer.status, &answer.body), (plain.status, &plain.body), "{name}");
        let (sent, usual) = (warn.placed.borrow(), off.placed.borrow());
        assert_eq!(format!("{sent:?}"), format!("{usual:?}"), "{name}: warn changes nothing");
        // S07 depends in all of them but those of the first generation.
        let is_of_all = |rule: &&str| !rule.starts_with("S07");
        let header = answer.header("x-svc-strict").unwrap_or_default();
        let rules: Vec<&str> = header.split(',').filter(|rule| !rule.is_empty()).filter(is_of_all).collect();
        let mut named: Vec<&str> = expected.iter().map(|found| &found[..3]).filter(is_of_all).collect();
        named.dedup();
        assert_eq!(rules, named, "{name}");

        let (enforce, answer) = of("enforce");
        assert_eq!(enforce.found(), expected, "{name}");
        let is_refused = expected.iter().any(|found| found.contains("Refused"));
        let placed = enforce.placed.borrow();
        assert_eq!((placed.len(), placed[0].terms.is_err()), (1, is_refused), "{name}");
        assert!(placed[0].request.is_none(), "{name}: a repeat is not answered again");
        if is_refused {
            let body = answer.json();
            assert_eq!((answer.status, body["error"].as_str()), (400, Some(code)), "{name}: {body}");
            let message = body["message"].as_str().expect("a text");
            assert!(
                message == sentence || (code.contains("_MIN_") && message.ends_with(sentence)),
                "{name}: {message}"
            );
            assert_eq!(
                body["rule"].as_str(),
                expected.iter().find(|f| f.contains("Refused")).map(|f| &f[..3]),
                "{name}"
            );
            assert_eq!(body["diagnosis"].is_null(), expected[0].ends_with("Plain"), "{name}: {body}");
        } else {
            assert_eq!(answer.status, 200, "{name}");
            assert!(placed[0].refuses_known_hash, "{name}");
        }
        cases += 3;
    }
    println!("broken orders: {cases} cases");
}

/// An order of a deposit wallet, whose owner signed inside: of either kind of wallet, of a declared one, and of an unknown
/// one; then every way to break it.
#[test]
fn a_deposit_wallet_is_that_of_who_signed_inside() {
    let owner = address_of(1);
    let [by_beacon, upgradable] = wallets::deposits(&owner);
    let declared = Address([0xdd; 20]);
    let exchange = SECOND_EXCHANGES[0];
    let cut = |end: usize| -> Change {
        Box::new(move |order| {
            let text = order["signature"].as_str().expect("a text")[..end].to_owned();
            order["signature"] = json!(text);
        })
    };
    let nothing = || -> Change { Box::new(|_| {}) };
    let s06 = "S06 Refused Plain";
    let rows: Vec<(&str, Address, Change, Vec<&str>)> = vec![
        ("by a beacon", by_beacon, nothing(), vec![s06]),
        ("upgradable", upgradable, nothing(), vec![s06]),
        ("declared", declared, nothing(), vec![s06]),
        ("unknown", Address([0xde; 20]), nothing(), vec!["S05 Unverifiable NoOwner", s06]),
        ("of another", Address([0xdf; 20]), nothing(), vec!["S05 Refused OtherOwner", s06]),
        (
            "other exchange",
            by_beacon,
            Box::new(|order| wrap(order, 1, POLYGON, SECOND_EXCHANGES[1])),
            vec!["S05 Refused OtherExchange", s06],
        ),
        (
            "other chain",
            by_beacon,
            Box::new(|order| wrap(order, 1, AMOY, SECOND_EXCHANGES[0])),
            vec!["S05 Refused OtherChain", s06],
        ),
        (
            "another key",
            by_beacon,
            Box::new(|order| wrap(order, 2, POLYGON, SECOND_EXCHANGES[0])),
            vec!["S05 Unverifiable NoOwner", s06],
        ),
        (
            "another order",
            by_beacon,
            Box::new(|order| order["salt"] = json!(8)),
            vec!["S05 Refused OtherContents", s06],
        ),
        (
            "maker is not signer",
            by_beacon,
            Box::new(|order| order["maker"] = json!(address_of(1).to_string())),
            vec!["S05 Refused MakerIsNotSigner", s06],
        ),
        ("a signature of a key", by_beacon, cut(132), vec!["S05 Refused Length", s06]),
        ("cut", by_beacon, cut(632), vec!["S05 Refused Length", s06]),
        ("odd", by_beacon, cut(635), vec!["S05 Refused Length", s06]),
        (
            "of a session key",
            by_beacon,
            Box::new(|order| {
                let text = order["signature"].as_str().expect("a text").to_owned();
                order["signature"] = json!(format!("{text}{}", "6492".repeat(16)));
            }),
            vec!["S05 Unverifiable SessionKey", s06],
        ),
    ];
    for (name, wallet, change, expected) in &rows {
        let stage = Stage::new("rehearse = \"warn\"\naccounts = \"new\"\n");
        for (byte, number) in [(0xdd, 1), (0xdf, 2)] {
            let owner = Some(address_of(number).0);
            let known = DeclaredAddress { kind: AddressKind::Deposit, owner, exchange: true, neg_risk: true };
            stage.town.edge.app.rehearsal.addresses.set([byte; 20], known);
        }
        let mut body = body(&stage.key);
        let order = &mut body["order"];
        ["maker", "signer"].iter().for_each(|name| order[*name] = json!(wallet.to_string()));
        order["signatureType"] = json!(3);
        wrap(order, 1, POLYGON, exchange);
        change(order);
        stage.send("/v1/order", &body);
        assert_eq!(stage.found(), *expected, "{name}");
    }
    println!("deposit wallets: {} cases", rows.len());
}

/// No changed byte, and no other length, is a signature; no field panics.
#[test]
fn hostile_signatures_and_numbers_are_refused() {
    let mut order = body("x")["order"].clone();
    let contents = contents_of(&order).expect("it is sound");
    let signer = address_of(1);
    let text = order["signature"].as_str().expect("a text").to_owned();
    assert_eq!(signatures::check(&text, &contents, &signer, false), Ok(()));
    let mut cases = 0;
    let bytes: [u8; 65] = hexadecimal(text.as_bytes()).expect("a signature");
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut broken = bytes;
            broken[at] ^= 1 << bit;
            let checked = signatures::check(&format!("0x{}", hex(&broken)), &contents, &signer, false);
            assert!(checked.is_err(), "byte {at}, bit {bit}");
            cases += 1;
        }
    }
    for end in 0..text.len() {
        assert_eq!(signatures::check(&text[..end], &contents, &signer, false), Err(Diagnosis::Length), "{end}");
        cases += 1;
    }
    for more in ["0", "00", " ", "é"] {
        assert_eq!(signatures::check(&format!("{text}{more}"), &contents, &signer, false), Err(Diagnosis::Length));
        cases += 1;
    }
    for byte in 0..contents.len() {
        let mut other = contents;
        other[byte] ^= 1;
        assert_eq!(signatures::check(&text, &other, &signer, false), Err(Diagnosis::OtherSigner), "{byte}");
        cases += 1;
    }
    // The same inside the signature of a deposit wallet: another order, or another owner.
    let [wallet, _] = wallets::deposits(&signer);
    ["maker", "signer"].iter().for_each(|name| order[*name] = json!(wallet.to_string()));
    order["signatureType"] = json!(3);
    wrap(&mut order, 1, POLYGON, SECOND_EXCHANGES[0]);
    let contents = contents_of(&order).expect("it is sound");
    let text = order["signature"].as_str().expect("a text").to_owned();
    let owner = |text: &str| signatures::unwrap(text, &contents, &wallet, false).map(|found| found.owner);
    assert_eq!(owner(&text), Ok(signer));
    let count = (text.len() - 2) / 2;
    for at in 0..count {
        let mut digits = text.clone().into_bytes();
        digits[2 + 2 * at] = if digits[2 + 2 * at] == b'0' { b'1' } else { b'0' };
        let broken = String::from_utf8(digits).expect("ASCII");
        assert_ne!(owner(&broken), Ok(signer), "byte {at}");
        assert!(owner(&text[..2 + 2 * at]).is_err(), "cut at byte {at}");
        cases += 2;
    }
    for long in ["0x".to_owned() + &"0".repeat(1 << 20), "é".repeat(300), "0x".to_owned() + &"é".repeat(317)] {
        assert_eq!(owner(&long), Err(Diagnosis::Length));
        cases += 1;
    }
    let hostile = [
        json!("115792089237316195423570985008687907853269984665640564039457584007913129639936"),
        json!("9".repeat(1_000)),
        json!("-1"),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("0x"),
        json!(format!("0x{}", "f".repeat(64))),
        json!(null),
        json!([]),
        json!({"a": 1}),
        json!(true),
    ];
    let fields =
        ["salt", "maker", "signer", "signatureType", "timestamp", "metadata", "builder", "expiration", "signature"];
    let stage = Stage::new("rehearse = \"enforce\"\n");
    for field in fields {
        for value in &hostile {
            let mut body = body(&stage.key);
            body["order"][field] = value.clone();
            let answer = stage.send("/v1/order", &body);
            // An order without an end may say so by leaving it out, and a large number is an integer.
            let is_sound = (field == "expiration" && value.is_null()) || answer.status == 400;
            assert!(is_sound, "{field}: {value}: {} {:?}", answer.status, answer.json());
            cases += 1;
        }
    }
    println!("hostile signatures and numbers: {cases} cases");
}

/// The shard finds a repeat; the entries of a batch have the form of the venue.
#[test]
fn repeats_and_batches_are_answered_as_at_the_venue() {
    let stage = Stage::new("rehearse = \"enforce\"\n");
    let sound = body(&stage.key);
    let text = sound["order"].to_string();
    let hash = order_hash(&read::json(text.as_bytes()).expect("JSON"), false).expect("it is sound");
    stage.answer(|_| Some(Reject::OrderHashKnown));
    let answer = stage.send("/v1/order", &sound).json();
    assert_eq!((answer["error"].as_str(), answer["rule"].as_str()), (Some("ORDER_DUPLICATED"), Some("S08")));
    let sentence = format!("order 0x{} is invalid. Duplicated.", hex(&hash));
    assert_eq!(answer["message"].as_str(), Some(&*sentence));
    let placed = stage.placed.borrow_mut().pop().expect("it was sent");
    assert_eq!((placed.order_hash, placed.refuses_known_hash), (Some(hash), true));
    assert_eq!(stage.found(), ["S08 Refused Plain"]);

    let stage = Stage::new("rehearse = \"enforce\"\n");
    let mut broken = sound.clone();
    broken["owner"] = json!("x");
    let mut unknown = sound.clone();
    unknown["order"]["tokenId"] = json!("404");
    stage.answer(|placement| match (&placement.terms, placement.refuses_known_hash) {
        (Err(InvalidTerms), _) => Some(Reject::InvalidTerms),
        (_, true) => Some(Reject::OrderHashKnown),
        _ => Some(Reject::MarketNotFound),
    });
    let mut own = sound.clone();
    own["owner"] = json!(stage.key);
    for dialect in ["plain", "strict"] {
        let target = format!("/v1/orders?dialect={dialect}");
        let answer = stage.send(&target, &json!([own, broken, unknown]));
        let entries = answer.json();
        let rows = [
            (&*sentence, "ORDER_DUPLICATED", Some("S08")),
            ("the order owner has to be the owner of the API KEY", "OWNER_NOT_KEY", Some("S02")),
            ("market not found", "MARKET_NOT_FOUND", None),
        ];
        for (entry, (sentence, code, rule)) in entries.as_array().expect("a list").iter().zip(rows) {
            assert_eq!((&entry["success"], entry["status"].as_str()), (&json!(true), Some("")), "{entry}");
            assert_eq!((entry["errorMsg"].as_str(), entry["rule"].as_str()), (Some(sentence), rule), "{entry}");
            let field = if dialect == "strict" { "code" } else { "error" };
            assert_eq!(entry[field].as_str(), Some(code), "{entry}");
        }
        assert_eq!(answer.header("x-svc-strict"), Some("S02,S07,S08"), "{dialect}");
    }
    // A batch beyond that of the venue is refused as a whole; `warn` lets it pass.
    let sixteen: Json = (0..16).map(|_| own.clone()).collect::<Vec<_>>().into();
    let answer = stage.send("/v1/orders", &sixteen);
    assert_eq!(answer.code(), (400, "BATCH_LIMIT_EXCEEDED"));
    assert_eq!(answer.json()["message"], "Too many orders in payload: 16, max allowed: 15");
    let stage = Stage::new("rehearse = \"warn\"\n");
    stage.answer(|_| None);
    let answer = stage.send("/v1/orders", &sixteen);
    assert_eq!((answer.status, answer.json().as_array().map(Vec::len)), (200, Some(16)));
    assert!(answer.header("x-svc-strict").is_some_and(|rules| rules.contains("S15")), "{:?}", answer.headers);
    println!("repeats and batches: {} cases", 1 + 6 + 2);
}

/// Orders that the venue's clients signed, and wallets that its library derives (tests/clients/signed_orders.py).
#[test]
fn orders_of_the_venues_clients_are_sound() {
    let golden: Json = serde_json::from_str(include_str!("golden.json")).expect("JSON");
    let bytes = |text: &Json| -> Address {
        Address(hexadecimal(text.as_str().expect("a text").to_lowercase().as_bytes()).expect("an address"))
    };
    let mut cases = 0;
    for wallet in golden["wallets"].as_array().expect("a list") {
        let owner = bytes(&wallet["owner"]);
        assert_eq!(wallets::proxy(&owner), bytes(&wallet["proxy"]));
        assert_eq!(wallets::safe(&owner), bytes(&wallet["safe"]));
        assert_eq!(wallets::deposits(&owner), [bytes(&wallet["deposit_by_beacon"]), bytes(&wallet["deposit"])]);
        cases += 1;
    }
    for golden in golden["orders"].as_array().expect("a list") {
        let (order, name) = (&golden["order"], &golden["name"]);
        let (signer, is_neg_risk) = (bytes(&order["signer"]), golden["neg_risk"].as_bool().expect("a flag"));
        let contents = contents_of(order).expect("every field is sound");
        let text = order["signature"].as_str().expect("a text");
        let version = golden["version"].as_u64().expect("a number");
        let of_version = if version == 3 { Err(Diagnosis::ThirdVersion) } else { Ok(()) };
        if order["signatureType"] == json!(3) {
            let found = signatures::unwrap(text, &contents, &signer, is_neg_risk).expect("it is sound");
            assert_eq!(found.other, of_version.err(), "{name}");
            assert!(wallets::deposits(&found.owner).contains(&signer), "{name}");
            let other = signatures::unwrap(text, &contents, &signer, !is_neg_risk).expect("it is sound").other;
            assert_eq!(other, Some(of_version.err().unwrap_or(Diagnosis::OtherExchange)), "{name}");
        } else {
            assert_eq!(signatures::check(text, &contents, &signer, is_neg_risk), of_version, "{name}");
            let other = of_version.err().unwrap_or(Diagnosis::OtherExchange);
            assert_eq!(signatures::check(text, &contents, &signer, !is_neg_risk), Err(other), "{name}");
        }
        // Amounts and fields are those that the rules ask for.
        let settings = "rehearse = \"warn\"\n";
        let stage = Stage::new(settings);
        let order_type = golden["order_type"].as_str().expect("a text");
        let body = json!({"order": order, "owner": stage.key, "orderType": order_type});
        stage.send("/v1/order", &body);
        let found = stage.found();
        let is_about_amounts =
            |found: &&String| ["S09", "S10", "S11", "S12"].iter().any(|rule| found.starts_with(rule));
        let expected = golden["amounts"].as_str().expect("a text");
        let amounts: Vec<&String> = found.iter().filter(is_about_amounts).collect();
        assert_eq!(amounts.first().map_or("", |found| &found[..3]), expected, "{name}: {found:?}");
        cases += 1;
    }
    println!("orders of clients, and wallets: {cases} cases");
}
