//! `apply`: the effect of each fact on its user. Amounts come from the fact; the postings follow from it by a rule that
//! is fixed for a version of the journal.

use super::equity::Point;
use super::facts::Fact;
use super::idempotency::After;
use super::indexes::Indexes;
use super::position::Position;
use super::trading::Trading;
use super::{ApiKey, Grant, Prefix, QueueNote, Safeguard, User, Wallet, WalletRare, ledger, safeguard};
use crate::amount::{Cash, Qty};
use crate::fact;
use crate::id::{InstrumentId, KeyId, OrderId, WalletId};
use crate::mutation::Mutation;
use crate::order::{CloseReason, Fill, Order, Side};
use crate::time::{Date, Timestamp};

/// Object numbers are assigned in order; a fact never skips more than this.
const OBJECTS_SKIPPED_MAX: u32 = 1 << 16;

impl User {
    /// Applies one fact to the user and the shard's indexes, and raises its alerts.
    #[inline]
    pub(crate) fn apply(&mut self, fact: &Mutation, indexes: &mut Indexes) {
        self.change(fact, indexes);
        if self.alerts().is_some() {
            self.raise_alerts(fact);
        }
    }

    fn change(&mut self, fact: &Mutation, indexes: &mut Indexes) {
        match fact {
            // Orders first: they are most of a journal.
            Mutation::OrderPlaced(fact::OrderPlaced { order, terms, counted, at }) => {
                let number = self.note_object(order.0);
                assert!(self.wallet(terms.wallet).is_some(), "an order belongs to a wallet of its user: order {order}");
                if *counted {
                    self.quota.count(at.day());
                }
                self.order_facts += 1;
                let trading = self.trading_mut();
                indexes.rows.orders += 1;
                let row = trading.push_order(Order::new(*order, terms, *at, &mut indexes.shared.rares));
                if let Some(hash) = &terms.order_hash {
                    trading.note_signed(hash, row as u32);
                }
                trading.facts.push(Fact::Placed { order: number });
            }
            Mutation::OrderFilled(fact) => self.fill(fact, indexes),
            Mutation::OrderRested(fact::OrderRested {
                order,
                reserved_cash,
                reserved_qty,
                awaiting_book,
                held,
                at: _,
            }) => {
                self.rest(*order, (*reserved_cash, *reserved_qty), *awaiting_book, *held, indexes);
            }
            Mutation::OrderClosed(fact::OrderClosed { order, reason, at }) => self.close(*order, *reason, *at, indexes),
            Mutation::OrderHeld(fact::OrderHeld { order, held, at: _ }) => {
                let trading = self.trading_mut();
                let row = trading.order_row(*order).expect("an order that is held was placed");
                let order = &mut trading.orders[row];
                if std::mem::replace(&mut order.held, *held) != *held && order.resting {
                    indexes.resting.hold(order);
                }
            }
            Mutation::RequestRemembered(fact::RequestRemembered { order, client_order_id, digest }) => {
                self.remember(*order, client_order_id, *digest, indexes);
            }
            Mutation::PositionSettled(fact::PositionSettled { position, payout_per_share, payout, at }) => {
                let (trading, wallets) = self.trading_and_wallets();
                let row = trading.position_row(*position).expect("a position that is paid out was opened");
                let settled = &mut trading.positions[row];
                let (wallet, instrument) = (settled.wallet, settled.instrument);
                ledger::post(wallet_mut(wallets, wallet), &ledger::payout(*payout));
                settled.settle(*payout_per_share, *payout, *at);
                trading.drop_holding(wallet, instrument);
                indexes.position_closed(*position, instrument);
                self.watch(indexes);
            }

            Mutation::BacktestCreated(created) => self.create_backtest(created),
            Mutation::BacktestStarted(fact::BacktestStarted { job, at }) => self.start_backtest(*job, *at),
            Mutation::BacktestEnded(ended) => self.end_backtest(ended),

            Mutation::CustomerNoted(noted) => self.note_customer(noted),
            Mutation::BillingEventNoted(noted) => self.note_billing_event(noted),
            Mutation::SubscriptionNoted(noted) => self.note_subscription(noted),
            Mutation::SubscriptionPaid(noted) => self.note_subscription_paid(noted),
            Mutation::PurchaseNoted(noted) => {
                self.note_purchase(noted);
                self.watch(indexes);
            }
            Mutation::RefundNoted(noted) => {
                self.note_refund(noted);
                self.watch(indexes);
            }
            Mutation::SubscriptionUnpriced(noted) => self.note_unpriced_subscription(noted),
            Mutation::RefundStated(noted) => self.note_refund_stated(noted),
            Mutation::RefundUndone(undone) => {
                self.undo_refund(undone);
                self.watch(indexes);
            }
            Mutation::BoughtResetUsed(fact::BoughtResetUsed { wallet, baseline, at }) => {
                self.restart(*wallet, *baseline, indexes);
                self.note_bought_reset(*at);
                self.watch(indexes);
            }
            Mutation::AlertsBegun(_) => {
                self.begin_alerts();
            }
            Mutation::AlertTargetSet(set) => self.set_alert_target(set),
            Mutation::AlertTargetChanged(changed) => self.change_alert_target(changed),
            Mutation::AlertTargetRemoved(fact::AlertTargetRemoved { target, at: _ }) => {
                self.remove_alert_target(*target);
            }
            Mutation::MailChoiceSet(fact::MailChoiceSet { kinds, at: _ }) => self.set_mail_choice(*kinds),
            Mutation::AlertDelivered(delivered) => self.deliver_alert(delivered),
            Mutation::AlertFailed(failed) => self.fail_alert(failed),
            Mutation::NumbersExtended(fact::NumbersExtended { prefix, at: _ }) => {
                self.extend_numbers(*prefix);
                indexes.prefix_granted(self.id, *prefix);
            }
            Mutation::FillCharged(fact::FillCharged { trade, schedule: _, rounding: _, at: _ }) => {
                let number = self.number_of(trade.0).expect("a fill that is charged is the user's");
                let trading = self.trading_mut();
                let charged = trading.fill_at(number).map(|(row, _)| row);
                trading.fills[charged.expect("a fill that is charged is there")].by_schedule = true;
            }
            Mutation::RebateAccrued(accrued) => self.earn_rebate(accrued, indexes),
            Mutation::RebatePaid(paid) => {
                self.pay_rebate(paid, indexes);
                self.watch(indexes);
            }
            // They change nothing: only their alerts are raised.
            Mutation::DailyLimitReached(_) | Mutation::NoticeRaised(_) => {}
            // It is read from the log.
            Mutation::StrictFound(_) => {}
            Mutation::OrderFactsCut(fact::OrderFactsCut { upto, at: _ }) => {
                let kept = self.order_facts.saturating_sub(*upto);
                self.trading_mut().facts.keep_newest(usize::try_from(kept).unwrap_or(usize::MAX));
            }

            Mutation::KeyUsed(fact::KeyUsed { key, at }) => self.key_mut(*key).last_used_at = Some(*at).into(),
            Mutation::KeyIssued(fact::KeyIssued {
                key,
                hash,
                alias_hash,
                prefix,
                name,
                tier,
                permissions,
                beta_until,
                at,
            }) => {
                self.note_object(key.0);
                push_exact(
                    &mut self.keys,
                    ApiKey {
                        id: *key,
                        hash: *hash,
                        alias_hash: *alias_hash,
                        prefix: Prefix::new(prefix),
                        name: boxed(name),
                        tier: *tier,
                        permissions: *permissions,
                        created_at: *at,
                        expires_at: Date::NONE,
                        beta_until: (*beta_until).into(),
                        revoked_at: Date::NONE,
                        last_used_at: Date::NONE,
                    },
                );
            }
            Mutation::KeyRenamed(fact::KeyRenamed { key, name, at: _ }) => self.key_mut(*key).name = boxed(name),
            Mutation::KeyRealismSet(fact::KeyRealismSet { key, set, at: _ }) => {
                assert!(self.key(*key).is_some(), "a key with a set was issued: key {key}");
                self.trading_mut().change_realism(|realism| realism.choose(*key, set.as_deref()));
            }
            Mutation::QueueNoted(fact::QueueNoted { order, ahead, confidence, at, venue_at }) => {
                let trading = self.trading_mut();
                let row = trading.order_row(*order).expect("an order in a queue was placed");
                assert!(trading.orders[row].resting, "an order in a queue rests: order {order}");
                let (order, ahead, confidence, at) = (*order, *ahead, *confidence, *at);
                let note = QueueNote { order, ahead, confidence, at, venue_at: (*venue_at).into() };
                trading.change_realism(|realism| realism.note(note));
            }
            Mutation::KeyExpiring(fact::KeyExpiring { key, expires_at, replaced_by: _, at: _ }) => {
                self.key_mut(*key).expires_at = Some(*expires_at).into();
            }
            Mutation::KeyRevoked(fact::KeyRevoked { key, at }) => self.key_mut(*key).revoked_at = Some(*at).into(),

            Mutation::UserCreated(_) => panic!("a user is created once: user {}", self.id),
            Mutation::EmailNoted(fact::EmailNoted { email, at: _ }) => self.note_email(email),
            Mutation::GrantSet(fact::GrantSet { tier, expires_at, at: _ }) => {
                self.grant = Some(Grant { tier: *tier, expires_at: *expires_at });
            }
            Mutation::WalletOpened(fact::WalletOpened { wallet, kind, label, baseline, generation, parent, at }) => {
                self.note_object(wallet.0);
                let mut opened = Wallet::new(*wallet, *kind, *baseline, *generation, *at);
                opened.set_rare(WalletRare { label: boxed(label), parent: *parent, ..WalletRare::default() });
                ledger::post(&mut opened, &ledger::opening(*baseline));
                push_exact(&mut self.wallets, opened);
            }
            Mutation::BaselineRaised(fact::BaselineRaised { wallet, baseline, at: _ }) => {
                self.keep_opening(*wallet);
                wallet_mut(&mut self.wallets, *wallet).baseline = *baseline;
                self.watch(indexes);
            }
            Mutation::WalletRelabelled(fact::WalletRelabelled { wallet, label, at: _ }) => {
                let wallet = wallet_mut(&mut self.wallets, *wallet);
                wallet.set_rare(WalletRare { label: boxed(label), ..wallet.rare() });
            }
            Mutation::WalletArchived(fact::WalletArchived { wallet, at }) => {
                let archived = wallet_mut(&mut self.wallets, *wallet);
                assert!(archived.reserved == Cash::ZERO, "a wallet is empty before it is archived: wallet {wallet}");
                archived.set_rare(WalletRare { archived_at: Some(*at), ..archived.rare() });
                self.drop_rebates(*wallet, indexes);
            }
            Mutation::WalletReset(fact::WalletReset { wallet, baseline, at }) => {
                self.restart(*wallet, *baseline, indexes);
                self.trading_mut().push_reset(*wallet, *at);
                self.watch(indexes);
            }
            Mutation::PositionReset(fact::PositionReset { position, at }) => {
                let (trading, _) = self.trading_and_wallets();
                let row = trading.position_row(*position).expect("a position that is closed was opened");
                let closed = &mut trading.positions[row];
                let (wallet, instrument) = (closed.wallet, closed.instrument);
                closed.reset(*at);
                trading.drop_holding(wallet, instrument);
                indexes.position_closed(*position, instrument);
                self.watch(indexes);
            }
            Mutation::EquityNoted(fact::EquityNoted { wallet, hour, value, at: _ }) => {
                self.keep_opening(*wallet);
                let known = self.wallet(*wallet).expect("a point belongs to a wallet of its user");
                let (cash, baseline) = (known.cash, known.starting());
                let point = Point { hour: hour.hour(), cash, value: *value, baseline };
                self.trading_mut().equity_mut(*wallet).push(point);
            }

            Mutation::SafeguardArmed(fact::SafeguardArmed { label, interval_ms, at }) => {
                let lapses_at = safeguard::lapses_at(*interval_ms, *at);
                let label = label.as_str().into();
                let armed = Safeguard { label, interval_ms: *interval_ms, lapses_at, beat: None };
                let owner = self.id;
                let safeguards = &mut self.trading_mut().safeguards;
                indexes.armed(owner, &armed);
                match safeguards.iter_mut().find(|known| known.label == armed.label) {
                    Some(known) => {
                        let before = std::mem::replace(known, armed);
                        indexes.ended(owner, &before, Some(known.lapses_at));
                    }
                    None => push_exact(safeguards, armed),
                }
            }
            Mutation::SafeguardEnded(fact::SafeguardEnded { label, at: _ }) => {
                let owner = self.id;
                let safeguards = &mut self.trading_mut().safeguards;
                if let Some(at) = safeguards.iter().position(|known| *known.label == **label) {
                    indexes.ended(owner, &safeguards.remove(at), None);
                }
            }
        }
    }

