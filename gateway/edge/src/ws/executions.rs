//! The channel of a user's executions, `/v1/ws/executions` (gateway/docs/streams.md §3): every fill of a resting order,
//! in all wallets or in one, and with `events=all` also orders that are placed and closed.
//!
//! There are no subscriptions. Messages other than heartbeats are ignored.

use super::admit::{Admitted, Anonymous, ChannelKind, admit};
use super::close::Close;
use super::follow::{self, Following, FrameEncoder, follow};
use super::frame::Frame;
use super::session::{Channel, Socket, Verdict, upgrade};
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words;
use crate::api::wallets;
use crate::app::{App, Edge};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal};
use crate::http::route::{RateClass, Route};
use engine::command::{Answer, Command, Query, Wallets};
use engine::id::{UserId, WalletId};
use engine::order::{Fill, Order, Status};
use engine::view::{FactView, Happened};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use wire::fields::Params;
use wire::write::{Object, object};

pub const ROUTES: &[Route] = &[Route::get("/v1/ws/executions", "ws_executions")
    .about("Fills of the own resting orders.")
    .rate(RateClass::Exempt)
    .run(|call| Box::pin(open(call)))];

async fn open(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let all_events = params.choice("events", &[("all", true)]).unwrap_or(false);
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Any);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let from = follow::from_seq(&query)?;
    let admitted = admit(&call, Anonymous::Refused)?;
    // This also uses up a token whose handshake names a wallet of another user.
    let wallet = match &admitted {
        Admitted::Open { bearer: Some(bearer), .. } => only(&call, bearer.user, wallets).await?,
        _ => None,
    };
    upgrade(&call, admitted, move |socket, edge| Executions {
        socket,
        edge,
        from,
        subscription: Subscription { wallet, all_events },
        following: None,
    })
}

/// The wallet to follow; `None` for all.
async fn only(call: &Call, user: UserId, wallets: Wallets) -> Result<Option<WalletId>, Refusal> {
    if matches!(wallets, Wallets::Any | Wallets::All) {
        return Ok(None);
    }
    let query = Command::Query(Query::Account { wallets });
    match call.edge.engine.ask(user, query, call.now).await {
        Ok(Answer::Account(account)) => Ok(account.wallets.first().map(|wallet| wallet.id)),
        Ok(Answer::Refused(_)) => Err(Code::WalletNotFound.into()),
        Ok(_) => Err(Code::InternalError.into()),
        Err(_) => Err(Code::ServerBusy.into()),
    }
}

/// The selection in the handshake's query.
#[derive(Clone, Copy)]
struct Subscription {
    wallet: Option<WalletId>,
    all_events: bool,
}

struct Executions {
    socket: Rc<Socket>,
    edge: Rc<Edge>,
    from: Option<u64>,
    subscription: Subscription,
    following: Option<Following>,
}

impl Channel for Executions {
    const KIND: ChannelKind = ChannelKind::Executions;

    async fn opened(&mut self) -> Result<(), Close> {
        let Some(bearer) = self.socket.bearer() else { return Err(Close::INVALID_KEY) };
        let subscriptions_max = self.edge.app.front.settings.streams.subscriptions_max(Some(bearer.tier));
        self.socket.send(&Frame::json(|out| {
            object(out, |o| {
                o.word("type", "connected");
                o.text("connection_id", &format!("c-{}", self.socket.id()));
                o.integer("ts", self.socket.now().millis());
                o.integer("max_subscriptions", subscriptions_max as u64);
                o.integer("user_id", bearer.user.0);
            });
        }));
        let encoder = Frames { app: self.edge.app.clone(), subscription: self.subscription, seq: Cell::new(0) };
        let following = follow(self.socket.clone(), self.edge.clone(), bearer.user, self.from, encoder).await?;
        self.following = Some(following);
        Ok(())
    }

    async fn message(&mut self, _: &str) -> Result<Verdict, Close> {
        Ok(Verdict::Accepted)
    }
}

/// Makes the frames of one socket.
struct Frames {
    app: Arc<App>,
    subscription: Subscription,
    seq: Cell<u64>,
}

impl FrameEncoder for Frames {
    fn encode(&self, fact: &FactView, frames: &mut Vec<Frame>) {
        if self.subscription.wallet.is_some_and(|wallet| wallet != fact.order.terms.wallet) {
            return;
        }
        let order = &fact.order;
        match &fact.what {
            Happened::Filled { fill, resting: true } => {
                frames.push(self.numbered(fact, |o| {
                    filled(o, order, fill, &Texts::of(&self.app.reads.catalog, order.terms.instrument))
                }));
            }
            Happened::Placed { rests: true } if self.subscription.all_events => {
                frames.push(self.numbered(fact, |o| state(o, order)));
            }
            // A FAK order that was partly filled closes as filled. It never rested.
            Happened::Closed if self.subscription.all_events && order.status() != Status::Filled => {
                frames.push(self.numbered(fact, |o| state(o, order)));
            }
            _ => {}
        }
    }
}

impl Frames {
    fn numbered(&self, fact: &FactView, fields: impl FnOnce(&mut Object<'_>)) -> Frame {
        self.seq.set(self.seq.get() + 1);
        Frame::json(|out| {
            object(out, |o| {
                fields(o);
                o.integer("seq", self.seq.get());
                o.integer("user_seq", fact.seq);
            });
        })
    }
}

fn filled(o: &mut Object<'_>, order: &Order, fill: &Fill, texts: &Texts<'_>) {
    let terms = &order.terms;
    o.word("type", "fill");
    o.integer("order_id", order.id.0);
    o.text("market_id", texts.market());
    o.word("side", words::side(terms.side));
    o.text("outcome", texts.outcome());
    o.average("price", fill_price(order, fill));
    o.qty("quantity", fill.qty);
    o.ts("filled_at", fill.at);
    o.text_or_null("client_order_id", terms.client_order_id());
    o.text("token_id", texts.token());
    o.word("status", words::status(order.status()));
    o.qty("remaining_quantity", order.unfilled());
    o.money("fee", fill.fee);
    o.integer("wallet_id", terms.wallet.0);
    o.integer("trade_id", fill.id.0);
    o.ts_or_null("venue_time", fill.venue_at());
}

fn state(o: &mut Object<'_>, order: &Order) {
    let closed = order.closed();
    o.word("type", "order");
    o.integer("order_id", order.id.0);
    o.word("status", words::status(order.status()));
    o.word_or_null("cancelled_reason", closed.and_then(|(reason, _)| words::cancelled_reason(reason)));
    o.integer("ts", closed.map_or(order.created_at, |(_, at)| at).millis());
}
