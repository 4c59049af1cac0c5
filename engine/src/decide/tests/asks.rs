//! Commands and queries of a scenario: orders, cancels, cycles, heartbeats, keys, lists of orders.

use super::show::{shares, text};
use super::words::{level, number, span, tier, token};
use super::world::World;
use crate::command::{Answer, Command, IssueKey, MarketFilter, OrderFilter, Placement, Query, Secret, Sweeps, Wallets};
use crate::id::{MarketId, WalletId};
use crate::order::{Side, Status};
use crate::print::{Event, Evidence, SidelessPrint};
use crate::realism::FillModel;
use crate::time::SECOND;
use crate::user::{Permissions, Tier, WalletKind};
use crate::view::{OrderView, QueueView};

/// A list of all orders of the API wallet.
fn every_order() -> OrderFilter {
    OrderFilter { wallets: Wallets::Api, status: None, market: None, side: None, after: None, offset: 0, limit: 50 }
}

impl World {
    /// Sends the command of a line and returns its answer; other lines are looked up.
    pub(super) fn command(&mut self, verb: &str, rest: &[&str]) -> String {
        match verb {
            "hold" => {
                // Bought at a price, without a fee, before the scenario: then the book is removed again.
                let rules = self.rules.clone();
                assert!(self.shard.is_some());
                let text = format!("{} asks {}x{}", rest[0], rest[2], rest[1]);
                self.book(&text.split_whitespace().collect::<Vec<_>>());
                let line = format!("buy {} {} limit {} fok", rest[0], rest[1], rest[2]);
                let got = self.act(&line);
                self.orders.pop();
                self.book(&[rest[0]]);
                self.rules = rules;
                if got.starts_with("FILLED") { String::new() } else { format!("error {got}") }
            }
            "buy" | "sell" => {
                let placement = self.placement(verb, rest);
                let answer = self.ask(Command::Place(Box::new(placement)), 0);
                self.answer_text(answer)
            }
            "late" => {
                let placement = self.placement(rest[0], &rest[1..]);
                let answer = self.ask(Command::Place(Box::new(placement)), 2 * SECOND + 1);
                self.answer_text(answer)
            }
            "batch" => {
                let entries: Vec<Placement> = rest
                    .split(|word| *word == "|")
                    .filter(|entry| !entry.is_empty())
                    .map(|entry| self.placement(entry[0], &entry[1..]))
                    .collect();
                let answer = self.ask(Command::PlaceBatch(entries), 0);
                self.answer_text(answer)
            }
            "cancel" => {
                let wallets = |word: Option<&&str>| match word.copied() {
                    Some("all") => Wallets::All,
                    Some(n) if n.parse::<usize>().is_ok() => Wallets::One(self.wallet(n)),
                    Some("foreign") => Wallets::One(WalletId(1)),
                    Some("main") => Wallets::One(self.the_user().wallet_of(WalletKind::Main).expect("there").id),
                    _ => Wallets::Api,
                };
                let command = match rest[0] {
                    "all" => Command::CancelAll { wallets: wallets(rest.get(1)) },
                    "market" => Command::CancelMarket {
                        market: Some(MarketId(number(rest[1]) as u32)),
                        instrument: rest.get(2).map(|name| token(name)),
                        wallets: Wallets::Api,
                    },
                    "token" => {
                        Command::CancelMarket { market: None, instrument: Some(token(rest[1])), wallets: Wallets::Api }
                    }
                    "nothing" => Command::CancelMarket { market: None, instrument: None, wallets: Wallets::Api },
                    one => Command::Cancel { order: self.order(one) },
                };
                let answer = self.ask(command, 0);
                self.answer_text(answer)
            }
            "cycle" => {
                let venue_now = self.books.venue_now(self.now);
                let sweeps = match rest.first() {
                    None => Sweeps::All,
                    Some(&"venue") => Sweeps::ByVenueTime,
                    Some(&"none") => Sweeps::None,
                    Some(other) => panic!("a cycle sweeps all, venue or none, not {other}"),
                };
                let answer = self.ask(Command::Cycle { venue_now, sweeps }, 0);
                self.answer_text(answer)
            }
            "print" | "own" => {
                let (price, size) = level(rest[1]);
                let taker = match rest[2] {
                    "buy" => Side::Buy,
                    "sell" => Side::Sell,
                    other => panic!("a print is by a buyer or a seller: {other:?}"),
                };
                match verb {
                    "own" => self.hand_own(token(rest[0]), price, size, taker),
                    _ => self.hand_print(token(rest[0]), price, size, taker),
                }
                let before = self.notified_fills();
                self.ask(Command::MeetPrints, 0);
                format!("filled {}", self.notified_fills() - before)
            }
            "sideless" => {
                let ((price, size), at) = (level(rest[1]), self.books.venue_now(self.now));
                self.hand_news();
                let print = SidelessPrint { instrument: token(rest[0]), price, size, at };
                self.shard().print_lane().push(Event::Sideless(print));
                String::new()
            }
            "queue" => {
                let order = self.order(rest[0]);
                self.ask(Command::MeetPrints, 0);
                match self.ask(Command::Query(Query::Order(order)), 0) {
                    Answer::Order(view) => World::queue_text(&view),
                    other => self.answer_text(other),
                }
            }
            "queues" => match self.ask(Command::Query(Query::Orders(every_order())), 0) {
                Answer::Orders(page) => page.orders.iter().map(World::queue_text).collect::<Vec<_>>().join(" | "),
                other => self.answer_text(other),
            },
            "model" => {
                let order = self.order(rest[0]);
                let order = self.the_user().order(order).expect("there");
                self.rules.fill_of(&order.terms).model.name().to_owned()
            }
            "filled" => {
                let model = FillModel::named(rest[0]).expect("a model");
                let lane = self.shard().print_lane();
                let counts = Evidence::ALL.map(|of| (of.name(), lane.fills(model, of)));
                let seen = counts.iter().filter(|(_, count)| *count > 0);
                seen.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(" ")
            }
            "watched" => self.shard().print_lane().watched_levels().to_string(),
            "realism" => {
                let (key, set) = (self.key(rest[0]), rest.get(1).map(|set| (*set).to_owned()));
                let answer = self.ask(Command::ChooseRealism { key, set }, 0);
                self.answer_text(answer)
            }
            "settle" => {
                let answer = self.ask(Command::Settle { market: MarketId(number(rest[0]) as u32) }, 0);
                self.answer_text(answer)
            }
            "beat" => {
                let label = rest[0].to_owned();
                let answer = self.ask(Command::Beat { label, interval_ms: number(rest[1]) as u32 }, 0);
                self.answer_text(answer)
            }
            "endbeats" => {
                let answer = self.ask(Command::EndBeats, 0);
                self.answer_text(answer)
            }
            "key" => self.key_command(rest),
            "grant" => {
                let expires_at = rest.get(1).map(|word| self.now.plus(span(word)));
                let answer = self.ask(Command::SetGrant { tier: tier(rest[0]), expires_at }, 0);
                self.answer_text(answer)
            }
            "order" => {
                let order = self.order(rest[0]);
                let answer = self.ask(Command::Query(Query::Order(order)), 0);
                self.answer_text(answer)
            }
            "client" => {
                let answer = self.ask(Command::Query(Query::OrderByClientId(rest[0].to_owned())), 0);
                self.answer_text(answer)
            }
            "then" => {
                let order = self.order(rest[0]);
                let Answer::Order(view) = self.ask(Command::Query(Query::Order(order)), 0) else {
                    return "error".to_owned();
                };
                text(view.available)
            }
            "orders" => self.list_orders(rest),
            "wallet" => self.wallet_command(rest),
            "turn" => {
                let (now, before) = (self.now, self.out.records.len());
                let (shard, inbox, out) = self.parts();
                while shard.turn(inbox, now, out) {}
                if self.out.records.len() > before {
                    self.recorded_at = now;
                }
                String::new()
            }
            "lose" => self.lose(rest[0]),
            "restart" => self.restart(),
            _ => self.look(verb, rest),
        }
    }

