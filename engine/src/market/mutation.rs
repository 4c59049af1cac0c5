//! All facts about markets: the only input of [`Markets::apply`](super::Markets::apply). Records of these facts belong
//! to owner 0.

use crate::amount::TickSize;
use crate::describe::facts;
use crate::id::MarketId;
use crate::market::terms::{FeeSchedule, Listing, MarketState, Resolution};
use crate::rehearsal::DeclaredAddress;
use crate::time::Timestamp;

facts! {
    /// One fact about a market, or about the tape that the markets come from.
    pub enum MarketMutation {
        /// A market exists from here on; ids are dense in the order of these facts.
        MarketListed {
            market: MarketId,
            listing: Box<Listing>,
            state: MarketState,
            at: Timestamp,
        },
        /// `ended`: venue time has passed the end date.
        MarketStateChanged {
            market: MarketId,
            state: MarketState,
            ended: bool,
            at: Timestamp,
        },
        TickChanged {
            market: MarketId,
            tick: TickSize,
            at: Timestamp,
        },
        EndChanged {
            market: MarketId,
            end: Option<Timestamp>,
            at: Timestamp,
        },
        /// Final: the first one counts.
        MarketResolved {
            market: MarketId,
            resolution: Resolution,
            at: Timestamp,
        },
        /// Every shard has paid out its positions.
        MarketSettled {
            market: MarketId,
            at: Timestamp,
        },
        /// A tape (identified by a digest of its first line) was applied up to this moment of the recording.
        TapeReached {
            tape: [u8; 32],
            reached: Timestamp,
        },
        /// The directory was restored from a backup and is `instance` from here on. The backup is of the directory
        /// `parent` and ends with record `lsn`. Since format 2.
        Restored {
            instance: [u8; 16],
            parent: [u8; 16],
            lsn: u64,
            at: Timestamp,
        },
        /// An operator corrected the clock: the time of the newest record was `from`, the true time is `at`. From here
        /// on, no time in the state is later than `at`, and journal time continues from `at`. Alone in a record of
        /// format 3.
        ClockSetBack {
            from: Timestamp,
            at: Timestamp,
        },
        /// History is kept from `day` on, in days since 1970, UTC: orders and positions that ended before it and have left
        /// memory are not shown any more, with their fills and requests. The latest day counts. Since format 4.
        HistoryCut {
            day: u32,
            at: Timestamp,
        },
        /// What the market states about its fees, for later fills. Absent: nothing that can be used, so the table of
        /// categories counts. Since format 5.
        FeeScheduleChanged {
            market: MarketId,
            schedule: Option<FeeSchedule>,
            at: Timestamp,
        },
        /// An administrator declared what an address is, and what the exchanges may spend of it. The latest declaration
        /// counts. Since format 5.
        AddressDeclared {
            address: [u8; 20],
            declared: DeclaredAddress,
            at: Timestamp,
        },
    }
}
