use super::*;
use crate::api::testing::{Text as _, Town, shows};
use crate::http::jwt;
use crate::http::testing::{Answered, NOW, SECRET};
use engine::fact;
use engine::id::UserId;
use engine::mutation::Mutation;
use engine::reject::Reject;
use engine::time::{DAY, Timestamp};
use engine::user::{Permissions, Tier};
use engine::view::KeyView;

const FREE: &str = "[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n";

fn view(id: u64) -> KeyView {
    KeyView {
        id: KeyId(id),
        prefix: "svc_live_4f0c9d2".into(),
        name: Some("grid bot".into()),
        tier: Tier::Free,
        permissions: Permissions::ReadTrade,
        created_at: NOW,
        expires_at: None,
        beta_until: None,
        last_used_at: None,
        realism: None,
    }
}

/// A shard that issues what it is asked for.
fn issuing(town: &Town) {
    town.shard(|user, command| match command {
        Command::CreateUser(_) => Ok(Answer::Created(user)),
        Command::IssueKey(request) => Ok(Answer::Key(Box::new(KeyView {
            prefix: request.secret.prefix.as_str().into(),
            name: request.name.map(Box::from),
            tier: request.tier.unwrap_or(Tier::Free),
            permissions: request.permissions.unwrap_or(Permissions::ReadTrade),
            ..view(318)
        }))),
        other => panic!("{other:?}"),
    });
}

fn as_user(town: &Town, method: &str, target: &str, body: &str, sub: &str) -> Answered {
    let secret = host::secret::Secret::new(SECRET.to_owned());
    let token = jwt::sign(&secret, sub, Some("t@example.net"), NOW, 3_600);
    let world: &crate::http::testing::World = town;
    world.send(method, target, &[("authorization", &format!("Bearer {token}"))], body)
}