    /// Cash or shares have moved: the user may need a point at the next full hour.
    fn watch(&mut self, indexes: &mut Indexes) {
        if !self.watched {
            self.watched = true;
            indexes.watched.insert(self.id);
        }
    }

    /// The next generation of a wallet without orders and positions.
    fn restart(&mut self, wallet: WalletId, baseline: Cash, indexes: &mut Indexes) {
        self.keep_opening(wallet);
        self.drop_rebates(wallet, indexes);
        let reset = wallet_mut(&mut self.wallets, wallet);
        assert!(reset.reserved == Cash::ZERO, "a wallet is empty before it is reset: wallet {wallet}");
        ledger::post(reset, &ledger::restart(reset.cash, baseline));
        reset.baseline = baseline;
        reset.generation += 1;
    }

    /// Before the baseline of a wallet changes, its opening cash becomes its first point.
    fn keep_opening(&mut self, wallet: WalletId) {
        let known = self.wallet(wallet).expect("a wallet that changes was opened");
        let opening = Point::opening(known);
        let equity = self.trading_mut().equity_mut(wallet);
        if equity.last().is_none() {
            equity.push(opening);
        }
    }

    fn fill(&mut self, fact: &fact::OrderFilled, indexes: &mut Indexes) {
        self.watch(indexes);
        let fill = self.note_object(fact.trade.0);
        self.note_object(fact.position.0);
        self.order_facts += 1;
        let (trading, wallets) = self.trading_and_wallets();
        let row = trading.order_row(fact.order).expect("an order that is filled was placed");
        let fill_row = trading.fills.end() as u32;
        let order = &mut trading.orders[row];
        let (side, wallet, instrument) = (order.terms.side, order.terms.wallet, order.terms.instrument);
        let (cash_before, qty_before) = (order.reserved_cash(), order.reserved_qty());

        let postings = ledger::fill(side, cash_before, fact.reserved_cash, fact.notional, fact.fee);
        ledger::post(wallet_mut(wallets, wallet), &postings);

        let rested = order.resting;
        let fill_before = order.last_fill;
        order.fill(fact.qty, fact.notional, fact.fee, fill_row, fact.at);
        order.reserve(fact.reserved_cash, fact.reserved_qty);
        if order.resting && !order.is_open() {
            order.resting = false;
            indexes.resting.remove(order);
            order.awaiting_book = false;
            trading.open.remove(row as u32);
            trading.drop_queue_note(fact.order);
        }
        trading.push_fill(Fill::of(fact, fill_before), wallet);
        indexes.rows.fills += 1;
        trading.facts.push(if rested { Fact::Matched { fill } } else { Fact::Taken { fill } });

        let episode = trading.held_row(wallet, instrument).unwrap_or_else(|| {
            assert!(side == Side::Buy, "sold shares are held: order {}", fact.order);
            indexes.position_opened(fact.position, instrument);
            indexes.rows.positions += 1;
            trading.push_position(Position::open(fact.position, wallet, instrument, fact.at))
        });
        let held = &mut trading.positions[episode];
        assert!(held.id == fact.position, "a fill names the open episode: {}, not {}", held.id, fact.position);
        match side {
            Side::Buy => held.buy(fact.qty, fact.notional),
            Side::Sell => {
                let reserved = held.reserved - qty_before + fact.reserved_qty;
                held.sell(fact.qty, fact.notional, fact.cost_out, reserved, fact.at);
                if !held.is_open() {
                    trading.drop_holding(wallet, instrument);
                    indexes.position_closed(fact.position, instrument);
                }
            }
        }
    }

