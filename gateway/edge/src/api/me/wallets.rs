//! The caller's wallets (account.md §1): list, open, name, put away, reset.

use crate::api::refuse::{unexpected, wallet_refused};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Permission, Route};
use crate::http::schema::{
    BOOLEAN, INTEGER, MONEY, OFFSET, Param, Schema, Shape, TEXT_OR_NULL, TS, TS_OR_NULL, field, optional,
};
use engine::command::{Answer, Command, Query};
use engine::id::WalletId;
use engine::user::{Wallet, WalletKind};
use wire::fields::{Body, Params, Problems};
use wire::value::Value;
use wire::write::object;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
/// Characters of a wallet's label.
const LABEL_CHARS_MAX: usize = 64;
/// The one kind that users open themselves.
const SANDBOX: &str = "SANDBOX";
const ROW_BYTES: usize = 320;

/// What a write of a wallet can say besides its own refusals.
macro_rules! write_codes {
    ($($code:ident),*) => {
        &[$(Code::$code,)* Code::TradeInProgress, Code::ServerBusy, Code::PersistenceUnknown,
            Code::DeadlineOvershotButPersisted]
    };
}

pub const LIST: Route = Route::get("/v1/me/wallets", "list_wallets")
    .about("The caller's wallets: MAIN, API, SANDBOX, COMPETITION, each kind in the order of opening.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Read)
    .params(&[
        Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "Rows of a page; 50 where absent."),
        Param::query("offset", OFFSET, "Rows to pass over."),
        Param::query("include_archived", BOOLEAN, "Those that were put away too."),
    ])
    .gives_shape(200, &WALLETS, EXAMPLE_LIST)
    .fails(&[Code::ValidationFailed])
    .run(|call| Box::pin(list(call)));

