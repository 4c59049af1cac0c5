//! The trades of a CSV export, row by row, beside the orders of a model.

use super::Reconciled;
use crate::load::model::{Known, Model, What, micros};
use csv::{ReaderBuilder, StringRecord};

/// Columns that are compared, in the order of [`Trade`].
const COLUMNS: [&str; 8] =
    ["trade_id", "order_id", "client_order_id", "token_id", "side", "quantity", "notional", "fee"];
/// Bytes of an unfinished row, at most.
const ROW_BYTES_MAX: usize = 1 << 16;

/// Rows of an export that arrives in pieces.
#[derive(Default)]
pub struct Export {
    /// The beginning of a row.
    rest: Vec<u8>,
    /// Where the columns are; `None` before the header line.
    columns: Option<[usize; COLUMNS.len()]>,
}

/// One trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trade {
    pub id: u64,
    pub order: u64,
    pub client_order_id: String,
    pub token: String,
    pub is_buy: bool,
    pub quantity: i64,
    pub notional: i64,
    pub fee: i64,
}

impl Export {
    /// Passes on the rows that these bytes complete.
    ///
    /// # Errors
    /// One sentence for what is not an export, and for one that was cut.
    pub fn take(&mut self, bytes: &[u8], mut each: impl FnMut(Trade)) -> Result<(), String> {
        self.rest.extend_from_slice(bytes);
        let (mut is_quoted, mut complete) = (false, 0);
        for (at, byte) in self.rest.iter().enumerate() {
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\n' if !is_quoted => complete = at + 1,
                _ => {}
            }
        }
        let rows =
            ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&self.rest[..complete]).into_records();
        for row in rows {
            let row = row.map_err(|error| format!("the export is not CSV: {error}"))?;
            match self.columns {
                None => self.columns = Some(columns(&row)?),
                Some(columns) => each(trade(&row, columns)?),
            }
        }
        self.rest.drain(..complete);
        match self.rest.len() > ROW_BYTES_MAX {
            true => Err("the export has a row without an end".to_owned()),
            false => Ok(()),
        }
    }

    /// # Errors
    /// One sentence for an export that ends within a row, or before the first.
    pub fn end(self) -> Result<(), String> {
        match self.rest.is_empty() && self.columns.is_some() {
            true => Ok(()),
            false => Err("the export ends within a row".to_owned()),
        }
    }
}

fn columns(header: &StringRecord) -> Result<[usize; COLUMNS.len()], String> {
    let mut places = [0; COLUMNS.len()];
    for (name, place) in COLUMNS.iter().zip(&mut places) {
        *place =
            header.iter().position(|column| column == *name).ok_or(format!("the export lacks the column {name}"))?;
    }
    Ok(places)
}

fn trade(row: &StringRecord, columns: [usize; COLUMNS.len()]) -> Result<Trade, String> {
    if let Some(first) = row.get(0).filter(|first| first.starts_with('#')) {
        return Err(format!("{}: raise export.max_rows of the server", first.trim_start_matches("# ")));
    }
    let [id, order, client_order_id, token, side, quantity, notional, fee] =
        columns.map(|column| row.get(column).unwrap_or_default());
    let read = || {
        Some(Trade {
            id: id.parse().ok()?,
            order: order.parse().ok()?,
            client_order_id: client_order_id.to_owned(),
            token: token.to_owned(),
            is_buy: match side {
                "BUY" => true,
                "SELL" => false,
                _ => return None,
            },
            quantity: micros(quantity)?,
            notional: micros(notional)?,
            fee: micros(fee)?,
        })
    };
    read().ok_or_else(|| {
        format!("the export has a row that cannot be read: {}", row.iter().collect::<Vec<_>>().join(","))
    })
}

/// Sums of a user's trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub buys: u64,
    pub sells: u64,
    /// Notionals, and fees, in 10⁻⁶ dollars.
    pub bought: i64,
    pub sold: i64,
    pub fees: i64,
}

/// The fills of one order, summed.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    quantity: i64,
    notional: i64,
    fee: i64,
}

/// The trades of a user beside the orders of the model.
pub struct Trades<'a> {
    model: &'a Model,
    /// By name.
    orders: &'a [Known],
    /// Of the same orders.
    filled: Vec<Filled>,
    /// The trade before.
    last: Option<u64>,
    pub sums: Sums,
}

impl<'a> Trades<'a> {
    pub fn of(model: &'a Model, orders: &'a [Known]) -> Trades<'a> {
        Trades { model, orders, filled: vec![Filled::default(); orders.len()], last: None, sums: Sums::default() }
    }

    /// The next row.
    pub fn take(&mut self, trade: Trade, found: &mut Reconciled) {
        found.trades += 1;
        if self.last.is_some_and(|last| last <= trade.id) {
            found.differs("trades that are not newest first, or twice", || trade.id.to_string());
        }
        self.last = Some(trade.id);
        let Sums { buys, sells, bought, sold, fees } = &mut self.sums;
        let (count, sum) = if trade.is_buy { (buys, bought) } else { (sells, sold) };
        (*count, *sum, *fees) = (*count + 1, *sum + trade.notional, *fees + trade.fee);
        let Some(name) = self.model.name(&trade.client_order_id) else { return };
        let Ok(at) = self.orders.binary_search_by_key(&name, |known| known.row.name) else {
            return found.differs("trades of orders that were refused or never sent", || trade.client_order_id.clone());
        };
        found.known_trades += 1;
        let row = &self.orders[at].row;
        let is_same_order = row.order == trade.order || row.what != What::Placed;
        if !is_same_order || (row.sort.side() == "BUY") != trade.is_buy || self.model.token(row) != trade.token {
            found.differs("trades with another order, side or token", || trade.client_order_id.clone());
        }
        let filled = &mut self.filled[at];
        filled.quantity += trade.quantity;
        filled.notional += trade.notional;
        filled.fee += trade.fee;
    }

    /// After the last row.
    pub fn end(&self, found: &mut Reconciled) {
        for (Known { row, .. }, filled) in self.orders.iter().zip(&self.filled) {
            let name = || self.model.id(row.name);
            match row.what {
                What::Placed if filled.quantity > row.filled && filled.quantity <= row.quantity => {
                    found.filled_later += 1;
                }
                What::Placed => {
                    for (what, server, model) in [
                        ("orders whose trades have another quantity", filled.quantity, row.filled),
                        ("orders whose trades have another notional", filled.notional, row.notional),
                        ("orders whose trades have another fee", filled.fee, row.fee),
                    ] {
                        found.compare(what, name, Some(server), model);
                    }
                }
                What::Killed if filled.quantity > 0 => found.differs("killed orders that have trades", name),
                What::Unknown | What::There => found.unknown_traded += u64::from(filled.quantity > 0),
                What::Killed | What::Cancelled | What::CancelUnknown => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