    /// `key issue NAME [tier] [read|trade|bootstrap]`, `key rotate N`, `key revoke N`, `key rename N NAME`, `key used
    /// N`, `key list`; `by=N` is the key of the request. Keys are numbered from 1.
    fn key_command(&mut self, words: &[&str]) -> String {
        let seed = self.next_reply as u8;
        let secret = Secret { hash: [seed; 32], alias_hash: [seed ^ 0x80; 32], prefix: format!("svc_live_{seed:07}") };
        let by = words.iter().find_map(|word| word.strip_prefix("by=")).map(|word| self.key(word));
        let command = match words[0] {
            "issue" => Command::IssueKey(IssueKey {
                secret,
                name: Some(words[1].to_owned()),
                tier: words.iter().find_map(|word| match *word {
                    "free" => Some(Tier::Free),
                    "pro" => Some(Tier::Pro),
                    _ => None,
                }),
                permissions: words.iter().find_map(|word| match *word {
                    "read" => Some(Permissions::Read),
                    "trade" => Some(Permissions::ReadTrade),
                    _ => None,
                }),
                bootstrap: words.contains(&"bootstrap"),
                by,
            }),
            "rotate" => Command::RotateKey { key: self.key(words[1]), replacement: secret, by },
            "revoke" => Command::RevokeKey { key: self.key(words[1]) },
            "rename" => {
                Command::RenameKey { key: self.key(words[1]), name: words.get(2).map(|name| (*name).to_owned()) }
            }
            "used" => Command::NoteKeyUsed { key: self.key(words[1]) },
            _ => Command::Query(Query::Keys),
        };
        let answer = self.ask(command, 0);
        self.answer_text(answer)
    }

