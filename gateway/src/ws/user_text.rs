//! Frames of the user channel (streams.md §4.3): the fields that a fill or an order has in the venue-shaped lists, made by
//! the same code, in the channel's dress.

use super::admit::Bearer;
use super::frame::Frame;
use crate::api::clob::ids::{self, OrderIds};
use crate::api::clob::{rows, words};
use crate::api::orders::view;
use crate::api::orders::words as native;
use crate::app::App;
use crate::http::dialect::Dialect;
use crate::wire::decimal;
use crate::wire::write::{Object, array, object};
use engine::id::TradeId;
use engine::order::{Fill, Liquidity, Order, Status};
use engine::time::Timestamp;
use engine::view::{FactView, Happened};
use std::rc::Rc;
use std::sync::Arc;

/// What all frames of one socket share.
pub struct Texts {
    app: Arc<App>,
    ids: OrderIds,
    /// The key's UUID where that was shown, else empty.
    owner: Rc<str>,
    address: String,
    /// Frames carry their `user_seq`.
    numbered: bool,
    /// Maker trades describe the own order.
    describes_maker: bool,
}

impl Texts {
    pub fn new(app: &Arc<App>, bearer: &Bearer, numbered: bool, describes_maker: bool) -> Texts {
        Texts {
            app: app.clone(),
            ids: OrderIds::new(app.config.auth.server_secret.expose(), bearer.user),
            owner: bearer.alias.clone().unwrap_or_else(|| "".into()),
            address: ids::address(bearer.user),
            numbered,
            describes_maker,
        }
    }

    /// A `trade` event.
    pub fn trade(&self, fact: &FactView, fill: &Fill) -> Frame {
        let order = &fact.order;
        let texts = view::Texts::of(&self.app.catalog, order.terms.instrument);
        self.frame(fact, |o| {
            o.word("event_type", "trade");
            o.word("type", "TRADE");
            o.word("status", "MATCHED");
            rows::execution(o, &self.ids, fill, order, &texts);
            for name in ["timestamp", "last_update", "match_time", "matchtime"] {
                secs(o, name, fill.at);
            }
            let describes = self.describes_maker && fill.liquidity == Liquidity::Maker;
            array(o.name("maker_orders"), describes.then_some(()), |out, ()| {
                object(out, |o| self.own_order(o, order, fill, &texts));
            });
            o.text("owner", &self.owner);
            o.text("trade_owner", &self.owner);
            rows::quoted(o, "fee_rate_bps", rows::rate(fill));
            o.word("trader_side", native::liquidity(fill.liquidity));
            o.integer("bucket_index", 0);
            o.text("maker_address", &self.address);
            o.word("transaction_hash", "");
        })
    }

    fn own_order(&self, o: &mut Object<'_>, order: &Order, fill: &Fill, texts: &view::Texts<'_>) {
        rows::order_id(o, "order_id", &self.ids, order.id);
        o.text("owner", &self.owner);
        o.text("maker_address", &self.address);
        o.qty("matched_amount", fill.qty);
        o.average("price", view::fill_price(fill));
        rows::quoted(o, "fee_rate_bps", rows::rate(fill));
        o.text("asset_id", texts.token());
        o.text("outcome", texts.outcome());
        o.word("side", native::side(order.terms.side));
    }

    /// An `order` event of that type.
    pub fn order(&self, fact: &FactView, kind: &'static str) -> Frame {
        let order = &fact.order;
        let texts = view::Texts::of(&self.app.catalog, order.terms.instrument);
        let (at, trade) = match &fact.what {
            Happened::Placed { .. } => (order.created_at, None),
            Happened::Filled { fill, .. } => (fill.at, Some(fill.id)),
            Happened::Closed => (order.closed().map_or(order.created_at, |(_, at)| at), None),
        };
        self.frame(fact, |o| {
            o.word("event_type", "order");
            o.word("type", kind);
            rows::placement(o, &self.ids, order, &texts);
            o.text("owner", &self.owner);
            o.text("order_owner", &self.owner);
            secs(o, "expiration", order.terms.expiration().unwrap_or_default());
            secs(o, "created_at", order.created_at);
            secs(o, "timestamp", at);
            o.array("associate_trades", trade, |out, TradeId(id)| {
                out.push(b'"');
                decimal::integer(out, id);
                out.push(b'"');
            });
            o.word(
                "status",
                match order.status() {
                    Status::Cancelled | Status::Expired => "CANCELED",
                    Status::Pending | Status::Filled => words::status(order, Dialect::Strict),
                },
            );
            o.text("maker_address", &self.address);
        })
    }

    fn frame(&self, fact: &FactView, fields: impl FnOnce(&mut Object<'_>)) -> Frame {
        Frame::json(|out| {
            object(out, |o| {
                fields(o);
                if self.numbered {
                    o.integer("user_seq", fact.seq);
                }
            });
        })
    }
}

fn secs(o: &mut Object<'_>, name: &str, at: Timestamp) {
    rows::quoted(o, name, at.secs());
}
