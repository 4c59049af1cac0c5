//! hftbacktest: a strategy on a recorded market, one asset, with order latency to the venue and back.

use super::BacktestPeer;
use crate::backtest::Moment;
use crate::report::timed;
use hftbacktest::backtest::assettype::LinearAsset;
use hftbacktest::backtest::data::Data;
use hftbacktest::backtest::models::{CommonFees, ConstantLatency, RiskAdverseQueueModel, TradingValueFeeModel};
use hftbacktest::backtest::{Backtest, DataSource, ExchangeKind, L2AssetBuilder};
use hftbacktest::prelude::{
    Bot, EXCH_ASK_DEPTH_EVENT, EXCH_BID_DEPTH_EVENT, Event, LOCAL_ASK_DEPTH_EVENT, LOCAL_BID_DEPTH_EVENT,
    MarketDepth as _, OrdType, ROIVectorMarketDepth, TimeInForce,
};
use std::hint::black_box;

pub const BACKTEST: BacktestPeer = BacktestPeer { name: "hftbacktest", run, watch };

const MILLISECOND_NS: i64 = 1_000_000;
/// Latency in each direction: both within a millisecond, so that each order rests before it is cancelled.
const LATENCY_NS: i64 = 100_000;
const SHARES: f64 = 5.0;

fn price(cents: u16) -> f64 {
    f64::from(cents) / 100.0
}

fn level(ev: u64, at: i64, cents: u16, qty: f64) -> Event {
    Event { ev, exch_ts: at, local_ts: at, px: price(cents), qty, order_id: 0, ival: 0, fval: 0.0 }
}

/// The book at first, then a level for each millisecond, and one more that ends the recording.
fn recording(moments: &[Moment]) -> Vec<Event> {
    let bid = EXCH_BID_DEPTH_EVENT | LOCAL_BID_DEPTH_EVENT;
    let ask = EXCH_ASK_DEPTH_EVENT | LOCAL_ASK_DEPTH_EVENT;
    let mut events = vec![level(bid, 1, 49, 40.0), level(ask, 1, 51, 40.0)];
    for (number, moment) in moments.iter().enumerate() {
        let at = (number as i64 + 1) * MILLISECOND_NS;
        events.push(level(bid, at, moment.level_cents, moment.level_shares as f64));
    }
    events.push(level(bid, (moments.len() as i64 + 2) * MILLISECOND_NS, 1, 1.0));
    events
}

/// The recording, with its clock where the first event is.
fn started(moments: &[Moment]) -> Backtest<ROIVectorMarketDepth> {
    let asset = L2AssetBuilder::new()
        .data(vec![DataSource::Data(Data::from_data(&recording(moments)))])
        .latency_model(ConstantLatency::new(LATENCY_NS, LATENCY_NS))
        .asset_type(LinearAsset::new(1.0))
        .fee_model(TradingValueFeeModel::new(CommonFees::new(0.0, 0.0)))
        .exchange(ExchangeKind::NoPartialFillExchange)
        .queue_model(RiskAdverseQueueModel::new())
        .depth(|| ROIVectorMarketDepth::new(0.01, 0.000_001, 0.0, 1.0))
        .build()
        .expect("every field was set");
    let mut backtest = Backtest::builder().add_asset(asset).build().expect("one asset");
    // The first event is where its clock begins.
    backtest.elapse(1).expect("a recording");
    backtest
}

fn watch(moments: &[Moment]) -> f64 {
    let mut backtest = started(moments);
    let (seconds, ()) = timed(|| {
        for _ in moments {
            black_box(backtest.elapse(MILLISECOND_NS).expect("the recording is longer"));
            black_box(backtest.depth(0).best_ask());
        }
    });
    seconds
}

fn run(moments: &[Moment]) -> f64 {
    let mut backtest = started(moments);
    let (seconds, ()) = timed(|| {
        for (number, moment) in moments.iter().enumerate() {
            black_box(backtest.elapse(MILLISECOND_NS).expect("the recording is longer"));
            let order = number as u64 + 1;
            if number > 0 {
                black_box(backtest.cancel(0, order - 1, false).expect("it rests"));
            }
            let placed = backtest.submit_buy_order(
                0,
                order,
                price(moment.order_cents),
                SHARES,
                TimeInForce::GTC,
                OrdType::Limit,
                false,
            );
            black_box(placed.expect("the order can be placed"));
            backtest.clear_inactive_orders(Some(0));
        }
    });
    let open = backtest.orders(0).len();
    assert!((1..=2).contains(&open), "each order but the last was cancelled: {open} are left");
    assert_eq!(backtest.position(0), 0.0, "none was filled");
    seconds
}
