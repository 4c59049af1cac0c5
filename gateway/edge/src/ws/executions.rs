//! The channel of a user's executions, `/v1/ws/executions` (gateway/docs/streams.md §3): every fill of a resting order,
//! in all wallets or in one, and with `events=all` also orders that are placed and closed.
//!
//! There are no subscriptions. Messages other than heartbeats are ignored.

use super::admit::{Admitted, Anonymous, ChannelKind, admit};
use super::close::Close;
use super::follow::{self, Following, FrameEncoder, follow};
use super::frame::Frame;
use super::session::{Channel, Socket, Verdict, upgrade};
use super::shape::executions::{ExecutionsConnected, FillFrame, OrderFrame};
use crate::api::orders::view::Texts;
use crate::api::wallets;
use crate::app::{App, Edge};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal};
use crate::http::route::{RateClass, Route};
use engine::command::{Answer, Command, Query, Wallets};
use engine::id::{UserId, WalletId};
use engine::order::Status;
use engine::view::{FactView, Happened};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use wire::fields::Params;

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
        let (id, now) = (self.socket.id(), self.socket.now());
        self.socket.send(&Frame::record(&ExecutionsConnected::new(id, now, subscriptions_max, bearer.user)));
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
        let frame = match &fact.what {
            Happened::Filled { fill, resting: true } => {
                let texts = Texts::of(&self.app.reads.catalog, fact.order.terms.instrument);
                Frame::record(&FillFrame::new(fact, fill, &texts, self.next_seq()))
            }
            Happened::Placed { rests: true } if self.subscription.all_events => self.state(fact),
            // A FAK order that was partly filled closes as filled. It never rested.
            Happened::Closed if self.subscription.all_events && fact.order.status() != Status::Filled => {
                self.state(fact)
            }
            _ => return,
        };
        frames.push(frame);
    }
}

impl Frames {
    fn state(&self, fact: &FactView) -> Frame {
        Frame::record(&OrderFrame::new(fact, self.next_seq()))
    }

    fn next_seq(&self) -> u64 {
        self.seq.set(self.seq.get() + 1);
        self.seq.get()
    }
}