#[test]
fn a_new_key_is_shown_once_and_never_stored_by_anybody() {
    let town = Town::new();
    issuing(&town);
    let answer = town.send("POST", "/v1/keys", r#"{"name":"grid bot"}"#);
    assert_eq!((answer.status, answer.header("cache-control")), (201, Some("no-store")));
    let json = answer.json();
    let (raw, alias) = (json["raw_key"].as_str().expect("a key"), json["venue_api_key"].as_str().expect("an alias"));
    assert_eq!((raw.len(), alias.len(), json["key_prefix"].as_str()), (73, 36, Some(&raw[..16])));
    let expected = concat!(
        r#"{"id":318,"name":"grid bot","rate_limit_tier":"free","permissions":["read","trade"],"#,
        r#""created_at":"2026-10-02T09:14:05Z"}"#
    );
    shows(answer.text().as_bytes(), expected);
    // A body is optional, and what it has beside the three fields is ignored.
    for body in ["", "{}", r#"{"expires_at":"never","permissions":["read"]}"#] {
        assert_eq!(town.send("POST", "/v1/keys", body).status, 201, "{body}");
    }
    assert_eq!(town.send("POST", "/v1/keys", "[]").code(), (400, "INVALID_BODY"));
}

#[test]
fn a_key_that_exists_is_told_however_late() {
    let town = Town::new();
    town.shard(|_, _| Err(AskError::Overshot(Box::new(Answer::Key(Box::new(view(318)))))));
    assert_eq!(town.send("POST", "/v1/keys", "").status, 201);
    town.shard(|_, _| Err(AskError::Unknown));
    assert_eq!(town.send("POST", "/v1/keys", "").code(), (503, "PERSISTENCE_UNKNOWN"));
}

#[test]
fn gates_are_passed_in_their_order() {
    let closed = format!("{FREE}[flags]\nclosed_beta_mode = true\npaid_keys_enabled = false\n");
    let listed = format!("{closed}[access]\nallowlist = [\"1\"]\n");
    let unpaid = format!("{FREE}[flags]\npaid_keys_enabled = false\n");
    for (toml, body, expected) in [
        (FREE, r#"{"tier":7}"#, (422, "VALIDATION_FAILED")),
        (FREE, r#"{"tier":"gold"}"#, (400, "VALIDATION_FAILED")),
        (FREE, &format!(r#"{{"tier":"{}"}}"#, "x".repeat(500)), (400, "VALIDATION_FAILED")),
        (&closed, r#"{"tier":"gold"}"#, (400, "VALIDATION_FAILED")),
        (&closed, r#"{"tier":"pro"}"#, (403, "CLOSED_BETA")),
        (&listed, r#"{"tier":"pro"}"#, (403, "API_PRO_COMING_SOON")),
        (&listed, "{}", (201, "")),
        (&unpaid, r#"{"tier":"enterprise","permissions":["admin"]}"#, (403, "API_PRO_COMING_SOON")),
        (&unpaid, r#"{"tier":"free"}"#, (201, "")),
        (FREE, r#"{"tier":"pro"}"#, (403, "TIER_REQUIRES_UPGRADE")),
        (FREE, r#"{"permissions":["admin"]}"#, (403, "TIER_REQUIRES_UPGRADE")),
        (FREE, r#"{"permissions":["read"]}"#, (201, "")),
    ] {
        let town = Town::with(toml);
        issuing(&town);
        assert_eq!(town.send("POST", "/v1/keys", body).code(), expected, "{body} {toml}");
    }
    let town = Town::new();
    for (reject, expected) in [
        (Reject::KeyLimit, (400, "TIER_KEY_LIMIT_EXCEEDED")),
        (Reject::TierRequiresUpgrade, (403, "TIER_REQUIRES_UPGRADE")),
    ] {
        town.shard(move |_, _| Ok(Answer::Refused(reject)));
        assert_eq!(town.send("POST", "/v1/keys", "").code(), expected);
    }
}

#[test]
fn a_paid_plan_that_has_ended_gives_keys_that_read() {
    let town = Town::new();
    issuing(&town);
    let ended = Mutation::GrantSet(fact::GrantSet { tier: Tier::Pro, expires_at: Some(Timestamp(NOW.0 - 1)), at: NOW });
    town.note(UserId(1), ended);
    assert_eq!(town.send("POST", "/v1/keys", r#"{"permissions":["trade"]}"#).code(), (403, "TIER_REQUIRES_UPGRADE"));
    assert_eq!(town.send("POST", "/v1/keys", r#"{"tier":"pro"}"#).code(), (403, "TIER_REQUIRES_UPGRADE"));
    // The new key only reads, although the shard's answer says more.
    let answer = town.send("POST", "/v1/keys", "");
    shows(answer.text().as_bytes(), r#"{"permissions":["read"]}"#);
}

#[test]
fn a_full_cohort_lets_nobody_new_in() {
    let toml = format!("{FREE}[flags]\ncohort_cap = 1\n");
    let town = Town::with(&toml);
    issuing(&town);
    // A key may create another one.
    assert_eq!(town.send("POST", "/v1/keys", "").status, 201);
    let refused = as_user(&town, "POST", "/v1/keys", "", "newcomer");
    assert_eq!(refused.code(), (409, "COHORT_FULL"));
    let roomy = Town::with(&toml.replace("cohort_cap = 1", "cohort_cap = 2"));
    issuing(&roomy);
    assert_eq!(as_user(&roomy, "POST", "/v1/keys", "", "newcomer").status, 201);
}

#[test]
fn bootstrap_is_for_session_tokens_and_first_keys() {
    let town = Town::new();
    issuing(&town);
    assert_eq!(as_user(&town, "POST", "/v1/keys/bootstrap", "", "u-1").status, 201);
    assert_eq!(town.send("POST", "/v1/keys/bootstrap", "").code(), (401, "MISSING_AUTH"));
    let town = Town::new();
    town.shard(|user, command| match command {
        Command::CreateUser(_) => Ok(Answer::Created(user)),
        Command::IssueKey(IssueKey { bootstrap: true, .. }) => Ok(Answer::Refused(Reject::BootstrapNotAllowed)),
        other => panic!("{other:?}"),
    });
    assert_eq!(as_user(&town, "POST", "/v1/keys/bootstrap", "", "u-1").code(), (400, "BOOTSTRAP_NOT_ALLOWED"));
}

#[test]
fn keys_are_listed_with_what_they_may_do_now() {
    let toml = format!("{FREE}[access]\ndisabled_keys = [320]\n");
    let town = Town::with(&toml);
    town.shard(|_, _| {
        let old = KeyView { expires_at: Some(Timestamp(NOW.0 + DAY)), last_used_at: Some(NOW), ..view(319) };
        let ended = KeyView { expires_at: Some(NOW), ..view(317) };
        let legacy = KeyView { created_at: Timestamp(1_788_566_399_000_000), name: None, ..view(316) };
        let beta = KeyView { beta_until: Some(Timestamp(NOW.0 + DAY)), ..view(315) };
        Ok(Answer::Keys(vec![view(320), old, view(318), ended, legacy, beta]))
    });
    let answer = town.send("GET", "/v1/keys", "");
    let expected = concat!(
        r#"[{"id":320,"is_active":false},"#,
        r#"{"id":319,"key_prefix":"svc_live_4f0c9d2","name":"grid bot","rate_limit_tier":"free","#,
        r#""permissions":["read","trade"],"is_active":true,"created_at":"2026-10-02T09:14:05Z","#,
        r#""expires_at":"2026-10-03T09:14:05Z","last_used_at":"2026-10-02T09:14:05Z"},"#,
        r#"{"id":318,"is_active":true,"expires_at":null,"last_used_at":null},"#,
        r#"{"id":317,"is_active":false},{"id":316,"permissions":["read"],"name":null},"#,
        r#"{"id":315,"expires_at":"2026-10-03T09:14:05Z","permissions":["read","trade"]}]"#
    );
    shows(answer.text().as_bytes(), expected);
    assert!(!answer.text().contains("raw_key"));
    shows(town.send("GET", "/v1/keys?limit=1&offset=2", "").text().as_bytes(), r#"[{"id":318}]"#);
    assert_eq!(town.send("GET", "/v1/keys?offset=9223372036854775807", "").text(), "[]");
    for query in ["limit=0", "limit=201", "offset=-1", "offset=-0", "offset=9223372036854775808", "limit=x"] {
        assert_eq!(town.send("GET", &format!("/v1/keys?{query}"), "").code(), (422, "VALIDATION_FAILED"), "{query}");
    }
}

#[test]
fn keys_are_renamed_revoked_and_rotated() {
    let town = Town::new();
    town.shard(|_, command| match command {
        Command::RenameKey { key: KeyId(318), name } => {
            Ok(Answer::Key(Box::new(KeyView { name: name.map(Box::from), ..view(318) })))
        }
        Command::ChooseRealism { key: KeyId(318), set } => {
            Ok(Answer::Key(Box::new(KeyView { realism: set.map(Box::from), ..view(318) })))
        }
        Command::RevokeKey { key: KeyId(318) } => Ok(Answer::Done),
        Command::RotateKey { key: KeyId(318), replacement, .. } => Ok(Answer::Rotated {
            replacement: Box::new(KeyView { prefix: replacement.prefix.into(), ..view(321) }),
            old_expires_at: Timestamp(NOW.0 + DAY),
        }),
        Command::RotateKey { key: KeyId(319), .. } => Ok(Answer::Refused(Reject::KeyExpiring)),
        _ => Ok(Answer::Refused(Reject::KeyNotFound)),
    });
    let renamed = town.send("PATCH", "/v1/keys/318", r#"{"name":"new","tier":"pro"}"#);
    shows(renamed.text().as_bytes(), r#"{"id":318,"name":"new","is_active":true}"#);
    shows(town.send("PATCH", "/v1/keys/318", r#"{"name":null}"#).text().as_bytes(), r#"{"id":318,"name":null}"#);
    for (body, expected) in [
        (r#"{"realism":"venue"}"#, r#"{"id":318,"name":"grid bot","realism":"venue"}"#),
        (r#"{"realism":null}"#, r#"{"id":318,"realism":"kind"}"#),
        (r#"{"name":"new","realism":"brutal"}"#, r#"{"id":318,"realism":"brutal"}"#),
    ] {
        shows(town.send("PATCH", "/v1/keys/318", body).text().as_bytes(), expected);
    }
    let unknown = town.send("PATCH", "/v1/keys/318", r#"{"realism":"Venue"}"#);
    assert_eq!(unknown.code(), (422, "VALIDATION_FAILED"));
    assert!(unknown.text().contains("is not one of kind, venue, thin, brutal"), "{}", unknown.text());
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(101));
    for (body, code) in [
        (r#"{"realism":5}"#, (422, "VALIDATION_FAILED")),
        (r#"{"realism":""}"#, (422, "VALIDATION_FAILED")),
        (r#"{"name":5,"realism":"venue"}"#, (422, "VALIDATION_FAILED")),
        ("{}", (422, "VALIDATION_FAILED")),
        (r#"{"name":5}"#, (422, "VALIDATION_FAILED")),
        (long.as_str(), (422, "VALIDATION_FAILED")),
        ("[]", (400, "INVALID_BODY")),
        ("", (400, "INVALID_BODY")),
    ] {
        assert_eq!(town.send("PATCH", "/v1/keys/318", body).code(), code, "{body}");
    }
    assert_eq!(town.send("DELETE", "/v1/keys/318", "").text(), r#"{"message":"Key 318 is revoked."}"#);
    let rotated = town.send("POST", "/v1/keys/318/rotate", "not even JSON");
    assert_eq!((rotated.status, rotated.header("cache-control")), (201, Some("no-store")));
    let expected = r#"{"id":321,"replaces_key_id":318,"old_key_expires_at":"2026-10-03T09:14:05Z"}"#;
    shows(rotated.text().as_bytes(), expected);
    assert_eq!(town.send("POST", "/v1/keys/319/rotate", "").code(), (400, "INVALID_REQUEST"));
    for (method, target) in [
        ("PATCH", "/v1/keys/7"),
        ("PATCH", "/v1/keys/x"),
        ("DELETE", "/v1/keys/7"),
        ("DELETE", "/v1/keys/-1"),
        ("POST", "/v1/keys/7/rotate"),
    ] {
        assert_eq!(town.send(method, target, r#"{"name":"a"}"#).code(), (404, "KEY_NOT_FOUND"), "{method} {target}");
    }
}

#[test]
fn tiers_show_the_limits_in_force() {
    let town = Town::with("[limits.tiers.pro]\nmax_batch_size = 7\n");
    let answer = town.send("GET", "/v1/keys/tiers", "");
    let free = concat!(
        r#"[{"tier":"free","requests_per_second":2,"requests_per_minute":120,"max_ws_connections":1,"#,
        r#""max_batch_size":1},"#
    );
    assert!(answer.text().starts_with(free), "{}", answer.text());
    let expected = r#"[{"tier":"free"},{"tier":"pro","max_batch_size":7},{"tier":"pro_plus"},{"tier":"enterprise"}]"#;
    shows(answer.text().as_bytes(), expected);
}

#[test]
fn socket_tokens_are_minted_for_keys_and_sessions() {
    let town = Town::new();
    town.shard(|user, command| match command {
        Command::CreateUser(_) => Ok(Answer::Created(user)),
        other => panic!("{other:?}"),
    });
    let tickets = &town.edge.app.front.tickets;
    for (answer, user, has_key) in [
        (town.send("POST", "/v1/keys/ws-token", ""), UserId(1), true),
        (town.send("POST", "/v1/keys/ws-token", "{}"), UserId(1), true),
        (as_user(&town, "POST", "/v1/keys/ws-token", r#"{"x":1}"#, "u-2"), UserId(2), false),
    ] {
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
        let json = answer.json();
        assert_eq!((json["expires_in"].as_u64(), json.as_object().map(|object| object.len())), (Some(60), Some(2)));
        let token = json["token"].as_str().expect("a token");
        let (ticket, ()) = tickets.redeem(token.as_bytes(), NOW, NOW, |_| Ok(())).expect("a fresh token");
        assert_eq!((ticket.user, ticket.key.is_some(), ticket.tier), (user, has_key, Tier::Free));
        assert_eq!(ticket.permissions, Permissions::ReadTrade);
        // It opens sockets and nothing else.
        let bearer = format!("Bearer {token}");
        let world: &crate::http::testing::World = &town;
        let refused = world.send("GET", "/v1/keys", &[("authorization", &bearer)], "");
        assert_eq!(refused.code(), (401, "INVALID_TOKEN"));
    }
    for (kind, body, code) in [
        ("application/json", "[]", (400, "INVALID_BODY")),
        ("application/json", "7", (400, "INVALID_BODY")),
        ("application/json", "{", (400, "INVALID_BODY")),
        ("text/plain", "{}", (415, "HTTP_415")),
    ] {
        let answer = town.send_with("POST", "/v1/keys/ws-token", &[("content-type", kind)], body);
        assert_eq!(answer.code(), code, "{kind}: {body}");
    }
    let reader = town.another_key(UserId(1), Tier::Free, Permissions::Read);
    let world: &crate::http::testing::World = &town;
    let answer = world.send("POST", "/v1/keys/ws-token", &[("x-api-key", &reader)], "");
    let token = answer.json()["token"].as_str().expect("a token").to_owned();
    let (ticket, ()) = tickets.redeem(token.as_bytes(), NOW, NOW, |_| Ok(())).expect("a fresh token");
    assert_eq!(ticket.permissions, Permissions::Read);
}

/// reliability 44: the key may end between the door and the shard, which then is asked in that key's name.
#[test]
fn a_key_that_ended_on_the_way_is_refused_as_at_the_door() {
    let town = Town::new();
    let order =
        r#"{"market_id":"0x1","outcome":"Yes","side":"BUY","order_type":"limit","price":"0.4","quantity":"10"}"#;
    let batch = format!("[{order}]");
    let mut cases = 0;
    for (reject, code) in [(Reject::KeyRevoked, "INVALID_KEY"), (Reject::KeyExpired, "KEY_EXPIRED")] {
        town.shard(move |_, command| match command {
            Command::NoteKeyUsed { .. } => Ok(Answer::Done),
            command => {
                assert!(command.authorising_key().is_some(), "{command:?}");
                Ok(Answer::Refused(reject))
            }
        });
        for (target, body) in [
            ("/v1/keys", r#"{"name":"another"}"#),
            ("/v1/keys/318/rotate", ""),
            ("/v1/orders", order),
            ("/v1/orders/batch", &batch),
        ] {
            assert_eq!(town.send("POST", target, body).code(), (401, code), "{target}");
            cases += 1;
        }
    }
    println!("keys that ended on the way: {cases} cases");
}
