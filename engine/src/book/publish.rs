//! Makes released facts about markets visible in the catalogue and the books.

use crate::book::BookWriter;
use crate::fact;
use crate::id::MarketId;
use crate::market::Markets;
use crate::market::catalog::Catalog;
use crate::market::mutation::MarketMutation;

/// Applies a released fact to the read sides. One caller, in log order.
pub fn publish(fact: &MarketMutation, catalog: &Catalog, books: &mut BookWriter) {
    catalog.publish(fact);
    match fact {
        MarketMutation::MarketListed(fact::MarketListed { market, listing, .. }) => books.tick(*market, listing.tick),
        MarketMutation::TickChanged(fact::TickChanged { market, tick, .. }) => books.tick(*market, *tick),
        _ => {}
    }
}

/// Fills empty read sides with all markets, at boot.
pub fn publish_all(markets: &Markets, catalog: &Catalog, books: &mut BookWriter) {
    for (index, market) in markets.iter().enumerate() {
        let id = MarketId(index as u32);
        catalog.add(id, market, markets.fee_schedule(id));
        books.tick(id, market.tick);
    }
}
