//! The law: the same orders placed by hand in a replay give the same levels, fees and cash.

use super::*;
use crate::command::{Answer, Command, CreateUser, Envelope, Placement, PlacementTerms, RequestedPrice, Size};
use crate::directory::Directory;
use crate::id::{InstrumentId, KeyId, UserId};
use crate::mutation::{Mutation, codec};
use crate::notice::Notice;
use crate::order::{EntryRoute, OrderType, Taken, TimeInForce};
use crate::ring::Ring;
use crate::shard::{Outbox, Room, Shard};
use crate::user::{Tier, Users, WalletKind};

/// What each fill took: shares, notional, fee and levels.
fn fills<'a>(records: impl Iterator<Item = &'a [u8]>) -> Vec<(Qty, Cash, Cash, Vec<Taken>)> {
    let facts = records.flat_map(|payload| codec::decode(codec::VERSION, payload).expect("our own version"));
    let fill = |fact: Mutation| match fact {
        Mutation::OrderFilled(filled) => Some((filled.qty, filled.notional, filled.fee, filled.levels)),
        _ => None,
    };
    facts.filter_map(|fact| fill(fact.expect("our own bytes"))).collect()
}

/// A client of a replay with default rules: it places orders by hand in a shard of its own, in which the markets of the
/// job have other ids.
struct Hand {
    writer: BookWriter,
    shard: Shard<u64>,
    out: Kept,
}

#[derive(Default)]
struct Kept {
    records: Vec<Vec<u8>>,
    answers: Vec<Answer>,
}

impl Outbox<u64> for Kept {
    fn room(&self) -> Room {
        Room::Ample
    }
    fn record(&mut self, _owner: UserId, _now: Timestamp, payload: &[u8]) {
        self.records.push(payload.to_vec());
    }
    fn notice(&mut self, _notice: Notice) {}
    fn answer(&mut self, _reply: u64, answer: Answer) {
        self.answers.push(answer);
    }
}

/// Markets of the replay before those of the job.
const OTHERS: u32 = 3;

impl Hand {
    fn new(bankroll: Cash) -> Hand {
        let (books, catalog) = (Arc::new(Books::new()), Arc::new(Catalog::new()));
        let mut writer = books.writer().expect("the books are new");
        for id in 0..OTHERS + 2 {
            let listing = Listing {
                venue: Venue::Synthetic,
                venue_market_id: id.to_string(),
                condition: format!("{id}"),
                tokens: [format!("{id}1"), format!("{id}2")],
                outcomes: ["Yes", "No"].map(str::to_owned),
                slug: id.to_string(),
                question: id.to_string(),
                description: None,
                image: None,
                label: None,
                category: Category::Weather,
                tags: Vec::new(),
                event: None,
                tick: TickSize(100),
                min_order_size: None,
                neg_risk: false,
                start: None,
                end: None,
                updown: None,
                sports: false,
            };
            catalog.add(MarketId(id), &Market::listed(listing, MarketState::Active, Timestamp(1)), None);
            writer.tick(MarketId(id), TickSize(100));
        }
        let (rules, directory) = (Arc::new(Rules::default()), Arc::new(Directory::default()));
        let shard = Shard::new(0, 1, Users::default(), rules, books, catalog, directory);
        let mut hand = Hand { writer, shard, out: Kept::default() };
        let user = CreateUser { sub: None, email: None, grant: Some(Tier::Enterprise), api_balance: Some(bankroll) };
        hand.ask(UserId(1), Command::CreateUser(user), FIRST.start());
        hand
    }

    fn ask(&mut self, owner: UserId, command: Command, now: Timestamp) -> Answer {
        let before = self.out.answers.len();
        self.shard.take(Envelope { owner, command, received_at: now, reply: 0 }, now, &mut self.out);
        while self.out.answers.len() == before {
            self.shard.turn(&Ring::new(1), now, &mut self.out);
        }
        self.out.answers.pop().expect("it was there")
    }

    fn read(&mut self, frame: &BookFrame) {
        let market = MarketId(frame.market as u32 + OTHERS);
        self.writer.frame(0, frame.at, |to| {
            for change in &frame.changes {
                match change {
                    BookChange::Book { outcome, bids, asks } => {
                        to.snapshot(market.instrument(*outcome), bids, asks, frame.at, None);
                    }
                    BookChange::Level { outcome, side, price, size } => {
                        to.delta(market.instrument(*outcome), &[(*side, *price, *size)], frame.at);
                    }
                    other => panic!("not in these frames: {other:?}"),
                }
            }
        });
    }

