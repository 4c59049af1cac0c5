//! The clients of a world: the command of a step, given the current state.

use crate::venue::middle;
use crate::workload::{Action, Look, Oddity, Wish};
use crate::world::World;
use engine::amount::{Cash, Price, Qty};
use engine::command::{
    BillingEvent, BillingNews, Command, CreateUser, FillFilter, IdSource, InvalidTerms, IssueKey, MarketFilter,
    OrderFilter, Placement, PlacementTerms, Query, RequestIdentity, RequestedPrice, Secret, Size, Wallets,
};
use engine::id::{InstrumentId, KeyId, MarketId, OrderId, WalletId};
use engine::order::{EntryRoute, OrderType, Side};
use engine::time::Timestamp;
use engine::user::billing::Sku;
use engine::user::{Tier, WalletKind};

const DAY: u64 = 86_400_000_000;

impl World {
    /// The command of a step; `None` when the state has nothing for it.
    pub(crate) fn command(&mut self, user: u64, action: &Action) -> Option<Command> {
        let wallets = |everywhere: bool| if everywhere { Wallets::All } else { Wallets::Api };
        Some(match action {
            Action::Create { grant, dollars } => Command::CreateUser(CreateUser {
                sub: user.is_multiple_of(2).then(|| format!("sub-{user}")),
                email: None,
                grant: *grant,
                api_balance: dollars.map(Cash::from_dollars),
            }),
            Action::Grant { tier, days } => {
                let expires_at = days.map(|days| Timestamp(self.now + days * DAY / 2));
                Command::SetGrant { tier: *tier, expires_at }
            }
            Action::Issue { tier, permissions, bootstrap } => Command::IssueKey(IssueKey {
                secret: self.secret(),
                name: Some("a key".to_owned()),
                tier: *tier,
                permissions: *permissions,
                bootstrap: *bootstrap,
                by: None,
            }),
            Action::Rename(nth) => Command::RenameKey { key: self.key(user, *nth), name: Some(format!("key {nth}")) },
            Action::Rotate(nth) => {
                let key = self.key(user, *nth);
                Command::RotateKey { key, replacement: self.secret(), by: nth.is_multiple_of(2).then_some(key) }
            }
            Action::Revoke(nth) => Command::RevokeKey { key: self.key(user, *nth) },
            Action::Use(nth) => Command::NoteKeyUsed { key: self.key(user, *nth) },
            Action::Place(wish) => {
                let placement = self.placement(user, wish, EntryRoute::Native);
                self.sent.push((user, placement.clone()));
                Command::Place(Box::new(placement))
            }
            Action::Batch(wishes) => {
                let place = |wish: &Wish| self.placement(user, wish, EntryRoute::Batch);
                let mut placements: Vec<Placement> = wishes.iter().map(place).collect();
                if let Some(key) = placements.first().map(|placement| placement.key) {
                    placements.iter_mut().for_each(|placement| placement.key = key);
                }
                self.sent.extend(placements.iter().map(|placement| (user, placement.clone())));
                Command::PlaceBatch(placements)
            }
            Action::Again { back, changed } => {
                let mut mine = self.sent.iter().rev().filter(|(of, sent)| *of == user && sent.request.is_some());
                let (_, mut again) = mine.nth(*back)?.clone();
                if let Some(request) = again.request.as_mut().filter(|_| *changed) {
                    request.digest[31] ^= 1;
                }
                Command::Place(Box::new(again))
            }
            Action::Cancel(nth) => Command::Cancel { order: self.order(user, *nth) },
            Action::CancelAll { everywhere } => Command::CancelAll { wallets: wallets(*everywhere) },
            Action::CancelMarket { market, token } => Command::CancelMarket {
                market: market.map(MarketId),
                instrument: token.map(InstrumentId),
                wallets: Wallets::All,
            },
            Action::Beat { label, interval_ms } => {
                Command::Beat { label: format!("beat {label}"), interval_ms: *interval_ms }
            }
            Action::EndBeats => Command::EndBeats,
            Action::OpenWallet => {
                Command::OpenWallet { label: Some(format!("wallet {}", self.now)), by: self.asking(user, 0) }
            }
            Action::NameWallet(nth) => Command::RelabelWallet {
                wallet: self.wallet(user, *nth),
                label: (nth % 3 > 0).then(|| format!("name {nth}")),
            },
            Action::ArchiveWallet(nth) => Command::ArchiveWallet { wallet: self.wallet(user, *nth) },
            Action::ResetWallet(nth) => {
                Command::ResetWallet { wallet: self.wallet(user, *nth), by: self.asking(user, *nth) }
            }
            Action::ResetApi(nth) => Command::ResetApiWallet { by: self.asking(user, *nth) },
            Action::TopUp(nth) => {
                let number = if nth.is_multiple_of(5) { self.payments } else { self.payments + 1 };
                self.payments = number;
                let (wallet, sku) = (Some(self.wallet(user, *nth)), TOPUPS[nth % TOPUPS.len()]);
                let payment = format!("pi_{user}_{number}");
                self.bill(format!("evt_{user}_{number}"), BillingNews::Purchase { payment, sku, wallet })
            }
            Action::Refund(nth) => {
                self.payments += 1;
                let purchases = self.model.user(user).map_or(&[][..], |user| &user.purchases);
                let payment = purchases.get(nth % (purchases.len() + 1)).map(|bought| bought.payment.clone())?;
                let number = self.payments;
                let news = match nth % 5 {
                    0 => BillingNews::Refund { payment, refunded: 100 },
                    1 | 2 => BillingNews::RefundFailed { payment, refund: format!("re_{number}"), cents: 999 },
                    _ => BillingNews::Refund { payment, refunded: 999 },
                };
                self.bill(format!("evt_{user}_{number}"), news)
            }
            Action::Look(look) => Command::Query(match *look {
                Look::Order(nth) => Query::Order(self.order(user, nth)),
                Look::ByClientId(number) if number.is_multiple_of(3) => {
                    Query::SignedOrders((number..number + 4).map(order_hash).collect())
                }
                Look::ByClientId(number) => Query::OrderByClientId(client_id(number)),
                Look::Orders { status, side, market, offset, limit } => Query::Orders(OrderFilter {
                    wallets: Wallets::Api,
                    status,
                    market: market.map(|market| MarketFilter::Only(MarketId(market))),
                    side,
                    after: None,
                    offset,
                    limit,
                }),
                Look::Fills { side, offset, limit } => {
                    Query::Fills(FillFilter { wallets: Wallets::All, market: None, side, offset, limit })
                }
                Look::Account { everywhere } => Query::Account { wallets: wallets(everywhere) },
                Look::Positions { open } => {
                    Query::Positions { wallets: Wallets::All, market: None, open, closed_max: usize::MAX }
                }
                Look::Equity { wallet, hours } => Query::Equity {
                    wallets: match wallet {
                        0 => Wallets::Api,
                        1 | 2 => Wallets::All,
                        nth => Wallets::One(self.wallet(user, nth)),
                    },
                    first: Timestamp(self.now).hour() - hours,
                },
                Look::Facts { after, limit } => Query::Facts { after, limit },
                Look::Keys => Query::Keys,
                Look::User => Query::User,
            }),
        })
    }

