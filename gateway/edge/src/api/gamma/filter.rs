//! Which markets and events a list shows, and in which order.

use crate::api::markets::view::{Phase, number as market_number};
use crate::http::reply::Refusal;
use engine::id::MarketId;
use engine::market::catalog::{Catalog, MarketCell};
use engine::market::terms::MarketState;
use engine::time::Timestamp;
use wire::decimal::Decimal;
use wire::fields::Params;
use wire::instant;
use wire::query::Query;

/// Rows of a page of markets.
pub const MARKETS_MAX: u64 = 500;
/// Events of a page: each shows all of its markets.
pub const EVENTS_MAX: u64 = 100;
pub const LIMIT_DEFAULT: u64 = 20;
/// Values of one repeated parameter.
pub const VALUES_MAX: usize = 100;
/// Names by which one list is sorted.
const ORDERS_MAX: usize = 4;

/// A field that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Volume24h,
    Volume,
    Liquidity,
    Start,
    End,
    Id,
    /// When the market was listed here.
    Created,
}

pub const ORDERS: [(&str, Order); 15] = [
    ("volume24hr", Order::Volume24h),
    ("volume_24hr", Order::Volume24h),
    ("volume24hrClob", Order::Volume24h),
    ("volume", Order::Volume),
    ("volumeNum", Order::Volume),
    ("volume_num", Order::Volume),
    ("liquidity", Order::Liquidity),
    ("liquidityNum", Order::Liquidity),
    ("liquidity_num", Order::Liquidity),
    ("startDate", Order::Start),
    ("start_date", Order::Start),
    ("endDate", Order::End),
    ("end_date", Order::End),
    ("id", Order::Id),
    ("createdAt", Order::Created),
];

/// Bounds of a figure, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds<T> {
    min: Option<T>,
    max: Option<T>,
}

impl<T: PartialOrd + Copy> Bounds<T> {
    /// Whether a figure is within the bounds. An unknown figure is outside of all bounds.
    fn contain(self, value: Option<T>) -> bool {
        match value {
            Some(value) => self.min.is_none_or(|min| min <= value) && self.max.is_none_or(|max| value <= max),
            None => self.min.is_none() && self.max.is_none(),
        }
    }
}

/// The parameters of a list of markets or of events.
#[derive(Debug)]
pub struct ListFilter<'a> {
    pub ids: Vec<&'a str>,
    pub slugs: Vec<&'a str>,
    conditions: Vec<&'a str>,
    tokens: Vec<&'a str>,
    active: Option<bool>,
    closed: Option<bool>,
    archived: Option<bool>,
    volume: Bounds<u64>,
    liquidity: Bounds<u64>,
    start: Bounds<Timestamp>,
    end: Bounds<Timestamp>,
    /// `tag_id`, which may be unknown.
    pub tag_id: Option<&'a str>,
    pub tag_slug: Option<&'a str>,
    orders: Vec<Order>,
    ascending: bool,
    pub limit: usize,
    pub offset: usize,
}

