//! The figures of the journal and the feed that the edge reads.

use crate::jobs::archive::Figures;
use crate::listeners::CommitFigures;
use crate::metrics::history::EndedFigures;
use crate::uptime::Measurements;
use ::football::folder::Almanac;
use ::integrations::figures::Figures as AlertFigures;
use edge::api::health::{self, Vitals};
use engine::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use venue::Upstream;
use venue::feed::FeedFigures;

/// Sources of the figures.
#[derive(Clone)]
pub struct Instruments {
    pub commit: Arc<CommitFigures>,
    pub feed: Arc<FeedFigures>,
    /// State of the live venues.
    pub upstream: Upstream,
    /// Of the job that keeps the archive, if there is one.
    pub archive: Option<Arc<Figures>>,
    /// Facts of football, if there is a provider.
    pub football: Option<Arc<Almanac>>,
    /// The uptime, if it is measured.
    pub measurements: Option<Arc<Measurements>>,
    /// Of the job that delivers alerts.
    pub alerts: Arc<AlertFigures>,
    /// Of rows that have ended.
    pub ended: Option<EndedFigures>,
}

impl health::Instruments for Instruments {
    fn vitals(&self) -> Vitals {
        let number = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let number_of = |figure: &AtomicU32| u64::from(figure.load(Ordering::Relaxed));
        // 0 means "never yet".
        let moment = |figure: &AtomicU64| Some(Timestamp(number(figure))).filter(|at| at.0 > 0);
        Vitals {
            last_commit_at: moment(&self.commit.last_commit_at),
            last_message_at: moment(&self.feed.last_frame_at),
            last_cycle_at: moment(&self.feed.last_cycle_at),
            last_cycle_us: number(&self.feed.last_cycle_us),
            pending_orders: number(&self.feed.pending_orders),
            ended_full: self.ended.as_ref().is_some_and(|ended| ended.bound.is_full()),
            connections: 0,
            upstream_connections: self.upstream.venues.iter().map(|(_, health)| number_of(&health.connections)).sum(),
            subscribed_tokens: match self.upstream.venues.as_slice() {
                [] => None,
                venues => Some(venues.iter().map(|(_, health)| number(&health.subscribed_tokens)).sum()),
            },
        }
    }

    fn recording(&self) -> Option<health::Playback> {
        let playback = self.upstream.playback.as_ref()?;
        let speed = playback.speed.map(|speed| match speed {
            venue::Speed::Max => "max".to_owned(),
            speed => speed.to_string(),
        });
        Some(health::Playback { at: playback.at(), has_ended: playback.has_ended(), speed })
    }
}
