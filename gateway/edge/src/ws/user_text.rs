//! Frames of the user channel (gateway/docs/streams.md §4.3). They have the fields of fills and orders in the
//! venue-shaped lists, written by the same code, in the style of the socket.

use super::frame::Frame;
use super::user_frames::{FactFrames, FrameStyle};
use crate::api::clob::ids::{self, OrderIds};
use crate::api::clob::{rows, words};
use crate::api::orders::view;
use crate::api::orders::words as native;
use crate::app::App;
use crate::http::dialect::Dialect;
use engine::id::TradeId;
use engine::order::{Fill, Status};
use engine::time::Timestamp;
use engine::view::{FactView, Happened};
use std::sync::Arc;
use wire::decimal;
use wire::write::{Object, object};

/// What all frames of one socket share.
pub struct Texts {
    app: Arc<App>,
    ids: OrderIds,
    address: String,
    style: FrameStyle,
}

impl Texts {
    pub fn new(app: &Arc<App>, style: &FrameStyle) -> Texts {
        Texts {
            app: app.clone(),
            ids: OrderIds::new(app.front.settings.auth.server_secret.expose(), style.user, style.dialect),
            address: ids::address(style.user),
            style: style.clone(),
        }
    }

    /// The frames of a fact.
    pub fn frames(&self, fact: &FactView) -> FactFrames {
        let trade = match &fact.what {
            Happened::Filled { fill, .. } => Some(self.trade(fact, fill)),
            Happened::Placed { .. } | Happened::Closed => None,
        };
        [trade, self.order_event(fact).map(|kind| self.order(fact, kind))]
    }

    /// Whether a fact has any frames.
    pub fn has_frames(&self, fact: &FactView) -> bool {
        matches!(fact.what, Happened::Filled { .. }) || self.order_event(fact).is_some()
    }

    /// The type of the `order` event for a fact.
    fn order_event(&self, fact: &FactView) -> Option<&'static str> {
        match &fact.what {
            _ if !self.style.sends_orders => None,
            Happened::Placed { rests: true } => Some("PLACEMENT"),
            Happened::Filled { .. } => Some("UPDATE"),
            Happened::Closed if fact.order.status() != Status::Filled => Some("CANCELLATION"),
            // An order that never rested, and the rest of a FAK order.
            Happened::Placed { rests: false } | Happened::Closed => None,
        }
    }

    /// A `trade` event.
    fn trade(&self, fact: &FactView, fill: &Fill) -> Frame {
        let (order, style) = (&fact.order, &self.style);
        let strict = style.dialect.is_strict();
        let texts = view::Texts::of(&self.app.reads.catalog, order.terms.instrument);
        self.frame(fact, |o| {
            o.word("event_type", "trade");
            o.word("type", "TRADE");
            o.word("status", "MATCHED");
            rows::execution(o, &self.ids, fill, order, &texts, style.dialect);
            for name in ["timestamp", "last_update", "match_time"] {
                secs(o, name, fill.at);
            }
            match strict || style.sends_orders {
                true => rows::maker_orders(o, &self.ids, fill, order, &texts, (&style.owner, &self.address)),
                false => o.name("maker_orders").extend_from_slice(b"[]"),
            }
            o.text("owner", &style.owner);
            o.text("trade_owner", &style.owner);
            rows::quoted(o, "fee_rate_bps", rows::rate(fill));
            o.word("trader_side", native::liquidity(fill.liquidity));
            o.integer("bucket_index", 0);
            o.text("maker_address", &self.address);
            match strict {
                true => o.text("transaction_hash", &ids::paper_transaction_hash(&fill.id.0.to_string())),
                false => o.null("transaction_hash"),
            }
        })
    }

    /// An `order` event of that type.
    fn order(&self, fact: &FactView, kind: &'static str) -> Frame {
        let order = &fact.order;
        let texts = view::Texts::of(&self.app.reads.catalog, order.terms.instrument);
        let (at, trade) = match &fact.what {
            Happened::Placed { .. } => (order.created_at, None),
            Happened::Filled { fill, .. } => (fill.at, Some(fill.id)),
            Happened::Closed => (order.closed().map_or(order.created_at, |(_, at)| at), None),
        };
        self.frame(fact, |o| {
            o.word("event_type", "order");
            o.word("type", kind);
            rows::placement(o, &self.ids, order, &texts);
            o.text("owner", &self.style.owner);
            o.text("order_owner", &self.style.owner);
            secs(o, "expiration", order.terms.expiration().unwrap_or_default());
            secs(o, "created_at", order.created_at);
            // Only this field has milliseconds, as at the venue.
            rows::quoted(o, "timestamp", at.millis());
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
                if self.style.numbered {
                    o.integer("user_seq", fact.seq);
                }
            });
        })
    }
}

fn secs(o: &mut Object<'_>, name: &str, at: Timestamp) {
    rows::quoted(o, name, at.secs());
}
