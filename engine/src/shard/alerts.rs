//! Alerts of a user: targets and choices, what is owed, and what became of it (gateway/docs/integrations.md). Sending is
//! not part of a shard.

use super::elsewhere::{Asked, Gone, Rest};
use super::{Outbox, Shard, query};
use crate::command::{Answer, Command};
use crate::decide::alerts;
use crate::departed::{Departed, EndedOrder};
use crate::id::UserId;
use crate::reject::Reject;
use crate::user::User;
use crate::user::alerts::{About, AlertKinds, Alerts};
use crate::view::{AboutView, AlertsView, FillView, OwedAlert, TargetView};

impl<R> Shard<R> {
    /// One record, unless nothing changes. The answer is the state after it: the target, all alerts, or what is owed
    /// next.
    pub(super) fn alert_command(&mut self, owner: UserId, command: Command, outbox: &mut impl Outbox<R>) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        let (rules, now, facts) = (&*self.rules, self.now, &mut self.facts);
        let decided = match command {
            Command::AddAlertTarget(new) => alerts::add(user, *new, rules, now, facts).map(After::Target),
            Command::ChangeAlertTarget { channel, target, change } => {
                alerts::change(user, channel, target, change, rules, now, facts).map(|()| After::Target(target))
            }
            Command::RemoveAlertTarget { channel, target } => {
                alerts::remove(user, channel, target, rules, now, facts).map(|()| After::Nothing)
            }
            Command::ChooseMail { on, off } => {
                alerts::choose_mail(user, (on, off), rules, now, facts).map(|()| After::All)
            }
            Command::NoteAlert { target, alert, outcome } => {
                alerts::note(user, target, alert, outcome, rules, now, facts).map(|()| After::Owed(target))
            }
            Command::Notify { text } => alerts::notify(user, text, rules, now, facts).map(After::Notified),
            other => unreachable!("{other:?} is not a command about alerts"),
        };
        let after = match decided {
            Err(reject) => return Answer::Refused(reject),
            Ok(after) => after,
        };
        self.commit(owner, outbox);
        let user = self.users.get(owner).expect("users are never removed");
        match after {
            After::Nothing => Answer::Done,
            After::All => all(user),
            After::Notified(is_owed) => Answer::Notified(is_owed),
            After::Owed(target) => {
                let asked = owed(user, target);
                self.answered(owner, asked)
            }
            After::Target(target) => match user.alerts().and_then(|alerts| alerts.target(target)) {
                Some(target) => Answer::AlertTarget(Box::new(target.clone())),
                None => Answer::Refused(Reject::AlertTargetNotFound),
            },
        }
    }
}

/// The content of an answer to a command about alerts.
enum After {
    Nothing,
    All,
    Target(u32),
    Notified(bool),
    Owed(Option<u32>),
}

/// Everything about a user's alerts, except their contents.
pub(super) fn all(user: &User) -> Answer {
    let alerts = user.alerts();
    let count = |alerts: &Alerts, target| alerts.owed_to(target).count();
    Answer::Alerts(Box::new(AlertsView {
        email: user.email().map(Box::from),
        mail: alerts.map_or(AlertKinds::BY_MAIL, Alerts::mail),
        owed_by_mail: alerts.map_or(0, |alerts| count(alerts, None)),
        targets: alerts.map_or_else(Vec::new, |alerts| {
            let view = |target: &crate::user::AlertTarget| TargetView {
                target: target.clone(),
                owed: count(alerts, Some(target.id)),
            };
            alerts.targets().iter().map(view).collect()
        }),
        dropped: alerts.map_or(0, Alerts::dropped),
    }))
}

/// The alert that is owed next, about an order or position that is not in memory.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    alert: Box<OwedAlert>,
}

/// The oldest alert that is owed to a target, or by mail.
pub(super) fn owed(user: &User, target: Option<u32>) -> Asked {
    let next = user.alerts().and_then(|alerts| {
        let alert = alerts.owed_to(target).next()?;
        Some(OwedAlert {
            alert: alert.clone(),
            about: about(user, &alert.about),
            email: user.email().map(Box::from),
            target: target.and_then(|id| alerts.target(id)).cloned(),
        })
    });
    match next {
        Some(alert) if matches!(alert.about, AboutView::Gone) && may_have_left(user, &alert.alert.about) => {
            Err(Rest::OwedAlert(Owed { alert: Box::new(alert) }).into())
        }
        next => Ok(Answer::OwedAlert(next.map(Box::new))),
    }
}

impl Owed {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Owed { mut alert } = self;
        alert.about = about_departed(&alert.alert.about, departed)?.unwrap_or(AboutView::Gone);
        Ok(Answer::OwedAlert(Some(alert)))
    }
}

/// The object of an alert that has left memory.
pub(super) fn about_departed<D: Departed>(about: &About, departed: &D) -> Result<Option<AboutView>, D::Error> {
    Ok(match *about {
        About::Order(id) => departed.order(id)?.map(|ended| AboutView::Order(Box::new(ended.order))),
        About::Fill { order, trade } => departed.order(order)?.and_then(|EndedOrder { order, fills }| {
            let fill = fills.into_iter().find(|fill| fill.id == trade)?;
            Some(AboutView::Fill(Box::new(FillView { fill, order })))
        }),
        About::Position(id) => departed.position(id)?.map(|position| AboutView::Position(Box::new(position))),
        _ => None,
    })
}

/// Whether the object of an alert may have left memory.
pub(super) fn may_have_left(user: &User, about: &About) -> bool {
    let gone = Gone::of(user);
    match *about {
        About::Order(id) | About::Fill { order: id, .. } => gone.may_be_order(id),
        About::Position(id) => gone.positions.is_some_and(|highest| id <= highest),
        _ => false,
    }
}

/// The objects of an alert as they are now. Those of orders and positions do not change after the alert, except that an
/// order may be filled further.
pub(super) fn about(user: &User, about: &About) -> AboutView {
    let key = |id| user.key(id).map(|key| query::key_view(user, key));
    let found = match *about {
        About::Order(id) => user.order(id).map(|order| AboutView::Order(Box::new(order.clone()))),
        About::Fill { order, trade } => user.order(order).and_then(|order| {
            let fill = user.fills_of(order).iter().find(|fill| fill.id == trade)?.clone();
            Some(AboutView::Fill(Box::new(FillView { fill, order: order.clone() })))
        }),
        About::Position(id) => user.position(id).map(|held| AboutView::Position(Box::new(held.clone()))),
        About::Market(market) => Some(AboutView::Market(market)),
        About::DailyLimit { limit, resets_at } => Some(AboutView::DailyLimit { limit, resets_at }),
        About::Balance { wallet, available, baseline } => Some(AboutView::Balance { wallet, available, baseline }),
        About::Key(id) => key(id).map(|key| AboutView::Key(Box::new(key))),
        About::Rotation { old, new } => key(new).map(|key| AboutView::Rotation { old, new: Box::new(key) }),
        About::Notice(ref text) => Some(AboutView::Notice(text.as_str().into())),
        About::Backtest(job) => Some(AboutView::Backtest { id: job, job: user.backtest(job).cloned().map(Box::new) }),
    };
    found.unwrap_or(AboutView::Gone)
}