    fn place(&mut self, trade: &Trade, size: Qty) {
        let (qty, price) = match trade.side {
            Side::Buy => (size, Price::ONE),
            Side::Sell => (self.held(trade.market), Price::LOWEST),
        };
        // Other markets of the replay send messages all the time.
        self.writer.alive(0, trade.at);
        let terms = PlacementTerms {
            wallet: None,
            instrument: Some(Hand::instrument(trade.market)),
            side: trade.side,
            order_type: OrderType::Market,
            time_in_force: TimeInForce::Fak,
            size: Size::Shares { qty, rounded_from: None },
            price: RequestedPrice::At(price),
            expiration: None,
            post_only: false,
        };
        let placement = Placement::new(KeyId(5), Tier::Pro, EntryRoute::Native, Ok(terms));
        let answer = self.ask(UserId(1), Command::Place(Box::new(placement)), trade.at);
        assert!(matches!(answer, Answer::Order(_)), "{trade:?}: {answer:?}");
    }

    fn instrument(market: usize) -> InstrumentId {
        MarketId(market as u32 + OTHERS).instrument(Outcome::First)
    }

    fn cash(&self) -> Cash {
        let user = self.shard.users().get(UserId(1)).expect("it was created");
        user.wallet_of(WalletKind::Api).expect("it has one").cash
    }

    fn held(&self, market: usize) -> Qty {
        let user = self.shard.users().get(UserId(1)).expect("it was created");
        let wallet = user.wallet_of(WalletKind::Api).expect("it has one").id;
        user.open_position(wallet, Hand::instrument(market)).map_or(Qty::ZERO, |held| held.qty)
    }
}

/// The law: orders of a back-test placed by hand in a replay of the same recording give the same levels, fees and cash
/// to the last unit.
#[test]
fn orders_placed_by_hand_in_a_replay_give_the_same() {
    let (mut trades, mut level_rows, mut runs) = (0, 0, 0);
    for seed in 1..=8 {
        for (mode, latency) in [(TickMode::Grid, 0), (TickMode::Event, 0), (TickMode::Event, 1_500)] {
            let mut job = trading(|strategy| {
                strategy.model = FillModel::DepthWalkDepletion;
                strategy.size = Qty(37_123_400);
                strategy.entry = vec![when(Field::Price, Operator::Less, "0.62")];
                strategy.exit = vec![when(Field::Price, Operator::Greater, "0.29")];
            });
            job.markets = (0..2).map(|number| market(number, &[Verdict::Valid, Verdict::Valid])).collect();
            (job.tick_mode, job.latency) = (mode, Latency::Constant(latency));
            let frames = random(seed, 1_500);
            let mut proceed = |_| true;
            let plan = match mode {
                TickMode::Grid => TickPlan::grid(&job),
                TickMode::Event => TickPlan::event(&job, 0),
            };
            let mut run = Run::new(&job, &Rules::default(), plan, 0..job.seeds, &mut proceed);
            for frame in frames.iter().filter(|frame| frame.at < job.end) {
                run.frame(frame).expect("it goes on");
            }
            run.pass(job.end).expect("it goes on");
            let lane = &run.lanes.seeds[0];
            let by_run = fills(lane.records().iter().map(|record| &**record));

            let mut hand = Hand::new(job.bankroll);
            let mut left = frames.iter().peekable();
            for trade in &lane.trades {
                while let Some(frame) = left.next_if(|frame| frame.at <= trade.at) {
                    hand.read(frame);
                }
                hand.place(trade, job.strategy.size);
            }
            let by_hand = fills(hand.out.records.iter().map(|record| &**record));
            assert_eq!(by_run, by_hand, "seed {seed} {mode:?} {latency}");
            assert_eq!(lane.worth(&job).0, hand.cash(), "seed {seed} {mode:?} {latency}");
            trades += by_run.len();
            level_rows += by_run.iter().map(|(.., levels)| levels.len()).sum::<usize>();
            runs += 1;
        }
    }
    println!("law: {runs} runs, {trades} fills of {level_rows} levels");
    assert!(trades > 300 && level_rows > trades, "{trades} {level_rows}");
}
