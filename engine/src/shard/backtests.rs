//! Back-tests of a user: created within the plan, started, ended (gateway/docs/simulation.md §6). Running them is not
//! part of a shard.

use super::{Outbox, Shard};
use crate::command::{Answer, BacktestResult, NewBacktest};
use crate::decide::backtests;
use crate::id::UserId;
use crate::reject::Reject;
use crate::time::Timestamp;
use crate::user::User;

impl<R> Shard<R> {
    /// One record for a new back-test; the earlier one of the same request is answered without a record.
    pub(super) fn create_backtest(&mut self, owner: UserId, new: NewBacktest, outbox: &mut impl Outbox<R>) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        match backtests::replay(user, &new, self.now) {
            Err(reject) => return Answer::Refused(reject),
            Ok(Some(known)) => return Answer::Backtest { job: Box::new(known.clone()), is_replay: true },
            Ok(None) => {}
        }
        let job = new.id;
        let created = backtests::create(user, new, &self.rules, self.now, &mut self.facts);
        self.note_backtest(owner, job, created, outbox)
    }

    pub(super) fn start_backtest(&mut self, owner: UserId, job: [u8; 16], outbox: &mut impl Outbox<R>) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        let started = backtests::start(user, job, &self.rules, self.now, &mut self.facts);
        self.note_backtest(owner, job, started, outbox)
    }

    /// An ended back-test stays as it is: its answer is that of its end.
    pub(super) fn end_backtest(
        &mut self,
        owner: UserId,
        job: [u8; 16],
        result: BacktestResult,
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        let ended = match backtests::end(user, job, result, &self.rules, self.now, &mut self.facts) {
            Err(Reject::BacktestOver) => Ok(()),
            ended => ended,
        };
        self.note_backtest(owner, job, ended, outbox)
    }

    fn note_backtest(
        &mut self,
        owner: UserId,
        job: [u8; 16],
        decided: Result<(), Reject>,
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        if let Err(reject) = decided {
            return Answer::Refused(reject);
        }
        self.commit(owner, outbox);
        self.users.get(owner).map_or(Answer::Refused(Reject::UserNotFound), |user| one(user, job, self.now))
    }
}

/// One back-test that is kept.
pub(super) fn one(user: &User, job: [u8; 16], now: Timestamp) -> Answer {
    match user.backtest(job).filter(|job| job.is_kept(now)) {
        Some(job) => Answer::Backtest { job: Box::new(job.clone()), is_replay: false },
        None => Answer::Refused(Reject::BacktestNotFound),
    }
}

/// The back-test of the latest request with this id, of those that are kept.
pub(super) fn by_request(user: &User, request: &str, now: Timestamp) -> Answer {
    let is_it = |job: &&crate::user::Backtest| job.request.as_deref() == Some(request);
    match user.backtests_kept(now).rev().find(is_it) {
        Some(job) => Answer::Backtest { job: Box::new(job.clone()), is_replay: true },
        None => Answer::Refused(Reject::BacktestNotFound),
    }
}

/// A page of those that are kept, newest first; after a back-test that is not kept any more, there is none.
pub(super) fn page(user: &User, before: Option<[u8; 16]>, limit: usize, now: Timestamp) -> Answer {
    let jobs: Vec<_> = user.backtests_kept(now).collect();
    let end = match before {
        None => jobs.len(),
        Some(before) => jobs.iter().position(|job| job.id == before).unwrap_or(0),
    };
    let begin = end.saturating_sub(limit);
    let newest_first = jobs[begin..end].iter().rev();
    Answer::Backtests { jobs: newest_first.map(|job| (*job).clone()).collect(), has_more: begin > 0 }
}