    /// Shares before an order, those shown at its limit, and the confidence.
    fn queue_text(view: &OrderView) -> String {
        let Some(QueueView { ahead, total, confidence }) = view.queue else { return "none".to_owned() };
        let total = total.map_or("?".to_owned(), shares);
        format!("{} of {total} at 0.{confidence:02}", shares(ahead)).replace("0.100", "1.00")
    }

    /// `orders [pending|filled|cancelled|expired] [limit=N] [after=#N] [offset=N] [market=M]`.
    fn list_orders(&mut self, words: &[&str]) -> String {
        let mut filter = every_order();
        for word in words {
            match word.split_once('=') {
                Some(("limit", n)) => filter.limit = number(n) as usize,
                Some(("offset", n)) => filter.offset = number(n) as usize,
                Some(("market", "?")) => filter.market = Some(MarketFilter::Unknown),
                Some(("market", n)) => filter.market = Some(MarketFilter::Only(MarketId(number(n) as u32))),
                Some(("after", n)) => {
                    let id = self.order(n);
                    filter.after = self.the_user().order(id).map(|order| (order.created_at, id));
                }
                _ => match *word {
                    "pending" => filter.status = Some(Status::Pending),
                    "filled" => filter.status = Some(Status::Filled),
                    "cancelled" => filter.status = Some(Status::Cancelled),
                    "buy" => filter.side = Some(Side::Buy),
                    "sell" => filter.side = Some(Side::Sell),
                    "foreign" => filter.wallets = Wallets::One(WalletId(3)),
                    _ => filter.status = Some(Status::Expired),
                },
            }
        }
        match self.ask(Command::Query(Query::Orders(filter)), 0) {
            Answer::Orders(page) => {
                let ids: Vec<String> = page.orders.iter().map(|view| self.name(view.order.id)).collect();
                let more = if page.has_more { " …" } else { "" };
                let hint = page.total_hint.map_or("?".to_owned(), |hint| hint.to_string());
                format!("{}{more} of {hint}", ids.join(" "))
            }
            other => self.answer_text(other),
        }
    }
}
