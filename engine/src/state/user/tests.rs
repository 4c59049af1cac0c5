use super::ledger::{self, Account};
use super::sample::{ModelUser, Sample};
use super::*;
use crate::amount::{Cash, Qty};
use crate::fact;
use crate::mutation::Mutation;
use crate::order::Side;
use std::collections::BTreeMap;

/// Compares a user with its model.
fn compare(user: &User, model: &ModelUser) {
    for wallet in &user.wallets {
        assert_eq!(wallet.cash.0, model.cash[&wallet.id], "cash of wallet {}", wallet.id);
        assert_eq!(wallet.reserved.0, model.reserved_cash(wallet.id), "reserved cash of wallet {}", wallet.id);
        let shown = (wallet.baseline.0, wallet.is_active(), wallet.label());
        let known = (model.baseline[&wallet.id], !model.archived.contains(&wallet.id), &model.labels[&wallet.id]);
        assert_eq!(shown, (known.0, known.1, known.2.as_deref()), "wallet {}", wallet.id);
        let points = user.equity(wallet.id).into_iter().flat_map(|equity| equity.points());
        let points: Vec<_> = points.map(|point| (point.hour, point.cash.0, point.value.0, point.baseline.0)).collect();
        assert_eq!(points, model.equity.get(&wallet.id).cloned().unwrap_or_default(), "wallet {}", wallet.id);
    }
    assert_eq!(user.wallets.len(), model.cash.len());
    assert_eq!(user.orders().len(), model.orders.len());
    for (order, (id, known)) in user.orders().iter().zip(&model.orders) {
        assert_eq!((order.id, order.filled.0, order.is_open()), (*id, known.filled, known.rests));
        let reserved = match known.side {
            Side::Buy => order.reserved_cash().0 as u64,
            Side::Sell => order.reserved_qty().0,
        };
        assert_eq!((reserved, order.awaiting_book), (known.reserved, known.awaiting && known.rests), "order {id}");
    }
    assert_eq!(user.positions().len(), model.positions.len());
    for position in user.positions() {
        let known = &model.positions[&position.id];
        let expected = (Qty(known.qty), Cash(known.cost), Cash(known.realized), known.open);
        assert_eq!((position.qty, position.cost, position.realized, position.is_open()), expected);
        let reserved = if known.open { model.reserved_qty(known.wallet, known.instrument) } else { 0 };
        assert_eq!(position.reserved.0, reserved, "reserved shares of position {}", position.id);
        let open = user.open_position(position.wallet, position.instrument).map(|open| open.id);
        assert_eq!(open == Some(position.id), known.open);
    }
    let (open, known) = (user.open_orders().map(|order| order.id), model.orders.iter());
    assert!(open.eq(known.filter(|(_, order)| order.rests).map(|(id, _)| *id)), "open orders in id order");
    assert_eq!((user.fills().len() as u64, user.order_facts), (model.fills, model.facts));
    for (id, order) in &model.remembered {
        assert_eq!(user.remembered(id, Timestamp(0)).map(|row| row.order), Some(*order), "{id:?}");
    }
    assert_eq!(user.remembered("never sent", Timestamp(0)), None);
    let armed: BTreeMap<String, u32> =
        user.safeguards().iter().map(|armed| (armed.label.to_string(), armed.interval_ms)).collect();
    assert_eq!(armed, model.armed);
}

#[test]
fn random_histories_agree_with_a_slow_model() {
    let (mut facts_count, mut records_count) = (0, 0);
    for seed in 0..20 {
        println!("seed {seed}");
        let mut sample = Sample::new(seed, 12, 14).extending(seed % 2 == 1);
        let mut users = Users::default();
        for step in 0..2_000 {
            let (owner, facts) = sample.record();
            for fact in &facts {
                users.apply(owner, fact);
            }
            facts_count += facts.len();
            records_count += 1;
            compare(users.get(owner).expect("it has a fact"), &sample.users[&owner]);
            if step % 200 == 0 {
                users.check_all().expect("every invariant is kept");
            }
        }
        users.check_all().expect("every invariant is kept");
        for user in users.iter() {
            compare(user, &sample.users[&user.id]);
        }
        let lapses = users.lapsed(Timestamp(u64::MAX)).count();
        assert_eq!(lapses, sample.users.values().map(|user| user.armed.len()).sum::<usize>());
    }
    println!("{facts_count} facts in {records_count} records");
    assert!(facts_count > 50_000);
}

