//! What the edge counts for a monitor: how many requests of which route ended how, what they were refused with, and how long
//! placements and cancels took. Operations of sockets count as their HTTP twins do.

use crate::http::code::Code;
use crate::http::route::{RateClass, Route};
use host::histogram::{Counted, Micros};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Routes whose answers are cancels; placements are those of [`RateClass::Placement`].
const CANCELS: [&str; 8] = [
    "cancel_order",
    "cancel_order_by_client_id",
    "cancel_all",
    "cancel_all_unconfirmed",
    "cancel_market_orders",
    "cancel_market_orders_by_post",
    "cancel_named_order",
    "cancel_named_orders",
];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// What an order request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ack {
    Place,
    Cancel,
}

/// What the edge counts while there is somebody to ask for it.
#[derive(Debug)]
pub struct EdgeMeters {
    /// By place of the route; behind them, what found no route.
    routes: Box<[RouteMeter]>,
    /// By place in [`Code::ALL`].
    refusals: Box<[AtomicU64]>,
    /// By [`Ack`], then accepted and refused.
    acks: [[Micros; 2]; 2],
}

#[derive(Debug)]
struct RouteMeter {
    name: &'static str,
    ack: Option<Ack>,
    by_class: [AtomicU64; CLASSES.len()],
}

impl RouteMeter {
    fn new(name: &'static str, ack: Option<Ack>) -> RouteMeter {
        RouteMeter { name, ack, by_class: Default::default() }
    }
}

impl EdgeMeters {
    /// Nothing counted yet, of these routes by their places.
    pub fn new(routes: &[&'static Route]) -> EdgeMeters {
        let known = routes.iter().map(|route| RouteMeter::new(route.name, ack(route)));
        EdgeMeters {
            routes: known.chain([RouteMeter::new("unrouted", None)]).collect(),
            refusals: Code::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            acks: Default::default(),
        }
    }

    /// Counts an answer. `took_us` is asked of orders only.
    pub fn note(&self, place: Option<usize>, status: u16, refused: Option<Code>, took_us: impl FnOnce() -> u64) {
        let meter = &self.routes[place.unwrap_or(self.routes.len() - 1)];
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        meter.by_class[class].fetch_add(1, Relaxed);
        if let Some(code) = refused {
            self.refusals[code as usize].fetch_add(1, Relaxed);
        }
        if let Some(ack) = meter.ack {
            self.acks[ack as usize][usize::from(status >= 400)].note_us(took_us());
        }
    }

    /// Answers by operation and class of status. Only routes that were met have rows.
    pub fn requests(&self) -> Vec<([(&'static str, &'static str); 2], u64)> {
        let mut rows = Vec::new();
        for RouteMeter { name, by_class, .. } in &self.routes {
            let counts = CLASSES.iter().zip(by_class).map(|(class, count)| (class, count.load(Relaxed)));
            let met = counts.filter(|(_, count)| *count > 0);
            rows.extend(met.map(|(class, count)| ([("operation", *name), ("status", *class)], count)));
        }
        rows
    }

    /// Refusals by code. Only codes that were met have rows.
    pub fn refusals(&self) -> Vec<([(&'static str, &'static str); 1], u64)> {
        let counts = Code::ALL.iter().zip(&self.refusals).map(|(code, count)| (code, count.load(Relaxed)));
        let met = counts.filter(|(_, count)| *count > 0);
        met.map(|(code, count)| ([("code", code.text())], count)).collect()
    }

    /// How long placements and cancels took.
    pub fn acks(&self) -> Vec<([(&'static str, &'static str); 2], Counted)> {
        let mut rows = Vec::new();
        for (ack, of_ack) in ["place", "cancel"].into_iter().zip(&self.acks) {
            for (outcome, histogram) in ["accepted", "refused"].into_iter().zip(of_ack) {
                rows.push(([("kind", ack), ("outcome", outcome)], histogram.counted()));
            }
        }
        rows
    }
}

fn ack(route: &Route) -> Option<Ack> {
    if route.rate == RateClass::Placement {
        Some(Ack::Place)
    } else {
        CANCELS.contains(&route.name).then_some(Ack::Cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::route::Permission;

    /// A new route that cancels orders must be timed as the others are.
    #[test]
    fn every_route_that_cancels_is_timed() {
        let routes: Vec<&Route> = crate::groups::tables().iter().flat_map(|table| table.iter()).collect();
        for name in CANCELS {
            assert_eq!(routes.iter().filter(|route| route.name == name).count(), 1, "{name}");
        }
        for route in &routes {
            let cancels = route.name.starts_with("cancel") && route.permission == Some(Permission::Trade);
            let expected = match route.rate {
                RateClass::Placement => Some(Ack::Place),
                _ => cancels.then_some(Ack::Cancel),
            };
            assert_eq!(ack(route), expected, "{}", route.name);
        }
        println!("routes: {} cases", routes.len() + CANCELS.len());
    }

    #[test]
    fn codes_stand_at_their_places() {
        for (place, code) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, place, "{code:?}");
        }
        println!("codes: {} cases", Code::ALL.len());
    }
}