pub const OPEN: Route = Route::post("/v1/me/wallets", "open_wallet")
    .about("Opens a SANDBOX wallet.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .takes_shape(&NEW_WALLET, r#"{"kind":"SANDBOX","label":"grid test"}"#)
    .gives_shape(201, &WALLET, EXAMPLE)
    .fails(write_codes![InvalidBody, ValidationFailed, InvalidRequest, UpgradeRequired])
    .run(|call| Box::pin(open(call)));

pub const GET: Route = Route::get("/v1/me/wallets/{id}", "get_wallet")
    .about("One wallet of the caller, archived or not.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Read)
    .gives_shape(200, &WALLET, EXAMPLE)
    .fails(&[Code::WalletNotFound])
    .run(|call| Box::pin(get(call)));

pub const RELABEL: Route = Route::patch("/v1/me/wallets/{id}", "relabel_wallet")
    .about("Gives a wallet another label, or none.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .takes_shape(&LABEL, r#"{"label":"grid test"}"#)
    .gives_shape(200, &WALLET, EXAMPLE)
    .fails(write_codes![WalletNotFound, InvalidBody, ValidationFailed])
    .run(|call| Box::pin(relabel(call)));

pub const ARCHIVE: Route = Route::delete("/v1/me/wallets/{id}", "archive_wallet")
    .about(
        "Puts a SANDBOX wallet away: its orders end, its positions close without cash. A second time changes nothing.",
    )
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .gives_shape(200, &WALLET, EXAMPLE_ARCHIVED)
    .fails(write_codes![WalletNotFound, InvalidRequest])
    .run(|call| Box::pin(archive(call)));

pub const RESET: Route = Route::post("/v1/me/wallets/{id}/reset", "reset_wallet")
    .about("MAIN begins anew with its baseline; a SANDBOX wallet is put away and followed by a new one.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .body(BodyKind::Ignored)
    .gives_shape(200, &WALLET, EXAMPLE)
    .fails(write_codes![WalletNotFound, InvalidRequest, UpgradeRequired])
    .run(|call| Box::pin(reset(call)));

const WALLET: Schema = Schema::Object(&Shape::new(
    "Wallet",
    "A wallet: cash and positions of their own.",
    &[
        field("id", INTEGER, ""),
        field("kind", Schema::Word(&["MAIN", "API", "SANDBOX", "COMPETITION"]), ""),
        field("label", TEXT_OR_NULL, "The caller's name for it."),
        field("balance", MONEY, "Available cash, after reservations."),
        field("baseline", MONEY, "Cash at its opening or last reset."),
        field("status", Schema::Word(&["ACTIVE", "ARCHIVED"]), ""),
        field("generation", INTEGER, "1, and one more with each reset."),
        field("parent_wallet_id", Schema::Nullable(&INTEGER), "The wallet it followed."),
        field("competition_id", Schema::Nullable(&INTEGER), ""),
        field("created_at", TS, ""),
        field("archived_at", TS_OR_NULL, ""),
        field("is_legacy", BOOLEAN, "Always false."),
        field("managed_by", Schema::Null, ""),
        field("b2b_account", Schema::Null, ""),
    ],
));

const WALLETS: Schema = Schema::Object(&Shape::new("WalletList", "", &[field("wallets", Schema::Array(&WALLET), "")]));

const LABEL_TEXT: Schema = Schema::Nullable(&Schema::Text(LABEL_CHARS_MAX as u32));

const NEW_WALLET: Schema = Schema::Object(&Shape::new(
    "NewWallet",
    "A wallet to be opened.",
    &[
        field("kind", Schema::Word(&[SANDBOX]), "Other kinds are not opened by their user."),
        optional("label", LABEL_TEXT, ""),
        optional("name", LABEL_TEXT, "Another word for label, where that is absent."),
    ],
));

const LABEL: Schema =
    Schema::Object(&Shape::new("WalletLabel", "", &[field("label", LABEL_TEXT, "null takes the old one away.")]));

/// The example of account.md §6.
const EXAMPLE: &str = r#"{"id":101,"kind":"SANDBOX","label":"grid test","balance":"9940.12","baseline":"10000.00","status":"ACTIVE","generation":2,"parent_wallet_id":97,"competition_id":null,"created_at":"2026-09-20T08:00:00Z","archived_at":null,"is_legacy":false,"managed_by":null,"b2b_account":null}"#;
const EXAMPLE_ARCHIVED: &str = r#"{"id":101,"kind":"SANDBOX","label":"grid test","balance":"9940.12","baseline":"10000.00","status":"ARCHIVED","generation":2,"parent_wallet_id":97,"competition_id":null,"created_at":"2026-09-20T08:00:00Z","archived_at":"2026-10-02T09:15:00Z","is_legacy":false,"managed_by":null,"b2b_account":null}"#;
const EXAMPLE_LIST: &str = r#"{"wallets":[{"id":101,"kind":"SANDBOX","label":"grid test","balance":"9940.12","baseline":"10000.00","status":"ACTIVE","generation":2,"parent_wallet_id":97,"competition_id":null,"created_at":"2026-09-20T08:00:00Z","archived_at":null,"is_legacy":false,"managed_by":null,"b2b_account":null}]}"#;

async fn list(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT) as usize;
    let offset = params.offset();
    let archived = params.boolean("include_archived").unwrap_or(false);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let mut wallets = wallets(&call).await?;
    wallets.retain(|wallet| archived || wallet.is_active());
    wallets.sort_by_key(|wallet| (wallet.kind, wallet.id));
    let page = wallets.iter().skip(offset).take(limit);
    let mut out = Vec::with_capacity(32 + ROW_BYTES * limit.min(wallets.len()));
    object(&mut out, |o| o.array("wallets", page, write));
    Ok(Reply::json(out))
}

async fn get(call: Call) -> Outcome {
    let id = id(&call)?;
    let wallets = wallets(&call).await?;
    let wallet = wallets.iter().find(|wallet| wallet.id == id).ok_or(Code::WalletNotFound)?;
    Ok(Reply::json(written(wallet)))
}

async fn open(call: Call) -> Outcome {
    let label = {
        let body = call.json_object()?;
        let mut body = Body::new(&body);
        let kind = body.text("kind", usize::MAX);
        if body.get("kind").is_none() {
            body.missing("kind");
        }
        let label = body.text("label", LABEL_CHARS_MAX);
        let name = body.text("name", LABEL_CHARS_MAX);
        if !body.problems.is_empty() {
            return Err(Refusal::validation(&body.problems));
        }
        if kind != Some(SANDBOX) {
            return Err(Refusal::saying(Code::InvalidRequest, "Only SANDBOX wallets are opened by their user."));
        }
        label.or(name).map(str::to_owned)
    };
    let by = call.caller().key;
    match call.ask(Command::OpenWallet { label, by }).await? {
        Answer::Wallet(wallet) => Ok(Reply::created(written(&wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

async fn relabel(call: Call) -> Outcome {
    let wallet = id(&call)?;
    let label = label(&call.json_object()?)?;
    match call.ask(Command::RelabelWallet { wallet, label }).await? {
        Answer::Wallet(wallet) => Ok(Reply::json(written(&wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

async fn archive(call: Call) -> Outcome {
    let wallet = id(&call)?;
    match call.ask(Command::ArchiveWallet { wallet }).await? {
        Answer::Emptied(emptied) => Ok(Reply::json(written(&emptied.wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

async fn reset(call: Call) -> Outcome {
    let (wallet, by) = (id(&call)?, call.caller().key);
    match call.ask(Command::ResetWallet { wallet, by }).await? {
        Answer::Emptied(emptied) => Ok(Reply::json(written(&emptied.wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

fn id(call: &Call) -> Result<WalletId, Refusal> {
    call.id().map(WalletId).ok_or_else(|| Code::WalletNotFound.into())
}

async fn wallets(call: &Call) -> Result<Vec<Wallet>, Refusal> {
    match call.ask(Command::Query(Query::User)).await? {
        Answer::User(user) => Ok(user.wallets),
        other => Err(unexpected(&other, call.now)),
    }
}

/// The label to give; null takes the old one away.
fn label(body: &Value<'_>) -> Result<Option<String>, Refusal> {
    if body.get("label").is_none() {
        let mut problems = Problems::default();
        problems.add("body", "label", "missing", "is required");
        return Err(Refusal::validation(&problems));
    }
    let mut body = Body::new(body);
    let label = body.text("label", LABEL_CHARS_MAX).map(str::to_owned);
    if body.problems.is_empty() { Ok(label) } else { Err(Refusal::validation(&body.problems)) }
}

fn written(wallet: &Wallet) -> Vec<u8> {
    let mut out = Vec::with_capacity(ROW_BYTES);
    write(&mut out, wallet);
    out
}

fn write(out: &mut Vec<u8>, wallet: &Wallet) {
    object(out, |o| {
        o.integer("id", wallet.id.0);
        o.word(
            "kind",
            match wallet.kind {
                WalletKind::Main => "MAIN",
                WalletKind::Api => "API",
                WalletKind::Sandbox => SANDBOX,
                WalletKind::Competition => "COMPETITION",
            },
        );
        o.text_or_null("label", wallet.label());
        o.money("balance", wallet.available());
        o.money("baseline", wallet.baseline);
        o.word("status", if wallet.is_active() { "ACTIVE" } else { "ARCHIVED" });
        o.integer("generation", wallet.generation.into());
        o.integer_or_null("parent_wallet_id", wallet.parent().map(|parent| parent.0));
        // No API makes competitions.
        o.null("competition_id");
        o.ts("created_at", wallet.created_at);
        o.ts_or_null("archived_at", wallet.archived_at());
        o.boolean("is_legacy", false);
        o.null("managed_by");
        o.null("b2b_account");
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::Cash;
    use engine::time::{SECOND, Timestamp};
    use engine::user::WalletRare;

    #[test]
    fn a_wallet_is_shown_as_in_the_contract() {
        let (baseline, opened_at) = (Cash::from_dollars(10_000), Timestamp(1_789_891_200 * SECOND));
        let mut wallet = Wallet::new(WalletId(101), WalletKind::Sandbox, baseline, 2, opened_at);
        (wallet.cash, wallet.reserved) = (Cash(9_960_120_000), Cash(20_000_000));
        let rare = WalletRare { label: Some("grid test".into()), parent: Some(WalletId(97)), archived_at: None };
        wallet.set_rare(rare.clone());
        assert_eq!(String::from_utf8(written(&wallet)).expect("UTF-8"), EXAMPLE);
        wallet.set_rare(WalletRare { archived_at: Some(Timestamp(1_790_932_500 * SECOND)), ..rare });
        assert_eq!(String::from_utf8(written(&wallet)).expect("UTF-8"), EXAMPLE_ARCHIVED);
    }
}
