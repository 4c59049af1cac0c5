//! The feed of a back-test with a bot: from moment to moment, on one clock (gateway/docs/backtest-bot.md §1).

use super::{Feed, Links, Stopped};
use host::moments::Following;

impl<L: Links> Feed<L> {
    /// Hands out the present moment: all its frames, then its cycle if one is due.
    pub(super) fn hand_out(&mut self) -> Result<(), Stopped> {
        let now = self.desk.clock.now();
        loop {
            self.poll(now)?;
            if self.venue.next_at().is_none_or(|at| at > now) {
                break;
            }
        }
        let passed = std::mem::take(&mut self.desk.passed);
        if let Some(moments) = &self.moments {
            moments.add(passed);
        }
        Ok(())
    }

    /// Waits for the bot, sets the clock to the next moment, and hands that out. Returns without a change if the bot does
    /// not allow it yet.
    pub(super) fn next_moment(&mut self) -> Result<(), Stopped> {
        let following = self.following();
        let next = self.moments.as_ref().and_then(|moments| moments.next(following));
        let Some(at) = next else { return Ok(()) };
        self.desk.clock.set(at);
        self.hand_out()
    }

    /// The next moment: something in the recording, a matching cycle, or the end of a market. `None` after the first
    /// cycle that has seen everything in the recording.
    fn following(&self) -> Option<Following> {
        let now = self.desk.clock.now();
        let in_recording = self.venue.next_at();
        if in_recording.is_none() && self.matched_to >= self.desk.venue_now {
            return None;
        }
        let market_ends = self.desk.markets.next_end().filter(|end| *end > now);
        let all = [(in_recording, "event"), (market_ends, "market_end"), (Some(self.next_cycle), "cycle")];
        let all = all.into_iter().filter_map(|(at, what)| Some(Following { at: at?, what }));
        all.min_by_key(|following| following.at)
    }
}
