//! The account of one user, calculated from the fills that the server lists, and compared with the balances and
//! positions that it reports.
//!
//! All in millionths. Fills are read once and added up; now and then they are read again from the start, to check that
//! none has changed.

use serde_json::Value;
use std::collections::BTreeMap;
use tests::http::Client;
use tests::json::{at, int, list, micros, micros_at, text};

/// Sums over the fills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Sales less purchases less fees.
    pub cash: i64,
    /// Shares by token: bought less sold.
    pub shares: BTreeMap<String, i64>,
    /// By order: shares, notional, fee.
    pub by_order: BTreeMap<i64, (i64, i64, i64)>,
    pub fills: usize,
    pub newest_trade: i64,
}

/// One consistent read of an account.
pub struct Account {
    pub balance: i64,
    pub reserved: i64,
    pub baseline: i64,
    pub pending: Vec<Value>,
    pub positions: Vec<Value>,
}

impl Ledger {
    /// Reads the fills that are new since the last time.
    pub fn catch_up(&mut self, client: &mut Client) {
        let (mut fresh, mut offset) = (Vec::new(), 0);
        'pages: loop {
            let page = client.get(&format!("/v1/account/history?limit=200&offset={offset}")).expect(200);
            let rows = list(&page, "");
            for row in rows {
                if int(row, "/trade_id") <= self.newest_trade {
                    break 'pages;
                }
                fresh.push(row.clone());
            }
            if rows.len() < 200 {
                break;
            }
            offset += rows.len();
        }
        for row in fresh.iter().rev() {
            self.add(row);
        }
    }

    fn add(&mut self, row: &Value) {
        let (id, trade) = (int(row, "/order_id"), int(row, "/trade_id"));
        // A page may shift while it is read: a trade counts once.
        if trade <= self.newest_trade {
            return;
        }
        let (quantity, notional, fee) =
            (micros_at(row, "/quantity"), micros_at(row, "/notional"), micros_at(row, "/fee"));
        assert!(quantity > 0 && notional >= 0 && fee >= 0, "a fill of nothing: {row}");
        let shares = self.shares.entry(text(row, "/token_id").to_string()).or_default();
        match text(row, "/side") {
            "BUY" => {
                self.cash -= notional + fee;
                *shares += quantity;
            }
            _ => {
                self.cash += notional - fee;
                *shares -= quantity;
                assert!(*shares >= 0, "sold more than held: {row}");
            }
        }
        let order = self.by_order.entry(id).or_default();
        *order = (order.0 + quantity, order.1 + notional, order.2 + fee);
        self.fills += 1;
        self.newest_trade = trade;
    }
}

impl Account {
    /// Reads until nothing changed meanwhile: the matching cycle keeps running.
    pub fn read(client: &mut Client, ledger: &mut Ledger) -> Account {
        tests::eventually("an account that does not change", || {
            let before = client.get("/v1/account/portfolio").expect(200);
            let pending = all_orders(client, "status=PENDING");
            let positions = client.get("/v1/account/positions").expect(200);
            ledger.catch_up(client);
            let after = client.get("/v1/account/portfolio").expect(200);
            let still = |path: &str| at(&before, path) == at(&after, path);
            let held = still("/balance/balance") && still("/balance/reserved") && still("/total_trades");
            (held && int(&after, "/total_trades") == ledger.fills as i64).then(|| Account {
                balance: micros_at(&after, "/balance/balance"),
                reserved: micros_at(&after, "/balance/reserved"),
                baseline: micros_at(&after, "/balance/starting_balance"),
                pending,
                positions: list(&positions, "").to_vec(),
            })
        })
    }

    /// Every invariant of the ledger that REST shows.
    pub fn check(&self, ledger: &Ledger, client: &mut Client) {
        assert!(self.balance >= 0, "available cash is not below zero: {}", self.balance);
        let reserved: i64 = self.pending.iter().filter(|row| text(row, "/side") == "BUY").map(reservation).sum();
        assert_eq!(self.reserved, reserved, "reserved cash is the sum over open orders: {:?}", self.pending);
        let mut expected = self.baseline + ledger.cash;
        for (token, shares) in &ledger.shares {
            let open: Vec<&Value> = self
                .positions
                .iter()
                .filter(|row| text(row, "/token_id") == token && text(row, "/status") == "OPEN")
                .collect();
            assert!(open.len() <= 1, "one open position per token: {open:?}");
            let held = open.first().map_or(0, |row| micros_at(row, "/quantity"));
            let selling: i64 = self
                .pending
                .iter()
                .filter(|row| text(row, "/side") == "SELL" && text(row, "/token_id") == token)
                .map(unfilled)
                .sum();
            let set_aside = open.first().map_or(0, |row| micros_at(row, "/reserved_quantity"));
            assert_eq!(set_aside, selling, "reserved shares of {token} are the sum over open sales");
            assert!(set_aside <= held, "reserved shares are held: {open:?}");
            if held == *shares {
                continue;
            }
            // Bought, not sold and not held any more: the market paid out.
            assert_eq!(held, 0, "{token}: the fills leave {shares}, the position has {held}");
            expected += payout(client, token, *shares);
        }
        assert_eq!(
            self.balance + self.reserved,
            expected,
            "cash is baseline {} and fills {} and payouts; available {}, reserved {}",
            self.baseline,
            ledger.cash,
            self.balance,
            self.reserved
        );
    }
}

/// The payout of a resolved market for these shares.
fn payout(client: &mut Client, token: &str, shares: i64) -> i64 {
    let place = client.get(&format!("/v1/markets-by-token/{token}")).expect(200);
    let market = client.get(&format!("/v1/markets/{}", text(&place, "/condition_id"))).expect(200);
    assert_eq!(at(&market, "/closed"), true, "shares of {token} are gone, but the market is open: {market}");
    match at(&market, "/resolved_outcome").as_str() {
        None => shares / 2,
        Some(winner) if winner == text(&place, "/outcome") => shares,
        Some(_) => 0,
    }
}

/// Limit × unfilled, rounded up to a millionth.
fn reservation(row: &Value) -> i64 {
    let exact = i128::from(micros_at(row, "/limit_price")) * i128::from(unfilled(row));
    let micros = (exact + 999_999).div_euclid(1_000_000);
    micros as i64
}

fn unfilled(row: &Value) -> i64 {
    micros_at(row, "/quantity") - micros_at(row, "/filled_quantity")
}

/// Every row of an order list.
pub fn all_orders(client: &mut Client, filter: &str) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), "MA==".to_string());
    while cursor != "LTE=" {
        let page = client.get(&format!("/v1/orders?limit=200&{filter}&cursor={cursor}")).expect(200);
        rows.extend(list(&page, "/orders").iter().cloned());
        cursor = text(&page, "/next_cursor").to_string();
    }
    rows
}

#[test]
fn a_reservation_is_rounded_up() {
    let row = |price: &str, quantity: &str, filled: &str| serde_json::json!({"limit_price": price, "quantity": quantity, "filled_quantity": filled});
    let rows = [
        (row("0.37", "20", "12"), "2.96"),
        (row("0.0001", "0.0001", "0"), "0.000001"),
        (row("0.3333", "0.3333", "0"), "0.111089"),
    ];
    for (order, expected) in &rows {
        assert_eq!(reservation(order), micros(expected), "{order}");
    }
    println!("reservations: {} cases", rows.len());
}
