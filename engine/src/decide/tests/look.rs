//! Expectations beside answers: money, positions, fills, facts, notices, and totals.

use super::show::{quality_text, shares, text};
use super::words::{number, token};
use super::world::World;
use crate::amount::Cash;
use crate::command::{Answer, Command, FillFilter, Query, Wallets};
use crate::fact;
use crate::fee::FeeSource;
use crate::mutation::Mutation;
use crate::notice::OrderFact;
use crate::order::Fill;
use crate::user::WalletKind;
use crate::view::PositionView;

impl World {
    /// The text of what a line reads.
    pub(super) fn look(&mut self, verb: &str, rest: &[&str]) -> String {
        match verb {
            "money" => {
                let kind = if rest.first() == Some(&"main") { WalletKind::Main } else { WalletKind::Api };
                let wallet = self.the_user().wallet_of(kind).expect("there");
                format!("{} of {}", text(wallet.available()), text(wallet.cash))
            }
            "rebates" => {
                let rebates = self.the_user().wallet_of(WalletKind::Api).expect("there").rebates();
                format!("accrued {} paid {}", text(rebates.accrued()), text(rebates.paid))
            }
            "wallets" => {
                let user = self.the_user();
                user.wallets.iter().map(|wallet| self.wallet_text(wallet)).collect::<Vec<_>>().join(" | ")
            }
            "equity" => self.equity_text(rest),
            "minutes" => self.minutes_text(rest),
            "baseline" => text(self.the_user().wallet_of(WalletKind::Api).expect("there").baseline),
            "holding" => {
                let wallet = self.the_user().wallet_of(WalletKind::Api).expect("there").id;
                match self.the_user().open_position(wallet, token(rest[0])) {
                    None => "nothing".to_owned(),
                    Some(held) => {
                        let reserved = if held.reserved.is_zero() {
                            String::new()
                        } else {
                            format!(" reserved {}", shares(held.reserved))
                        };
                        let realized = if held.realized == Cash::ZERO {
                            String::new()
                        } else {
                            format!(" realized {}", text(held.realized))
                        };
                        format!("{} cost {}{reserved}{realized}", shares(held.qty), text(held.cost))
                    }
                }
            }
            "closed" => {
                let (wallets, closed_max) = (Wallets::Api, usize::MAX);
                let closed = Query::Positions { wallets, market: None, open: Some(false), closed_max };
                let answer = self.ask(Command::Query(closed), 0);
                let Answer::Positions(rows) = answer else { return "error".to_owned() };
                let row = |row: &PositionView| {
                    let settled = row.position.settlement.as_ref().map_or(String::new(), |settled| {
                        format!(
                            " paid {} at {}",
                            text(settled.payout),
                            text(Cash(i64::from(settled.payout_per_share.0) * 100))
                        )
                    });
                    let average = row.average.map_or("none".to_owned(), text);
                    let reset = if row.position.is_reset { " reset" } else { "" };
                    format!("avg {average} realized {}{settled}{reset}", text(row.position.realized))
                };
                rows.iter().map(row).collect::<Vec<_>>().join(" | ")
            }
            "fills" => {
                let order = self.order(rest[0]);
                let user = self.the_user();
                let Some(order) = user.order(order) else { return "error".to_owned() };
                let fill = |fill: &Fill| {
                    format!(
                        "{:?} {:?} {} for {} fee {} at {} bps{}",
                        fill.liquidity,
                        fill.source,
                        shares(fill.qty),
                        text(fill.notional),
                        text(fill.fee),
                        fill.fee_rate.0,
                        if fill.fee_source() == FeeSource::MarketSchedule { " by schedule" } else { "" },
                    )
                };
                user.fills_of(order).iter().map(fill).collect::<Vec<_>>().join(" | ")
            }
            "levels" => {
                let mut rows = Vec::new();
                for fact in self.last_facts() {
                    if let Mutation::OrderFilled(fact::OrderFilled { levels, .. }) = fact {
                        rows.extend(levels.iter().map(|row| {
                            let mark = if row.mirrored { "~" } else { "" };
                            format!("{mark}{}x{}", text(Cash(i64::from(row.price.0) * 100)), shares(row.qty))
                        }));
                    }
                }
                rows.join(" ")
            }
            "quality" => {
                let order = self.order(rest[0]);
                let Some(order) = self.the_user().order(order) else { return "error".to_owned() };
                quality_text(order)
            }
            "terms" => {
                let order = self.order(rest[0]);
                let Some(order) = self.the_user().order(order) else { return "error".to_owned() };
                let terms = &order.terms;
                format!(
                    "{:?} {:?} limit {} rate {}{}{}{}",
                    terms.order_type,
                    terms.time_in_force.normalised(),
                    text(Cash(i64::from(terms.limit.0) * 100)),
                    terms.fee_rate.0,
                    if terms.post_only { " post" } else { "" },
                    if terms.marketable { " marketable" } else { "" },
                    if terms.expiration().is_some() { " expires" } else { "" },
                )
            }
            "facts" => self.last_facts().iter().map(super::show::kind).collect::<Vec<_>>().join(" "),
            "records" => (self.out.records.len()).to_string(),
            "quota" => self.the_user().quota.used.to_string(),
            "notices" => {
                let notices: Vec<String> = self
                    .out
                    .notices
                    .drain(..)
                    .map(|notice| {
                        let what = match notice.what {
                            OrderFact::Placed => "placed",
                            OrderFact::Filled { resting: false, .. } => "filled",
                            OrderFact::Filled { resting: true, .. } => "filled-resting",
                            OrderFact::Closed => "closed",
                        };
                        format!("{}:{what}", notice.user_seq)
                    })
                    .collect();
                notices.join(" ")
            }
            "account" => {
                let answer = self.ask(Command::Query(Query::Account { wallets: Wallets::All }), 0);
                let Answer::Account(account) = answer else { return "error".to_owned() };
                format!(
                    "{} wallets {} positions {} fills {} closed {} won",
                    account.wallets.len(),
                    account.positions.len(),
                    account.fills_count,
                    account.closed_count,
                    account.won_count
                )
            }
            "history" => {
                let filter = FillFilter {
                    wallets: Wallets::Api,
                    market: None,
                    side: None,
                    offset: 0,
                    limit: number(rest[0]) as usize,
                };
                let Answer::Fills(page) = self.ask(Command::Query(Query::Fills(filter)), 0) else {
                    return "error".to_owned();
                };
                let rows: Vec<String> = page
                    .fills
                    .iter()
                    .map(|row| {
                        format!("{:?} {} for {}", row.order.terms.side, shares(row.fill.qty), text(row.fill.notional))
                    })
                    .collect();
                format!("{}{}", rows.join(" | "), if page.has_more { " …" } else { "" })
            }
            other => format!("error: no such word {other}"),
        }
    }
}
