//! How markets stand that have ended or that somebody here trades: asked of Gamma, and where that knows the final
//! prices but nothing that confirms them, of the order book's service (upstream.md §2, §2.3).

use crate::live::{Fetch, Subject};
use crate::loose::Loose;
use crate::polymarket::catalogue::is_unconfirmed;
use crate::polymarket::dto;
use std::collections::BTreeSet;
use std::sync::Mutex;
use tokio::sync::Notify;

/// Conditions that one call names: each takes 82 bytes of its address.
const CONDITIONS_MAX: usize = 50;
/// Markets of one call that the order book's service is asked about as well.
const CONFIRMED_MAX: usize = 10;

/// Conditions that are to be asked about. One that is named again before its turn is asked about once.
#[derive(Default)]
pub struct Questions {
    pending: Mutex<BTreeSet<String>>,
    bell: Notify,
}

impl Questions {
    /// Asks about these soon.
    pub fn put<'a>(&self, subjects: impl Iterator<Item = &'a Subject>) {
        self.lock().extend(subjects.map(|subject| subject.condition.clone()));
        self.bell.notify_one();
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
            self.bell.notified().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.pending.lock().expect("nobody panics while holding it")
    }
}

/// Asks for as long as the process lives.
pub async fn run(questions: &Questions, markets: &Fetch, clob: &Fetch) {
    loop {
        let mut some = questions.next().await;
        // Closed markets only show when they are asked for as such.
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

/// Conditions of closed markets whose final prices stand without anything that confirms them.
fn unconfirmed(body: &str) -> Vec<String> {
    let rows = Loose::of(body.trim()).elements().unwrap_or_default();
    let markets = rows.iter().filter_map(|row| row.object::<dto::GammaMarket<'_>>());
    markets.filter(is_unconfirmed).filter_map(|row| row.condition_id.owned()).collect()
}