    /// Each event is of a later time, as the model expects.
    fn bill(&mut self, id: String, news: BillingNews) -> Command {
        self.billed_at = self.now.max(self.billed_at + 1);
        Command::Bill(Box::new(BillingEvent { id, created: Timestamp(self.billed_at), customer: None, news }))
    }

    fn secret(&mut self) -> Secret {
        self.secrets += 1;
        let number = self.secrets;
        let hash = |kind: u8| {
            let mut hash = [kind; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            hash
        };
        Secret { hash: hash(1), alias_hash: hash(2), prefix: format!("svc_live_{number:06}") }
    }

    /// Some key of the user; often an existing one.
    fn key(&self, user: u64, nth: usize) -> KeyId {
        let keys = self.model.user(user).map_or(&[][..], |user| &user.keys);
        KeyId(keys.get(nth % (keys.len() + 1)).map_or(user << 28, |key| key.id))
    }

    /// Some wallet of the user; now and then one that does not exist.
    fn wallet(&self, user: u64, nth: usize) -> WalletId {
        let wallets = self.model.user(user).map_or(&[][..], |user| &user.wallets);
        WalletId(wallets.get(nth % (wallets.len() + 1)).map_or((user << 28) + 9_000, |wallet| wallet.id))
    }

    /// The caller: often a key, otherwise a session.
    fn asking(&self, user: u64, nth: usize) -> Option<KeyId> {
        nth.is_multiple_of(2).then(|| self.key(user, nth))
    }

    /// Some order of the user, most often an open one.
    fn order(&self, user: u64, nth: usize) -> OrderId {
        let nothing = OrderId((user << 28) + 7);
        let Some(known) = self.model.user(user) else { return nothing };
        let open: Vec<u64> = known.open_orders().map(|order| order.id).collect();
        let all: Vec<u64> = known.orders.keys().copied().collect();
        let from = if nth.is_multiple_of(5) || open.is_empty() { all } else { open };
        from.get(nth % (from.len() + 1)).map_or(nothing, |id| OrderId(*id))
    }

    fn placement(&self, user: u64, wish: &Wish, route: EntryRoute) -> Placement {
        let known = self.model.user(user);
        let tier = match known.and_then(|user| user.grant) {
            Some((tier, _)) => tier,
            None => Tier::Free,
        };
        let request = wish.id.map(|(number, source)| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&wish.body.to_le_bytes());
            let client_order_id = match (source, wish.signed()) {
                // No client can send such an id.
                (IdSource::Implicit, _) => format!("\u{1}{number}"),
                // A client may send a signed order with the same id every time.
                (_, Some(signed)) if signed.is_multiple_of(2) => client_id(signed),
                _ => client_id(number),
            };
            RequestIdentity { client_order_id, digest, source }
        });
        let terms = match wish.oddity {
            Some(Oddity::InvalidTerms) => Err(InvalidTerms),
            _ => Ok(self.terms(user, wish)),
        };
        let order_hash = wish.signed().map(order_hash);
        Placement { request, order_hash, ..Placement::new(self.key(user, wish.body as usize), tier, route, terms) }
    }

    /// The token of a SELL: mostly one that the user holds.
    fn held(&self, user: u64, wish: &Wish) -> u32 {
        let positions = self.model.user(user).map_or(&[][..], |user| &user.positions);
        let open: Vec<u32> = positions.iter().filter(|held| held.closed_at.is_none()).map(|held| held.token).collect();
        if open.is_empty() || wish.body.is_multiple_of(8) { wish.token } else { open[wish.body as usize % open.len()] }
    }

    fn terms(&self, user: u64, wish: &Wish) -> PlacementTerms {
        let side = if wish.sell { Side::Sell } else { Side::Buy };
        let token = if wish.sell { self.held(user, wish) } else { wish.token };
        let tick = self.model.markets.get(token as usize / 2).map_or(100, |market| market.tick);
        let best = self.model.books.effective(token).best(crate::model::place::needed(side));
        let from = i32::from(best.unwrap_or(middle(token)));
        let ticks = wish.ticks * i32::from(tick) * if wish.sell { -1 } else { 1 };
        let grid = i32::from(tick);
        let on_grid = ((from + ticks) / grid * grid).clamp(grid, 10_000 - grid);
        let price = match wish.oddity {
            Some(Oddity::OffGrid) => RequestedPrice::OffGrid,
            Some(Oddity::BetweenTicks) => RequestedPrice::At(Price(on_grid as u16 - 1)),
            _ => RequestedPrice::At(Price(on_grid as u16)),
        };
        let known = self.model.user(user);
        let wallet_of = |kind| known.and_then(|user| user.wallet_of(kind)).map(|wallet| wallet.id);
        let wallet = match wish.oddity {
            Some(Oddity::ForeignWallet) => Some(((user + 1) << 28) + 1),
            _ => wish.in_wallet.map(|nth| self.wallet(user, nth).0),
        };
        let sellable = || {
            let held = known?.position(wallet.or(wallet_of(WalletKind::Api))?, token)?;
            Some((held.qty - known?.reserved_of(held)) as u64 / 100 * 100)
        };
        let wanted = wish.quantity.map(|quantity| quantity * 100).or_else(sellable).unwrap_or(7_000_000);
        let qty = match wish.oddity {
            Some(Oddity::NoQuantity) => 0,
            Some(Oddity::TooMany) => 1_000_000_000_100,
            _ => wanted,
        };
        let expires_at = match wish.oddity {
            Some(Oddity::Expired) => self.now - wish.lives_us % 3_000_000,
            _ => self.now + wish.lives_us,
        };
        PlacementTerms {
            wallet: wallet.map(WalletId),
            instrument: (!matches!(wish.oddity, Some(Oddity::NoMarket))).then_some(InstrumentId(token)),
            side,
            order_type: if wish.at_market { OrderType::Market } else { OrderType::Limit },
            time_in_force: wish.time_in_force,
            size: match wish.amount {
                Some(cents) => Size::Amount(Cash(cents * 10_000)),
                None => Size::Shares { qty: Qty(qty), rounded_from: None },
            },
            price,
            expiration: Some(Timestamp(expires_at)),
            post_only: wish.post_only,
        }
    }
}

/// What adds cash.
const TOPUPS: [Sku; 3] = [Sku::Topup500, Sku::Topup2000, Sku::Topup10000];

fn client_id(number: u64) -> String {
    format!("c-{number}")
}

/// The hash of a signed order.
fn order_hash(number: u64) -> [u8; 32] {
    let mut hash = [7; 32];
    hash[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    hash
}
