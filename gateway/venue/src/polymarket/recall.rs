//! Markets of an earlier run, added before the venue sends anything, so that its sockets can be translated while its
//! catalogue cannot be read.

use super::listing::{Tick, is_known};
use super::standing::Standing;
use super::translate::Translate;
use engine::market::Market;
use engine::market::terms::MarketState;

impl Translate {
    /// Adds a market of the journal. Later rows and messages of the venue are changes of it.
    pub fn recall(&mut self, market: &Market) {
        let tick = if is_known(market.tick) { Tick::Known(market.tick) } else { Tick::Unknown(market.tick) };
        let open_state = match market.state {
            MarketState::Closed | MarketState::Resolved => MarketState::Halted,
            open => open,
        };
        // The market is listed already, so that no update is needed.
        let listed = self.list(market.listing.clone(), tick, open_state, Standing::default(), &mut Vec::new());
        if let Some(number) = listed {
            let known = &mut self.markets[number];
            (known.tick, known.end, known.state) = (market.tick, market.end, market.state);
        }
    }
}