    fn rest(
        &mut self,
        order: OrderId,
        (cash, qty): (Cash, Qty),
        awaiting_book: bool,
        held: bool,
        indexes: &mut Indexes,
    ) {
        let (trading, wallets) = self.trading_and_wallets();
        let row = trading.order_row(order).expect("an order that rests was placed");
        let order = &mut trading.orders[row];
        let (wallet, instrument) = (order.terms.wallet, order.terms.instrument);
        let (cash_before, qty_before) = (order.reserved_cash(), order.reserved_qty());
        ledger::post(wallet_mut(wallets, wallet), &ledger::reservation(cash_before, cash));
        order.reserve(cash, qty);
        order.awaiting_book = awaiting_book;
        let was_held = std::mem::replace(&mut order.held, held);
        assert!(order.is_open(), "an order that rests is open: order {}", order.id);
        let known = std::mem::replace(&mut order.resting, true);
        indexes.resting.put(order, known);
        if known && was_held != held {
            indexes.resting.hold(order);
        }
        if !known {
            trading.open.insert(row as u32);
            let number = trading.prefixes.number(order.id.0);
            trading.facts.rests(number);
        }
        if qty != qty_before {
            move_reserved(trading, wallet, instrument, qty_before, qty);
        }
    }

    fn close(&mut self, order: OrderId, reason: CloseReason, at: Timestamp, indexes: &mut Indexes) {
        self.order_facts += 1;
        let (trading, wallets) = self.trading_and_wallets();
        let row = trading.order_row(order).expect("an order that ends was placed");
        let number = trading.prefixes.number(order.0);
        let order = &mut trading.orders[row];
        let (wallet, instrument) = (order.terms.wallet, order.terms.instrument);
        let (cash, qty) = (order.reserved_cash(), order.reserved_qty());
        if cash != Cash::ZERO {
            ledger::post(wallet_mut(wallets, wallet), &ledger::reservation(cash, Cash::ZERO));
        }
        order.close(reason, at);
        if std::mem::replace(&mut order.resting, false) {
            indexes.resting.remove(order);
            let id = order.id;
            trading.open.remove(row as u32);
            trading.drop_queue_note(id);
        }
        if !qty.is_zero() {
            move_reserved(trading, wallet, instrument, qty, Qty::ZERO);
        }
        trading.facts.push(Fact::Closed { order: number });
    }

