use crate::venue::FeedUpdate;
use crate::venue::skips::Skips;
use engine::time::Timestamp;
use std::sync::Arc;
pub struct Translate {}
impl Translate {
    pub fn new(_: Arc<Skips>) -> Translate {
        Translate {}
    }
    pub fn frame(&mut self, _text: &str, _connection: u8, _received: Timestamp, _updates: &mut Vec<FeedUpdate>) {}
    pub fn gap(&mut self, _connection: u8, _reason: &str, _updates: &mut Vec<FeedUpdate>) {}
    pub fn rest(
        &mut self,
        _url: &str,
        _status: u16,
        _body: &str,
        _received: Timestamp,
        _updates: &mut Vec<FeedUpdate>,
    ) {
    }
}
