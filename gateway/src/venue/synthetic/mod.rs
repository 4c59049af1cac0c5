use super::{Frame, Polled, Venue};
use engine::time::Timestamp;
pub struct Synthetic {}
impl Synthetic { pub fn new(_seed: u64, _now: Timestamp) -> Self { Synthetic {} } }
impl Venue for Synthetic {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, _frame: &mut dyn FnMut(Frame<'_>)) -> Polled { Polled { venue_now: server_now.min(until), wake_at: None } }
    fn drives_clock(&self) -> bool { false }
    fn describe(&self) -> String { String::new() }
}
