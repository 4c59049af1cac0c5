//! The caller's wallets (gateway/docs/accounts.md §1): list, open, relabel, archive, reset.

use crate::api::refuse::{unexpected, wallet_refused};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{Example, Record, record, value};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Permission, Route};
use crate::http::scalar::{Money, Timestamp, words};
use crate::http::schema::{BOOLEAN, OFFSET, Param, Schema};
use engine::command::{Answer, Command, Query};
use engine::id::WalletId;
use engine::user::{self, WalletKind};
use wire::fields::{Body, Params, Problems};
use wire::value::Value;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
/// Characters of a wallet's label.
const LABEL_CHARS_MAX: usize = 64;
/// The one kind that its user opens.
const SANDBOX: &str = "SANDBOX";

/// Codes of a write of a wallet, and those that every such write has.
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
        Param::query("include_archived", BOOLEAN, "Archived wallets too."),
    ])
    .gives::<WalletList<'_>>(200)
    .fails(&[Code::ValidationFailed])
    .run(|call| Box::pin(list(call)));

pub const OPEN: Route = Route::post("/v1/me/wallets", "open_wallet")
    .about("Opens a SANDBOX wallet.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .takes::<NewWallet<'_>>()
    .gives::<Wallet<'_>>(201)
    .fails(write_codes![InvalidBody, ValidationFailed, InvalidRequest, UpgradeRequired])
    .run(|call| Box::pin(open(call)));

pub const GET: Route = Route::get("/v1/me/wallets/{id}", "get_wallet")
    .about("One wallet of the caller, archived or not.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Read)
    .gives::<Wallet<'_>>(200)
    .fails(&[Code::WalletNotFound])
    .run(|call| Box::pin(get(call)));

pub const RELABEL: Route = Route::patch("/v1/me/wallets/{id}", "relabel_wallet")
    .about("Gives a wallet another label, or none.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .takes::<WalletLabel<'_>>()
    .gives::<Wallet<'_>>(200)
    .fails(write_codes![WalletNotFound, InvalidBody, ValidationFailed])
    .run(|call| Box::pin(relabel(call)));

pub const ARCHIVE: Route = Route::delete("/v1/me/wallets/{id}", "archive_wallet")
    .about(
        "Archives a SANDBOX wallet: its orders end, its positions close without cash. A second time changes nothing.",
    )
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .gives_with::<Wallet<'_>>(200, Example::Of(|| value(&Wallet::archived_example())))
    .fails(write_codes![WalletNotFound, InvalidRequest])
    .run(|call| Box::pin(archive(call)));

pub const RESET: Route = Route::post("/v1/me/wallets/{id}/reset", "reset_wallet")
    .about("MAIN starts again with its baseline; a SANDBOX wallet is archived and a new one follows it.")
    .auth(Auth::KeyOrJwt)
    .needs(Permission::Trade)
    .body(BodyKind::Ignored)
    .gives::<Wallet<'_>>(200)
    .fails(write_codes![WalletNotFound, InvalidRequest, UpgradeRequired])
    .run(|call| Box::pin(reset(call)));

words! {
    WalletKindName = "MAIN", "API", "SANDBOX", "COMPETITION";
    WalletStatus = "ACTIVE", "ARCHIVED";
    NewWalletKind = "SANDBOX";
}

record! {
    /// A wallet: cash and positions of their own.
    struct Wallet<'a> {
        id: u64 = 101;
        kind: WalletKindName = SANDBOX.into();
        label: Option<&'a str> = Some("grid test"), "The caller's name for it.";
        balance: Money = Money::of("9940.12"), "Available cash, after reservations.";
        baseline: Money = Money::of("10000"), "Cash at its opening or last reset.";
        status: WalletStatus = "ACTIVE".into();
        generation: u64 = 2, "1, and one more with each reset.";
        parent_wallet_id: Option<u64> = Some(97), "The wallet it followed.";
        // No API makes competitions.
        competition_id: Option<u64> = None;
        created_at: Timestamp = Timestamp::of("2026-09-20T08:00:00Z");
        archived_at: Option<Timestamp> = None;
        is_legacy: bool = false, "Always false.";
        managed_by: () = ();
        b2b_account: () = ();
    }

    /// Wallets by kind, each kind in the order of opening.
    struct WalletList<'a> {
        wallets: Vec<Wallet<'a>> = Vec::example();
    }

    /// A wallet to be opened.
    struct NewWallet<'a> {
        kind: NewWalletKind = SANDBOX.into(), "Other kinds are not opened by their user.";
        #[schemars(length(max = LABEL_CHARS_MAX), extend("x-or-null" = true))]
        label: Option<&'a str> = Some("grid test"), skip_serializing_if;
        #[schemars(length(max = LABEL_CHARS_MAX), extend("x-or-null" = true))]
        name: Option<&'a str> = None, "Another word for label, where that is absent.", skip_serializing_if;
    }

    /// Another label.
    struct WalletLabel<'a> {
        #[schemars(length(max = LABEL_CHARS_MAX))]
        label: Option<&'a str> = Some("grid test"), "null takes the old one away.";
    }
}

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
    Ok(Reply::json(&WalletList { wallets: page.map(Wallet::new).collect() }))
}

async fn get(call: Call) -> Outcome {
    let id = id(&call)?;
    let wallets = wallets(&call).await?;
    let wallet = wallets.iter().find(|wallet| wallet.id == id).ok_or(Code::WalletNotFound)?;
    Ok(Reply::json(&Wallet::new(wallet)))
}

