//! Wallets that are archived or reset: emptied in pieces, then ended (engine/docs/account.md §4). Each piece is one
//! record of at most [`crate::rules::SWEEP_ORDERS_PER_RECORD_MAX`] orders and positions; the last one includes the end.

use super::{Outbox, Shard};
use crate::command::{Answer, Command};
use crate::decide::wallets::{self, Ending};
use crate::id::{UserId, WalletId};
use crate::reject::Reject;
use crate::view::EmptiedWallet;

/// A wallet being emptied.
pub(super) struct Emptying<R> {
    owner: UserId,
    command: Command,
    /// The decision made before its first piece; `None`: it waits for another wallet of its user.
    judged: Option<(WalletId, Ending)>,
    orders: u64,
    positions: u64,
    reply: R,
}

impl<R> Shard<R> {
    /// Starts to empty the wallet of a command; a long one continues over several turns. Wallets of one user are
    /// emptied one after the other, so the state that a decision was based on does not change: once started, it is
    /// never refused.
    pub(super) fn start_emptying(&mut self, owner: UserId, command: Command, reply: R, outbox: &mut impl Outbox<R>) {
        let emptying = Emptying { owner, command, judged: None, orders: 0, positions: 0, reply };
        if self.emptyings.iter().any(|other| other.owner == owner) {
            return self.emptyings.push_back(emptying);
        }
        self.empty(emptying, outbox);
    }

    /// One piece.
    pub(super) fn empty(&mut self, mut emptying: Emptying<R>, outbox: &mut impl Outbox<R>) {
        let owner = emptying.owner;
        self.note_early(owner, outbox);
        let (wallet, ending) = match emptying.judged.map_or_else(|| self.judged(owner, &emptying.command), continued) {
            Ok((wallet, Some(ending))) => (wallet, ending),
            Ok((wallet, None)) => return self.emptied(emptying, wallet, outbox),
            Err(reject) => return outbox.answer(emptying.reply, Answer::Refused(reject)),
        };
        emptying.judged = Some((wallet, ending));
        let user = self.users.get(owner).expect("decided just now");
        let piece = wallets::empty(user, wallet, ending, self.now, &mut self.facts);
        emptying.orders += piece.orders as u64;
        emptying.positions += piece.positions as u64;
        if !piece.done {
            self.commit(owner, outbox);
            return self.emptyings.push_front(emptying);
        }
        match wallets::end(user, wallet, ending, self.now, &mut self.facts) {
            Ok(wallet) => {
                self.commit(owner, outbox);
                self.emptied(emptying, wallet, outbox);
            }
            Err(reject) => {
                self.facts.clear();
                outbox.answer(emptying.reply, Answer::Refused(reject));
            }
        }
    }

    /// The wallet of a command, and its end; `None`: nothing to do.
    fn judged(&self, owner: UserId, command: &Command) -> Result<(WalletId, Option<Ending>), Reject> {
        let user = self.users.get(owner).ok_or(Reject::UserNotFound)?;
        match command {
            Command::ArchiveWallet { wallet } => Ok((*wallet, wallets::archive(user, *wallet)?)),
            Command::ResetWallet { wallet, .. } => {
                Ok((*wallet, Some(wallets::reset(user, *wallet, &self.rules, self.now)?)))
            }
            Command::ResetApiWallet { .. } => {
                Ok((wallets::reset_api(user, &self.rules, self.now)?, Some(Ending::Restart)))
            }
            other => unreachable!("{other:?} does not empty a wallet"),
        }
    }

    fn emptied(&mut self, emptying: Emptying<R>, wallet: WalletId, outbox: &mut impl Outbox<R>) {
        let known = self.users.get(emptying.owner).and_then(|user| user.wallet(wallet));
        let answer = match known {
            Some(wallet) => Answer::Emptied(Box::new(EmptiedWallet {
                wallet: wallet.clone(),
                orders: emptying.orders,
                positions: emptying.positions,
            })),
            None => Answer::Refused(Reject::WalletNotFound),
        };
        outbox.answer(emptying.reply, answer);
    }
}

/// The earlier decision.
fn continued((wallet, ending): (WalletId, Ending)) -> Result<(WalletId, Option<Ending>), Reject> {
    Ok((wallet, Some(ending)))
}