/// The postings that a fact will make, and their wallet.
fn postings(users: &Users, owner: UserId, fact: &Mutation) -> Option<(WalletId, Vec<ledger::Posting>)> {
    let order = |id: &OrderId| users.get(owner).and_then(|user| user.order(*id));
    Some(match fact {
        Mutation::WalletOpened(fact::WalletOpened { wallet, baseline, .. }) => {
            (*wallet, ledger::opening(*baseline).to_vec())
        }
        // A new order has no reservation yet, and facts of one record may come before it exists.
        Mutation::OrderRested(fact::OrderRested { order: id, reserved_cash, .. }) => {
            let before = order(id)?;
            (before.terms.wallet, ledger::reservation(before.reserved_cash(), *reserved_cash).to_vec())
        }
        Mutation::OrderClosed(fact::OrderClosed { order: id, .. }) => {
            let before = order(id)?;
            (before.terms.wallet, ledger::reservation(before.reserved_cash(), Cash::ZERO).to_vec())
        }
        Mutation::OrderFilled(fact::OrderFilled { order: id, reserved_cash, notional, fee, .. }) => {
            let before = order(id)?;
            let (side, reserved) = (before.terms.side, before.reserved_cash());
            (before.terms.wallet, ledger::fill(side, reserved, *reserved_cash, *notional, *fee).to_vec())
        }
        Mutation::WalletReset(fact::WalletReset { wallet, baseline, .. }) => {
            (*wallet, ledger::restart(users.get(owner)?.wallet(*wallet)?.cash, *baseline).to_vec())
        }
        Mutation::PositionSettled(fact::PositionSettled { position, payout, .. }) => {
            (users.get(owner)?.position(*position)?.wallet, ledger::payout(*payout).to_vec())
        }
        _ => return None,
    })
}

#[test]
fn the_sum_of_all_postings_is_zero_and_its_parts_are_the_balances() {
    let mut sample = Sample::new(99, 5, 8);
    let mut users = Users::default();
    let mut accounts: BTreeMap<(WalletId, Account), i64> = BTreeMap::new();
    for _ in 0..5_000 {
        let (owner, facts) = sample.record();
        for fact in &facts {
            for (wallet, posting) in postings(&users, owner, fact)
                .into_iter()
                .flat_map(|(wallet, postings)| postings.into_iter().map(move |posting| (wallet, posting)))
            {
                *accounts.entry((wallet, posting.from)).or_default() -= posting.amount.0;
                *accounts.entry((wallet, posting.to)).or_default() += posting.amount.0;
            }
            users.apply(owner, fact);
        }
    }
    for user in users.iter() {
        for wallet in &user.wallets {
            let account = |account| accounts.get(&(wallet.id, account)).copied().unwrap_or(0);
            assert_eq!(account(Account::Available), wallet.available().0);
            assert_eq!(account(Account::Reserved), wallet.reserved.0);
            assert_eq!(account(Account::Opening), -sample.users[&user.id].opening[&wallet.id]);
            assert_eq!(account(Account::Fees), sample.users[&user.id].fees[&wallet.id]);
            let all = [
                Account::Available,
                Account::Reserved,
                Account::Fees,
                Account::Market,
                Account::Opening,
                Account::Payments,
            ];
            assert_eq!(all.into_iter().map(account).sum::<i64>(), 0);
        }
    }
}

#[test]
fn an_idle_user_fits_in_six_hundred_bytes() {
    // Rounding by the allocator counts as sixteen bytes per allocation; the map's share is an entry and its load.
    let user = size_of::<User>() + 16;
    let wallets = 2 * size_of::<Wallet>() + 16;
    let keys = size_of::<ApiKey>() + 16;
    let entry = (size_of::<(UserId, Box<User>)>() + 1) * 16 / 10;
    println!("user {user} + wallets {wallets} + key {keys} + entry {entry}");
    assert!(user + wallets + keys + entry <= 600, "{}", user + wallets + keys + entry);
}
