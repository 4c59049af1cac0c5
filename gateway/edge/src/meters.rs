//! Counters of the edge for a monitor: requests by route and status, refusals by code, and the latency of placements
//! and cancels. An operation of a WebSocket counts as the same request over HTTP.

use crate::http::code::Code;
use crate::http::route::{RateClass, Route};
use host::histogram::{Counted, Micros};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Routes that cancel orders. Routes that place orders are those of [`RateClass::Placement`].
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

/// Counters of the edge. They exist only while metrics are on.
#[derive(Debug)]
pub struct EdgeMeters {
    /// By index of the route; the last one counts requests without a route.
    routes: Box<[RouteMeter]>,
    /// By index in [`Code::ALL`].
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
    /// Counters at zero for these routes, by index.
    pub fn new(routes: &[&'static Route]) -> EdgeMeters {
        let known = routes.iter().map(|route| RouteMeter::new(route.name, ack(route)));
        EdgeMeters {
            routes: known.chain([RouteMeter::new("unrouted", None)]).collect(),
            refusals: Code::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            acks: Default::default(),
        }
    }

    /// Counts a response. `took_us` is called only for orders.
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

    /// Responses by operation and class of status, without rows of zero.
    pub fn requests(&self) -> Vec<([(&'static str, &'static str); 2], u64)> {
        let mut rows = Vec::new();
        for RouteMeter { name, by_class, .. } in &self.routes {
            let counts = CLASSES.iter().zip(by_class).map(|(class, count)| (class, count.load(Relaxed)));
            let met = counts.filter(|(_, count)| *count > 0);
            rows.extend(met.map(|(class, count)| ([("operation", *name), ("status", *class)], count)));
        }
        rows
    }

    /// Refusals by code, without rows of zero.
    pub fn refusals(&self) -> Vec<([(&'static str, &'static str); 1], u64)> {
        let counts = Code::ALL.iter().zip(&self.refusals).map(|(code, count)| (code, count.load(Relaxed)));
        let met = counts.filter(|(_, count)| *count > 0);
        met.map(|(code, count)| ([("code", code.text())], count)).collect()
    }

    /// Latency of placements and cancels.
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

    /// A route that cancels orders must be in [`CANCELS`], or its latency is not measured.
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
    fn codes_have_their_index() {
        for (place, code) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, place, "{code:?}");
        }
        println!("codes: {} cases", Code::ALL.len());
    }
}
