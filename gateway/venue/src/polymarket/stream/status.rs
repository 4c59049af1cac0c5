//! States of markets that have ended or that users trade: requested from Gamma, and, if Gamma has final prices without
//! a confirmation, from the order book's service (gateway/docs/live-venues.md §2, §2.3).

use crate::live::{Fetch, Subject};
use crate::loose::Loose;
use crate::polymarket::catalogue::is_unconfirmed;
use crate::polymarket::dto;
use std::collections::BTreeSet;
use std::sync::Mutex;
use tokio::sync::Notify;

/// Most conditions in one call: each adds 82 bytes to the URL.
const CONDITIONS_MAX: usize = 50;
/// Most markets of one call for which the order book's service is asked too.
const CONFIRMED_MAX: usize = 10;

/// Conditions of markets whose state is to be requested; each is requested once per turn.
#[derive(Default)]
pub struct StatusQueue {
    pending: Mutex<BTreeSet<String>>,
    added: Notify,
}

impl StatusQueue {
    /// Adds markets.
    pub fn put<'a>(&self, subjects: impl Iterator<Item = &'a Subject>) {
        self.lock().extend(subjects.map(|subject| subject.condition.clone()));
        self.added.notify_one();
    }

    async fn next(&self) -> Vec<String> {
        loop {
            {
                let mut pending = self.lock();
                let some: Vec<String> = pending.iter().take(CONDITIONS_MAX).cloned().collect();
                pending.retain(|condition| !some.contains(condition));
                if !some.is_empty() {
                    return some;
                }
            }
            self.added.notified().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.pending.lock().expect("no thread panics while it holds the lock")
    }
}

/// Runs until the process stops.
pub async fn run(queue: &StatusQueue, markets: &Fetch, clob: &Fetch) {
    loop {
        let mut some = queue.next().await;
        // Closed markets are returned only with `closed=true`.
        for closed in ["", "&closed=true"] {
            let Some(answer) = markets.get(&path(&some, closed)).await else { break };
            for condition in unconfirmed(&answer.body).into_iter().take(CONFIRMED_MAX) {
                clob.get(&format!("/markets/{condition}")).await;
            }
            some.retain(|condition| !answer.body.contains(condition.as_str()));
            if some.is_empty() {
                break;
            }
        }
    }
}

fn path(conditions: &[String], more: &str) -> String {
    let mut path = format!("/markets?limit={CONDITIONS_MAX}{more}");
    for condition in conditions {
        path.push_str("&condition_ids=");
        path.push_str(condition);
    }
    path
}

/// Conditions of closed markets with final prices that are not confirmed.
fn unconfirmed(body: &str) -> Vec<String> {
    let rows = Loose::of(body.trim()).elements().unwrap_or_default();
    let markets = rows.iter().filter_map(|row| row.object::<dto::GammaMarket<'_>>());
    markets.filter(is_unconfirmed).filter_map(|row| row.condition_id.owned()).collect()
}