    fn remember(&mut self, order: OrderId, id: &str, digest: [u8; 32], indexes: &mut Indexes) {
        let row = self.trading().order_row(order).expect("a remembered request left an order");
        let terms = &self.trading().orders[row].terms;
        let wallet = self.wallet(terms.wallet).expect("an order belongs to a wallet of its user");
        let position = self.open_position(terms.wallet, terms.instrument).map(|held| (held.qty, held.cost));
        let after = After { available: wallet.available(), position };
        let owner = self.id;
        let Trading { orders, requests, .. } = self.trading_mut();
        let requests = requests.get_or_insert_default();
        if requests.rows.is_empty() {
            indexes.remembering.insert((orders[row].created_at, owner));
        }
        requests.remember(&orders[row], id, digest, after, &mut indexes.shared.ids);
        indexes.rows.requests += 1;
    }

    /// Records that an object's number is used, and returns it.
    fn note_object(&mut self, object: u64) -> u32 {
        let number = self.number_of(object);
        let skipped = number.map(|number| number.saturating_sub(self.next_object));
        let Some(number) = number.filter(|_| skipped <= Some(OBJECTS_SKIPPED_MAX)) else {
            panic!("object numbers are assigned in order: user {}, next {}, got {object}", self.id, self.next_object)
        };
        self.next_object = self.next_object.max(number + 1);
        number
    }

