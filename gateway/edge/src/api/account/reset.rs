//! `POST /v1/account/reset-api-balance`: the API wallet starts again (gateway/docs/accounts.md §4).

use crate::api::refuse::wallet_refused;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::containment::KeyAction;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Route};
use crate::http::scalar::Money;
use engine::command::{Answer, Command};
use engine::time::DAY;
use engine::view::EmptiedWallet;
use wire::decimal;
use wire::value::Value;

pub const POST: Route = Route::post("/v1/account/reset-api-balance", "reset_api_balance")
    .about(concat!(
        "Ends the orders of the API wallet, closes its positions without cash, and gives it its baseline again. ",
        "Any active key may, read-only ones too, unless keys.readonly_contained is on."
    ))
    .auth(Auth::Key)
    .body(BodyKind::Optional)
    .takes::<NoFields>()
    .gives::<ApiBalanceReset>(200)
    .fails(&[
        Code::InvalidBody,
        Code::InsufficientPermission,
        Code::UpgradeRequired,
        Code::Http429,
        Code::TradeInProgress,
        Code::ServerBusy,
        Code::PersistenceUnknown,
        Code::DeadlineOvershotButPersisted,
    ])
    .run(|call| Box::pin(reset(call)));

record! {
    /// An empty object.
    struct NoFields {}

    /// An API wallet after its reset.
    struct ApiBalanceReset {
        message: String = "API wallet is back at 10000.00 USD".to_owned();
        new_api_balance: Money = Money::of("10000");
        positions_closed: u64 = 2;
        orders_cancelled: u64 = 1;
        cooldown_days: u64 = 0, "Days until it can be reset again.";
    }
}

async fn reset(call: Call) -> Outcome {
    if let Some(other) = call.json()?
        && !matches!(other, Value::Object(_))
    {
        return Err(Refusal::new(Code::InvalidBody, format!("The body is {}, not an object.", other.kind())));
    }
    call.may(KeyAction::Reset)?;
    let by = call.caller().key;
    let cooldown_days = call.reads().rules.api_reset_cooldown_us / DAY;
    match call.ask(Command::ResetApiWallet { by }).await? {
        Answer::Emptied(emptied) => Ok(Reply::json(&ApiBalanceReset::new(&emptied, cooldown_days))),
        other => Err(wallet_refused(&call, &other)),
    }
}

impl ApiBalanceReset {
    fn new(emptied: &EmptiedWallet, cooldown_days: u64) -> ApiBalanceReset {
        let balance = emptied.wallet.available();
        ApiBalanceReset {
            message: format!("API wallet is back at {} USD", decimal::text(|out| decimal::money(out, balance))),
            new_api_balance: Money(balance),
            positions_closed: emptied.positions,
            orders_cancelled: emptied.orders,
            cooldown_days,
        }
    }
}
