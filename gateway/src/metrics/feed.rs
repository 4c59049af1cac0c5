//! The feed: age of the venue's last message, applied frames, and stale books.

use super::family::{Family, Writer};
use edge::app::App;
use engine::id::Outcome;
use engine::print::Evidence;
use engine::realism::FillModel;
use engine::time::SECOND;
use std::fmt::Error;
use std::sync::atomic::Ordering::Relaxed;
use venue::feed::FeedFigures;

const AGE: Family = Family::new("papertape_feed_age_seconds", "Since the last message of the venue");
const FRAMES: Family = Family::new("papertape_feed_frames_total", "Frames of the venue applied to the books");
const UNLISTED: Family =
    Family::new("papertape_feed_unlisted_total", "Skipped updates of tokens and conditions that are not listed");
const CLAMPED: Family =
    Family::new("papertape_feed_clamped_total", "Levels of the venue that did not fit a book's grid");
const PRINTS_LOST: Family = Family::new(
    "papertape_feed_prints_lost_total",
    "Trades of the venue that could fill no resting order, since a shard's queue or the log was full",
);
const SIDELESS_PRINTS: Family = Family::new(
    "papertape_queue_sideless_prints_total",
    "Trades of the venue that fill no resting order, since it did not state their taker's side",
);
const QUEUE_LEVELS: Family = Family::new(
    "papertape_queue_watched_levels",
    "Prices at which orders with a place in a queue rest, counted in each shard",
);
const QUEUE_EVENTS_LOST: Family = Family::new(
    "papertape_queue_events_lost_total",
    "Changes of such prices that a shard lost: nothing fills there from a queue until the next whole book",
);
const FILLS: Family =
    Family::new("papertape_fills_by_model_total", "Fills by the fill model of the order and by what filled it");
const OUTAGE: Family =
    Family::new("papertape_feed_outage", "1 while the venue counts as out: market orders are refused");
const CYCLE: Family = Family::new("papertape_matching_cycle_seconds", "How long the last matching cycle took");
const RESTING: Family = Family::new("papertape_orders_resting", "Orders that the last matching cycle left resting");
const MARKETS: Family = Family::new("papertape_markets", "Markets known, those that have ended among them");
const TRADABLE: Family = Family::new("papertape_markets_tradable", "Markets that take orders");
const STALE: Family =
    Family::new("papertape_books_stale", "Books of markets that take orders, each token's own, shown as stale");

pub(super) fn write(app: &App, figures: &FeedFigures, out: &mut Writer<'_>) -> Result<(), Error> {
    let now = app.reads.clock.now();
    let seconds = |micros: u64| micros as f64 / SECOND as f64;
    let last_message = app.vitals().last_message_at;
    out.gauges(&AGE, last_message.map(|at| (&[][..], seconds(now.since(at)))))?;
    out.counter(&FRAMES, figures.frames.load(Relaxed))?;
    out.counter(&UNLISTED, figures.unlisted.load(Relaxed))?;
    out.counter(&CLAMPED, figures.clamped.load(Relaxed))?;
    out.counter(&PRINTS_LOST, figures.prints_lost.load(Relaxed))?;
    out.counter(&SIDELESS_PRINTS, figures.sideless_prints.load(Relaxed))?;
    out.gauge(&QUEUE_LEVELS, figures.watched_levels.load(Relaxed))?;
    out.counter(&QUEUE_EVENTS_LOST, figures.queue_events_lost.load(Relaxed))?;
    let kinds = FillModel::ALL.into_iter().flat_map(|model| Evidence::ALL.map(|evidence| (model, evidence)));
    let labels = kinds.clone().map(|(model, evidence)| [("model", model.name()), ("evidence", evidence.name())]);
    let labels: Vec<_> = labels.collect();
    let counts = kinds.map(|(model, evidence)| figures.fills[model as usize][evidence as usize].load(Relaxed));
    out.counters(&FILLS, labels.iter().map(|labels| &labels[..]).zip(counts))?;
    out.gauge(&OUTAGE, u32::from(app.reads.books.outage()))?;
    out.gauge(&CYCLE, seconds(figures.last_cycle_us.load(Relaxed)))?;
    out.gauge(&RESTING, figures.pending_orders.load(Relaxed))?;
    out.gauge(&MARKETS, app.reads.catalog.len())?;
    let (mut tradable, mut stale) = (0_u64, 0_u64);
    for cell in app.reads.catalog.iter().filter(|cell| cell.tradable()) {
        tradable += 1;
        let is_stale = |outcome| app.reads.books.stale(cell.instrument(outcome), now);
        stale += [Outcome::First, Outcome::Second].map(is_stale).map(u64::from).iter().sum::<u64>();
    }
    out.gauge(&TRADABLE, tradable)?;
    out.gauge(&STALE, stale)
}