    fn key_mut(&mut self, id: KeyId) -> &mut ApiKey {
        self.keys.iter_mut().find(|key| key.id == id).expect("a key that changes was issued")
    }

    fn trading_and_wallets(&mut self) -> (&mut Trading, &mut [Wallet]) {
        (self.trading.as_mut().expect("a user with orders has traded"), &mut self.wallets)
    }
}

/// Changes the reserved shares of the position of a resting SELL from `before` to `after`.
fn move_reserved(trading: &mut Trading, wallet: WalletId, instrument: InstrumentId, before: Qty, after: Qty) {
    let row = trading.held_row(wallet, instrument).expect("a resting SELL holds shares");
    let held = &mut trading.positions[row];
    held.set_reserved(held.reserved - before + after);
}

fn wallet_mut(wallets: &mut [Wallet], id: WalletId) -> &mut Wallet {
    let at = wallets.binary_search_by_key(&id, |wallet| wallet.id);
    &mut wallets[at.expect("an order or position belongs to a wallet of its user")]
}

fn boxed(text: &Option<String>) -> Option<Box<str>> {
    text.as_deref().map(Box::from)
}

/// Appends to a list that rarely grows, without spare capacity.
fn push_exact<T>(list: &mut Vec<T>, row: T) {
    list.reserve_exact(1);
    list.push(row);
}
