//! What Polymarket's services state about the fees of a market (gateway/docs/live-venues.md §2.1, §2.2, §3.2). The first of
//! these counts: the order book's service, the catalogue, the message that announced the market.

use super::dto;
use super::translate::Translate;
use crate::FeedUpdate;
use crate::fees::Statement;
use crate::loose::Loose;
use crate::skips::Skip;
use engine::market::terms::FeeSchedule;
use wincode::{SchemaRead, SchemaWrite};

/// The newest statement of each source about one market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub(super) struct Fees {
    clob: Statement,
    catalogue: Statement,
    message: Statement,
    /// What the feed was given.
    given: Statement,
}

/// Where a statement comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Clob,
    Catalogue,
    Message,
}

impl Fees {
    fn note(&mut self, from: Source, statement: Statement) {
        let known = match from {
            Source::Clob => &mut self.clob,
            Source::Catalogue => &mut self.catalogue,
            Source::Message => &mut self.message,
        };
        // A shorter row of the same source does not take back what a longer one said.
        *known = statement.or(*known);
    }

    /// What counts. The order book's service does not state rebates.
    fn effective(&self) -> Statement {
        let other = self.catalogue.or(self.message);
        match (self.clob, other) {
            (Statement::Is(clob), Statement::Is(FeeSchedule { rebate_rate, .. })) => {
                Statement::Is(FeeSchedule { rebate_rate, ..clob })
            }
            (clob, other) => clob.or(other),
        }
    }
}

/// The fees in a row of the catalogue.
pub(super) fn of_row(row: &dto::GammaMarket<'_>) -> Statement {
    stated(row.fees_enabled, row.fee_schedule)
}

/// The fees in a `new_market` message.
pub(super) fn of_message(message: &dto::Message<'_>) -> Statement {
    stated(message.fees_enabled, message.fee_schedule)
}

fn stated(enabled: Loose<'_>, schedule: Loose<'_>) -> Statement {
    if enabled.flag() == Some(false) {
        return Statement::Is(FeeSchedule::FREE);
    }
    if schedule.is_absent() {
        return Statement::Nothing;
    }
    let Some(fields) = schedule.object::<dto::FeeSchedule<'_>>() else { return Statement::Unusable };
    Statement::of(fields.rate, fields.exponent, fields.taker_only, fields.rebate_rate)
}

/// The fees in a response about one market of the order book's service.
fn of_clob(fields: Loose<'_>) -> Statement {
    if fields.is_absent() {
        return Statement::Nothing;
    }
    let Some(fields) = fields.object::<dto::ClobFees<'_>>() else { return Statement::Unusable };
    Statement::of(fields.r, fields.e, fields.to, Loose::default())
}

impl Translate {
    /// The fees of a listed market in a response of the order book's service that has nothing else of use.
    pub(super) fn clob_fees(&mut self, row: &dto::ClobTerms<'_>, updates: &mut Vec<FeedUpdate>) {
        let condition = row.c.text().unwrap_or_default().to_ascii_lowercase();
        match self.by_condition.get(&condition) {
            Some(&number) => self.state_fees(number, Source::Clob, of_clob(row.fd), updates),
            None => self.skips.count(Skip::Unlisted, || format!("market {condition}")),
        }
    }

    /// Notes a statement; an update has what has changed.
    pub(super) fn state_fees(
        &mut self,
        number: usize,
        from: Source,
        statement: Statement,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let market = &mut self.markets[number];
        if statement == Statement::Unusable {
            self.skips.count(Skip::UnusableFees, || format!("market {}", market.condition));
        }
        market.fees.note(from, statement);
        let effective = market.fees.effective();
        if effective != market.fees.given
            && market.resolved.is_none()
            && let Some(schedule) = effective.schedule()
        {
            market.fees.given = effective;
            updates.push(FeedUpdate::Fees { condition: market.condition.clone(), schedule });
        }
    }
}
