//! Frames of the user channel (gateway/docs/streams.md §4.3): the values of the venue-shaped rows of fills and orders, in
//! the style of the socket.

use super::frame::Frame;
use super::shape::user::{UserOrderEvent, UserTradeEvent};
use super::user_frames::{FactFrames, FrameStyle};
use crate::api::clob::ids::{self, OrderIds};
use crate::api::clob::rows::{self, Execution, MakerOrder, OrderTerms};
use crate::api::clob::words;
use crate::api::orders::view;
use crate::api::orders::words as native;
use crate::app::App;
use crate::http::dialect::Dialect;
use crate::http::scalar::{Digits, Seconds};
use engine::order::{Fill, Status};
use engine::view::{FactView, Happened};
use std::sync::Arc;

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

    fn trade(&self, fact: &FactView, fill: &Fill) -> Frame {
        let (order, style) = (&fact.order, &self.style);
        let (owner, address) = (&*style.owner, &*self.address);
        let texts = view::Texts::of(&self.app.reads.catalog, order.terms.instrument);
        let is_strict = style.dialect.is_strict();
        let own = || MakerOrder::of(&self.ids, fill, order, &texts, (owner, address));
        let at = Seconds(fill.at.secs());
        Frame::record(&UserTradeEvent {
            event_type: "trade".into(),
            r#type: "TRADE".into(),
            status: "MATCHED".into(),
            execution: Execution::new(&self.ids, fill, order, &texts, style.dialect),
            timestamp: at,
            last_update: at,
            match_time: at,
            maker_orders: if is_strict || style.sends_orders { own() } else { Vec::new() },
            owner,
            trade_owner: owner,
            fee_rate_bps: Digits(rows::rate(fill)),
            trader_side: native::liquidity(fill.liquidity).into(),
            bucket_index: 0,
            maker_address: address,
            transaction_hash: is_strict.then(|| ids::paper_transaction_hash(&fill.id.0.to_string()).into()),
            user_seq: style.numbered.then_some(fact.seq),
        })
    }

    fn order(&self, fact: &FactView, kind: &'static str) -> Frame {
        let (order, style) = (&fact.order, &self.style);
        let texts = view::Texts::of(&self.app.reads.catalog, order.terms.instrument);
        let (at, trade) = match &fact.what {
            Happened::Placed { .. } => (order.created_at, None),
            Happened::Filled { fill, .. } => (fill.at, Some(fill.id)),
            Happened::Closed => (order.closed().map_or(order.created_at, |(_, at)| at), None),
        };
        Frame::record(&UserOrderEvent {
            event_type: "order".into(),
            r#type: kind.into(),
            terms: OrderTerms::new(&self.ids, order, &texts),
            owner: &style.owner,
            order_owner: &style.owner,
            expiration: Digits(order.terms.expiration().unwrap_or_default().secs()),
            created_at: Digits(order.created_at.secs()),
            // Only this field has milliseconds, as at the venue.
            timestamp: Digits(at.millis()),
            associate_trades: trade.map(|id| Digits(id.0)).into_iter().collect(),
            status: match order.status() {
                Status::Cancelled | Status::Expired => "CANCELED".into(),
                Status::Pending | Status::Filled => words::status(order, Dialect::Strict).into(),
            },
            maker_address: &self.address,
            user_seq: style.numbered.then_some(fact.seq),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testing::{Filled, Town, Trader};
    use crate::http::testing::NOW;
    use engine::id::{Outcome, UserId};
    use engine::order::{Liquidity, PriceSource};

    const OWNER: &str = "4f0c9d2a-0011-8233-9455-66778899aabb";

    #[test]
    fn frames_have_these_bytes() {
        let town = Town::new();
        let cell = town.catalog.market(town.market).expect("listed");
        let mut trader = Trader::new(100_000_000, cell.instrument(Outcome::First));
        trader.place(90_415, trader.terms(4_100, 10), NOW);
        let how = Filled {
            liquidity: Liquidity::Maker,
            source: PriceSource::MatchingEngine,
            quote_age_ms: None,
            at: NOW.plus(1_250_000),
        };
        trader.fill(90_415, 90_416, (6_000_000, 2_460_000, 0), how);
        let view = trader.view(90_415);
        let (order, fill) = (view.order, view.fills[0].clone());
        let fact = FactView { seq: 7, order, what: Happened::Filled { fill, resting: true } };
        let address = ids::address(UserId(0));
        let (market, asset) = (cell.listing.condition.as_str(), cell.token(Outcome::First));
        let (at, created_at, millis) = (NOW.secs() + 1, NOW.secs(), NOW.plus(1_250_000).millis());
        let hash = format!(r#""{}""#, ids::paper_transaction_hash("90416"));
        let mut cases = 0;
        for (dialect, owner, numbered, side, hash, user_seq) in [
            (Dialect::Plain, "", false, "BUY", "null", ""),
            (Dialect::Strict, OWNER, true, "SELL", &*hash, r#","user_seq":7"#),
        ] {
            let salt = town.edge.app.front.settings.auth.server_secret.expose();
            let id = ids::OrderIds::new(salt, UserId(0), dialect).text(fact.order.id, None);
            let own = format!(
                r#"{{"order_id":"{id}","owner":"{owner}","maker_address":"{address}","matched_amount":"6","price":"0.41",
                 "fee_rate_bps":"0","asset_id":"{asset}","outcome":"Yes","side":"BUY"}}"#
            );
            let trade = format!(
                r#"{{"event_type":"trade","type":"TRADE","status":"MATCHED","id":"90416","taker_order_id":"{id}",
                 "market":"{market}","asset_id":"{asset}","side":"{side}","size":"6","price":"0.41","outcome":"Yes",
                 "timestamp":"{at}","last_update":"{at}","match_time":"{at}","maker_orders":[{own}],"owner":"{owner}",
                 "trade_owner":"{owner}","fee_rate_bps":"0","trader_side":"MAKER","bucket_index":0,
                 "maker_address":"{address}","transaction_hash":{hash}{user_seq}}}"#
            );
            let update = format!(
                r#"{{"event_type":"order","type":"UPDATE","id":"{id}","market":"{market}","asset_id":"{asset}",
                 "side":"BUY","original_size":"10","size_matched":"6","price":"0.41","outcome":"Yes","order_type":"GTC",
                 "owner":"{owner}","order_owner":"{owner}","expiration":"0","created_at":"{created_at}",
                 "timestamp":"{millis}","associate_trades":["90416"],"status":"LIVE","maker_address":"{address}"{user_seq}}}"#
            );
            let style = FrameStyle { user: UserId(0), dialect, owner: owner.into(), numbered, sends_orders: true };
            let frames = Texts::new(&town.edge.app, &style).frames(&fact);
            for (frame, expected) in frames.into_iter().zip([trade, update]) {
                let frame = frame.expect("a fill has both");
                assert_eq!(str::from_utf8(frame.payload()), Ok(&*unfolded(&expected)), "{dialect:?}");
                cases += 1;
            }
        }
        println!("frames of the user channel: {cases}");
    }

    /// The lines of a text as one.
    fn unfolded(text: &str) -> String {
        text.lines().map(str::trim).collect()
    }
}