impl<'a> ListFilter<'a> {
    /// Reads the query of a list whose pages have at most `limit_max` rows.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn read(query: &'a Query<'_>, limit_max: u64) -> Result<ListFilter<'a>, Refusal> {
        let mut params = Params::new(query);
        let filter = ListFilter {
            ids: values(query, &mut params, "id"),
            slugs: values(query, &mut params, "slug"),
            conditions: values(query, &mut params, "condition_ids"),
            tokens: values(query, &mut params, "clob_token_ids"),
            active: params.boolean("active"),
            closed: params.boolean("closed"),
            archived: params.boolean("archived"),
            volume: figures(query, &mut params, "volume_num_min", "volume_num_max"),
            liquidity: figures(query, &mut params, "liquidity_num_min", "liquidity_num_max"),
            start: moments(query, &mut params, "start_date_min", "start_date_max"),
            end: moments(query, &mut params, "end_date_min", "end_date_max"),
            tag_id: query.get("tag_id"),
            tag_slug: query.get("tag_slug"),
            orders: orders(query, &mut params),
            ascending: params.boolean("ascending").unwrap_or(true),
            limit: params.integer("limit", 1..=limit_max).unwrap_or(LIMIT_DEFAULT.min(limit_max)) as usize,
            offset: params.offset(),
        };
        match params.problems.is_empty() {
            true => Ok(filter),
            false => Err(Refusal::validation(&params.problems)),
        }
    }

    /// The markets to examine: those that the request names, else all, in the order of listing.
    pub fn candidates(&self, catalog: &Catalog) -> Vec<MarketId> {
        let mut named: Vec<MarketId> = if !self.conditions.is_empty() {
            self.conditions.iter().filter_map(|condition| catalog.by_condition(condition)).collect()
        } else if !self.tokens.is_empty() {
            self.tokens.iter().filter_map(|token| Some(catalog.by_token(token)?.market())).collect()
        } else if !self.slugs.is_empty() {
            self.slugs.iter().filter_map(|slug| catalog.by_slug(slug)).collect()
        } else {
            return (0..catalog.len()).map(|at| MarketId(at as u32)).collect();
        };
        named.sort_unstable_by_key(|market| market.0);
        named.dedup();
        named
    }

    /// Whether the list shows this market: in any state if the request names it, else while it is open, unless `closed`
    /// is given. Does not consider the tag.
    pub fn shows(&self, cell: &MarketCell, now: Timestamp) -> bool {
        let (listing, phase) = (&cell.listing, Phase::of(cell, now));
        let named = [&self.ids, &self.slugs, &self.conditions, &self.tokens].iter().any(|names| !names.is_empty());
        let is = |names: &[&str], text: &str| names.is_empty() || names.contains(&text);
        let is_id = || self.ids.is_empty() || self.ids.contains(&market_number(listing).to_string().as_str());
        let figures = cell.figures();
        self.shows_state(named, was_active(cell), phase.closed, phase.archived_at.is_some())
            && is(&self.slugs, &listing.slug)
            && is(&self.conditions, &listing.condition)
            && (self.tokens.is_empty() || listing.tokens.iter().any(|token| self.tokens.contains(&token.as_str())))
            && self.volume.contain(figures.volume_total)
            && self.liquidity.contain(figures.liquidity)
            && self.start.contain(listing.start)
            && self.end.contain(cell.end())
            && is_id()
    }

    /// Whether the list shows a market or event in this state; `named`: the request names it.
    pub fn shows_state(&self, named: bool, active: bool, closed: bool, archived: bool) -> bool {
        let closed_too = named || self.archived == Some(true);
        self.active.is_none_or(|wanted| wanted == active)
            && self.archived.is_none_or(|wanted| wanted == archived)
            && self.closed.map_or(closed_too || !closed, |wanted| wanted == closed)
    }

    /// Whether the list shows an event between these times.
    pub fn contains_dates(&self, start: Option<Timestamp>, end: Option<Timestamp>) -> bool {
        self.start.contain(start) && self.end.contain(end)
    }

    /// Whether the request has an order.
    pub fn is_ordered(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Sorts rows by the order of the request; the sort is stable.
    pub fn sort<T>(&self, rows: Vec<T>, key: impl Fn(&T, Order) -> u64) -> Vec<T> {
        if self.orders.is_empty() {
            return rows;
        }
        let keyed = rows.into_iter().map(|row| {
            let keys: Vec<u64> = self.orders.iter().map(|order| key(&row, *order)).collect();
            (keys, row)
        });
        let mut keyed: Vec<(Vec<u64>, T)> = keyed.collect();
        keyed.sort_by(|(one, _), (other, _)| if self.ascending { one.cmp(other) } else { other.cmp(one) });
        keyed.into_iter().map(|(_, row)| row).collect()
    }
}

/// The sort key of a market; an unknown figure counts as 0.
pub fn market_key(cell: &MarketCell, order: Order) -> u64 {
    match order {
        Order::Volume24h => cell.figures().volume_24h.unwrap_or_default(),
        Order::Volume => cell.figures().volume_total.unwrap_or_default(),
        Order::Liquidity => cell.figures().liquidity.unwrap_or_default(),
        Order::Start => cell.listing.start.map_or(0, |at| at.0),
        Order::End => cell.end().map_or(0, |at| at.0),
        Order::Id => market_number(&cell.listing),
        Order::Created => cell.listed_at.0,
    }
}