async fn open(call: Call) -> Outcome {
    let label = NewWallet::read(&call.json_object()?)?.label().map(str::to_owned);
    let by = call.caller().key;
    match call.ask(Command::OpenWallet { label, by }).await? {
        Answer::Wallet(wallet) => Ok(Reply::created(&Wallet::new(&wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

async fn relabel(call: Call) -> Outcome {
    let wallet = id(&call)?;
    let label = WalletLabel::read(&call.json_object()?)?.label.map(str::to_owned);
    match call.ask(Command::RelabelWallet { wallet, label }).await? {
        Answer::Wallet(wallet) => Ok(Reply::json(&Wallet::new(&wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

async fn archive(call: Call) -> Outcome {
    let wallet = id(&call)?;
    match call.ask(Command::ArchiveWallet { wallet }).await? {
        Answer::Emptied(emptied) => Ok(Reply::json(&Wallet::new(&emptied.wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

async fn reset(call: Call) -> Outcome {
    let (wallet, by) = (id(&call)?, call.caller().key);
    match call.ask(Command::ResetWallet { wallet, by }).await? {
        Answer::Emptied(emptied) => Ok(Reply::json(&Wallet::new(&emptied.wallet))),
        other => Err(wallet_refused(&call, &other)),
    }
}

fn id(call: &Call) -> Result<WalletId, Refusal> {
    call.id().map(WalletId).ok_or_else(|| Code::WalletNotFound.into())
}

async fn wallets(call: &Call) -> Result<Vec<user::Wallet>, Refusal> {
    match call.ask(Command::Query(Query::User)).await? {
        Answer::User(user) => Ok(user.wallets),
        other => Err(unexpected(&other, call.now)),
    }
}

impl<'a> NewWallet<'a> {
    /// # Errors
    /// `VALIDATION_FAILED` for wrong types, a long label, and an absent kind; `INVALID_REQUEST` for another kind.
    fn read(body: &'a Value<'_>) -> Result<NewWallet<'a>, Refusal> {
        let mut body = Body::new(body);
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
            return Err(Refusal::new(Code::InvalidRequest, "Only SANDBOX wallets are opened by their user."));
        }
        Ok(NewWallet { kind: SANDBOX.into(), label, name })
    }

    fn label(&self) -> Option<&'a str> {
        self.label.or(self.name)
    }
}

impl<'a> WalletLabel<'a> {
    /// # Errors
    /// `VALIDATION_FAILED` for an absent, a long, and a wrong label.
    fn read(body: &'a Value<'_>) -> Result<WalletLabel<'a>, Refusal> {
        if body.get("label").is_none() {
            let mut problems = Problems::default();
            problems.add("body", "label", "missing", "is required");
            return Err(Refusal::validation(&problems));
        }
        let mut body = Body::new(body);
        let label = body.text("label", LABEL_CHARS_MAX);
        if body.problems.is_empty() { Ok(WalletLabel { label }) } else { Err(Refusal::validation(&body.problems)) }
    }
}

impl<'a> Wallet<'a> {
    /// The example of a wallet that was archived.
    fn archived_example() -> Wallet<'a> {
        let archived_at = Some(Timestamp::of("2026-10-02T09:15:00Z"));
        Wallet { status: "ARCHIVED".into(), archived_at, ..Wallet::example() }
    }

    fn new(wallet: &'a user::Wallet) -> Wallet<'a> {
        let kind = match wallet.kind {
            WalletKind::Main => "MAIN",
            WalletKind::Api => "API",
            WalletKind::Sandbox => SANDBOX,
            WalletKind::Competition => "COMPETITION",
        };
        Wallet {
            id: wallet.id.0,
            kind: kind.into(),
            label: wallet.label(),
            balance: Money(wallet.available()),
            baseline: Money(wallet.baseline),
            status: if wallet.is_active() { "ACTIVE" } else { "ARCHIVED" }.into(),
            generation: wallet.generation.into(),
            parent_wallet_id: wallet.parent().map(|parent| parent.0),
            // One event is one wallet so far.
            competition_id: (wallet.kind == WalletKind::Competition).then_some(wallet.id.0),
            created_at: Timestamp(wallet.created_at),
            archived_at: wallet.archived_at().map(Timestamp),
            is_legacy: false,
            managed_by: (),
            b2b_account: (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::Cash;
    use engine::time::{self, SECOND};
    use engine::user::WalletRare;

    #[test]
    fn a_wallet_is_shown_as_in_the_examples() {
        let (baseline, opened_at) = (Cash::from_dollars(10_000), time::Timestamp(1_789_891_200 * SECOND));
        let mut wallet = user::Wallet::new(WalletId(101), WalletKind::Sandbox, baseline, 2, opened_at);
        (wallet.cash, wallet.reserved) = (Cash(9_960_120_000), Cash(20_000_000));
        let (label, parent) = (Some("grid test".into()), Some(WalletId(97)));
        let rare = WalletRare { label, parent, ..WalletRare::default() };
        wallet.set_rare(rare.clone());
        assert_eq!(value(&Wallet::new(&wallet)), value(&Wallet::example()));
        wallet.set_rare(WalletRare { archived_at: Some(time::Timestamp(1_790_932_500 * SECOND)), ..rare });
        assert_eq!(value(&Wallet::new(&wallet)), value(&Wallet::archived_example()));
    }
}
