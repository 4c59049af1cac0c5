//! Markets that an earlier run listed: known before the venue says a word, so that its sockets can be understood while
//! its catalogue cannot be read.

use super::listing::{Tick, is_known};
use super::standing::Standing;
use super::translate::Translate;
use engine::market::Market;
use engine::market::terms::MarketState;

impl Translate {
    /// Takes in a market as the journal knows it. What the venue then says of it is a change, or no news.
    pub fn recall(&mut self, market: &Market) {
        let tick = if is_known(market.tick) { Tick::Known(market.tick) } else { Tick::Unknown(market.tick) };
        let open_state = match market.state {
            MarketState::Closed | MarketState::Resolved => MarketState::Halted,
            open => open,
        };
        // It is listed already: nobody needs to be told.
        let listed = self.list(market.listing.clone(), tick, open_state, Standing::default(), &mut Vec::new());
        if let Some(number) = listed {
            let known = &mut self.markets[number];
            (known.tick, known.end, known.state) = (market.tick, market.end, market.state);
        }
    }
}