/// The venue's `active`: true from the opening on, also after the close.
pub fn was_active(cell: &MarketCell) -> bool {
    cell.state() != MarketState::Upcoming
}

/// The values of a parameter that may be repeated or hold commas.
pub fn values<'a>(query: &'a Query<'_>, params: &mut Params<'_>, name: &'static str) -> Vec<&'a str> {
    let mut values: Vec<&str> =
        query.all(name).flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty()).collect();
    if values.len() > VALUES_MAX {
        params.problems.add("query", name, "too_long", format!("has more than {VALUES_MAX} values"));
        values.clear();
    }
    values
}

fn orders(query: &Query<'_>, params: &mut Params<'_>) -> Vec<Order> {
    let words = query.get("order").unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
    let mut orders = Vec::new();
    for word in words {
        match ORDERS.iter().find(|(name, _)| *name == word) {
            Some((_, order)) if orders.len() < ORDERS_MAX => orders.push(*order),
            Some(_) => {
                params.problems.add("query", "order", "too_long", format!("has more than {ORDERS_MAX} names"));
                break;
            }
            None => {
                params.problems.add("query", "order", "literal_error", "names no field that lists are sorted by");
                break;
            }
        }
    }
    orders
}

fn figures(query: &Query<'_>, params: &mut Params<'_>, min: &str, max: &str) -> Bounds<u64> {
    let mut read = |name: &str| {
        let text = query.get(name)?;
        let figure = Decimal::parse(text).ok().and_then(Decimal::cash_down);
        if figure.is_none() {
            params.problems.add("query", name, "decimal_parsing", "is not a plain decimal");
        }
        // No figure is below 0.
        figure.map(|figure| figure.0.max(0).unsigned_abs())
    };
    Bounds { min: read(min), max: read(max) }
}

fn moments(query: &Query<'_>, params: &mut Params<'_>, min: &str, max: &str) -> Bounds<Timestamp> {
    let mut read = |name: &str, reader: fn(&str) -> Option<Timestamp>| {
        let text = query.get(name)?;
        let at = reader(text);
        if at.is_none() {
            params.problems.add("query", name, "datetime_parsing", "is not a time");
        }
        at
    };
    Bounds { min: read(min, instant::read), max: read(max, instant::read_end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_with_their_bounds() {
        let read = |text: &str| {
            let query = Query::read(text);
            ListFilter::read(&query, MARKETS_MAX)
                .map(|filter| (filter.limit, filter.offset, filter.conditions.len(), filter.orders.len()))
                .map_err(|refusal| refusal.message().to_owned())
        };
        let many = vec!["0x1"; VALUES_MAX + 1].join(",");
        let cases = [
            ("", Ok((20, 0, 0, 0))),
            ("limit=500&offset=7", Ok((500, 7, 0, 0))),
            ("condition_ids=0x1&condition_ids=0x2,0x3&condition_ids=", Ok((20, 0, 3, 0))),
            ("order=volume24hr,id&ascending=false&active=true&closed=0", Ok((20, 0, 0, 2))),
            ("volume_num_min=1.5&end_date_max=2026-10-04&start_date_min=2026-10-04T00:00:00Z", Ok((20, 0, 0, 0))),
            ("unknown=x", Ok((20, 0, 0, 0))),
            ("limit=0", Err("limit: is below 1")),
            ("limit=501", Err("limit: is above 500")),
            ("offset=-1", Err("offset: is below 0")),
            ("active=yes", Err("active: must be one of true, false, 1, 0")),
            ("closed=", Err("closed: must be one of true, false, 1, 0")),
            ("order=drop table", Err("order: names no field that lists are sorted by")),
            ("order=id,id,id,id,id", Err("order: has more than 4 names")),
            ("volume_num_min=NaN", Err("volume_num_min: is not a plain decimal")),
            ("end_date_min=soon", Err("end_date_min: is not a time")),
            (&format!("condition_ids={many}"), Err("condition_ids: has more than 100 values")),
        ];
        for (query, expected) in &cases {
            assert_eq!(read(query), expected.map_err(str::to_owned), "{query}");
        }
        println!("market queries: {} cases", cases.len());
    }
}
