//! All facts about users: the only input of `apply`. (Facts about markets: [`crate::market::mutation`].)
//!
//! A fact contains the decided outcome: amounts, rates, ids, times. `apply` derives the postings from it by a rule that
//! is fixed for the version; it reads no flag, fee table, clock or book.

pub mod codec;
mod earlier;
pub(crate) mod packed;

use crate::amount::{Bps, Cash, Price, Qty};
use crate::describe::facts;
use crate::fee::FeeRounding;
use crate::id::{KeyId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::market::terms::FeeSchedule;
use crate::order::{CloseReason, Liquidity, OrderTerms, PriceSource, Taken};
use crate::rehearsal::{Class, Diagnosis, Rule};
use crate::time::Timestamp;
use crate::user::alerts::{AlertKinds, Channel, HiddenText};
use crate::user::backtests::{BacktestEnd, BacktestFigures};
use crate::user::billing::{BillingInterval, Product, Sku, SubscriptionStatus};
use crate::user::{Permissions, Tier, WalletKind};

facts! {
    /// One fact about the user that owns the record. All facts of one command are one record.
    pub enum Mutation {
        UserCreated {
            sub: Option<String>,
            email: Option<String>,
            at: Timestamp,
        },
        GrantSet {
            tier: Tier,
            expires_at: Option<Timestamp>,
            at: Timestamp,
        },
        WalletOpened {
            wallet: WalletId,
            kind: WalletKind,
            label: Option<String>,
            baseline: Cash,
            generation: u32,
            parent: Option<WalletId>,
            at: Timestamp,
        },
        KeyIssued {
            key: KeyId,
            hash: [u8; 32],
            alias_hash: [u8; 32],
            prefix: String,
            name: Option<String>,
            tier: Tier,
            permissions: Permissions,
            beta_until: Option<Timestamp>,
            at: Timestamp,
        },
        KeyRenamed {
            key: KeyId,
            name: Option<String>,
            at: Timestamp,
        },
        /// The old key of a rotation.
        KeyExpiring {
            key: KeyId,
            expires_at: Timestamp,
            replaced_by: KeyId,
            at: Timestamp,
        },
        KeyRevoked {
            key: KeyId,
            at: Timestamp,
        },
        /// At most one per key and minute.
        KeyUsed {
            key: KeyId,
            at: Timestamp,
        },
        /// Creates an order row. `counted`: it counts for the daily cap (it ends FILLED or PENDING).
        OrderPlaced {
            order: OrderId,
            terms: OrderTerms,
            counted: bool,
            at: Timestamp,
        },
        /// One walk. BUY: cash −(notional + fee), shares +qty, cost +notional. SELL: cash +(notional − fee),
        /// shares −qty, cost −cost_out, realized +(notional − cost_out). `reserved_cash` and `reserved_qty` are the
        /// order's reservations after this fill.
        OrderFilled {
            order: OrderId,
            trade: TradeId,
            /// The episode bought into or sold from; this fill opens it if it is new.
            position: PositionId,
            qty: Qty,
            notional: Cash,
            fee: Cash,
            fee_rate: Bps,
            liquidity: Liquidity,
            source: PriceSource,
            quote_age_ms: Option<u32>,
            cost_out: Cash,
            reserved_cash: Cash,
            reserved_qty: Qty,
            levels: Vec<Taken>,
            at: Timestamp,
            /// The recording's time, if a recording drives the venue's clock; absent if server time does.
            venue_at: Option<Timestamp>,
        },
        /// The unfilled rest rests: its reservations are set (not added) to these.
        OrderRested {
            order: OrderId,
            reserved_cash: Cash,
            reserved_qty: Qty,
            awaiting_book: bool,
            held: bool,
            at: Timestamp,
        },
        /// The order ends; its reservation is released.
        OrderClosed {
            order: OrderId,
            reason: CloseReason,
            at: Timestamp,
        },
        /// An outage began or ended while the order rests (`hold_reason`).
        OrderHeld {
            order: OrderId,
            held: bool,
            at: Timestamp,
        },
        /// The request of this order is remembered, with the present state as its first answer.
        RequestRemembered {
            order: OrderId,
            client_order_id: String,
            digest: [u8; 32],
        },
        /// A resolved market paid out the position: cash +payout, the episode closes.
        PositionSettled {
            position: PositionId,
            payout_per_share: Price,
            payout: Cash,
            at: Timestamp,
        },
        SafeguardArmed {
            label: String,
            interval_ms: u32,
            at: Timestamp,
        },
        SafeguardEnded {
            label: String,
            at: Timestamp,
        },
        /// A better plan raises the baseline of a wallet; its cash stays (engine/docs/account.md §4).
        BaselineRaised {
            wallet: WalletId,
            baseline: Cash,
            at: Timestamp,
        },
        WalletRelabelled {
            wallet: WalletId,
            label: Option<String>,
            at: Timestamp,
        },
        /// An empty wallet is archived: from here on it is read-only.
        WalletArchived {
            wallet: WalletId,
            at: Timestamp,
        },
        /// An empty wallet starts its next generation: its cash becomes the baseline.
        WalletReset {
            wallet: WalletId,
            baseline: Cash,
            at: Timestamp,
        },
        /// A position ends with its wallet's generation: no cash moves, and there is no gain or loss.
        PositionReset {
            position: PositionId,
            at: Timestamp,
        },
        /// The value of a wallet at a full hour: its present cash, and `value` for its open positions.
        EquityNoted {
            wallet: WalletId,
            /// The full hour.
            hour: Timestamp,
            value: Cash,
            at: Timestamp,
        },
        /// A back-test is waiting, and its market hours are charged to the month.
        BacktestCreated {
            /// A random UUID.
            job: [u8; 16],
            /// What was asked for, as JSON.
            spec: String,
            /// SHA-256 of the request.
            digest: [u8; 32],
            /// The id that the client gave the request.
            request: Option<String>,
            /// Market hours in thousandths.
            charged: u64,
            at: Timestamp,
        },
        BacktestStarted {
            job: [u8; 16],
            at: Timestamp,
        },
        BacktestEnded {
            job: [u8; 16],
            end: BacktestEnd,
            /// Why it failed.
            error: Option<String>,
            figures: Option<Box<BacktestFigures>>,
            /// Market hours given back, in thousandths.
            refunded: u64,
            at: Timestamp,
        },
        /// The id of the user at the payment provider.
        CustomerNoted {
            customer: String,
            at: Timestamp,
        },
        /// An event of the payment provider is processed. Its effect is in the same record.
        BillingEventNoted {
            event: String,
            /// When the provider made it.
            created: Timestamp,
            at: Timestamp,
        },
        /// What an event states about a subscription. Those of a newer event are kept.
        SubscriptionNoted {
            subscription: String,
            product: Product,
            interval: BillingInterval,
            status: SubscriptionStatus,
            period_end: Option<Timestamp>,
            cancel_at_period_end: bool,
            trial_ends_at: Option<Timestamp>,
            event: String,
            /// When the provider made the event.
            created: Timestamp,
            at: Timestamp,
        },
        /// A subscription was paid, or a payment of it failed.
        SubscriptionPaid {
            subscription: String,
            is_paid: bool,
            /// When the provider made the event.
            created: Timestamp,
            at: Timestamp,
        },
        /// A purchase was paid: a top-up adds `credit` to the cash and to the deposits of a wallet.
        PurchaseNoted {
            /// The provider's id of the payment.
            payment: String,
            sku: Sku,
            wallet: Option<WalletId>,
            credit: Cash,
            at: Timestamp,
        },
        /// A payment was returned, in part or whole. A payment that is not known waits.
        RefundNoted {
            payment: String,
            /// US cents returned so far.
            refunded: u64,
            /// What it takes out of the credited wallet: cash and deposits.
            taken: Cash,
            /// A bought reset of the MAIN wallet is taken back.
            is_reset_taken: bool,
            at: Timestamp,
        },
        /// As `WalletReset`, by a bought reset: it does not count among those of the plan.
        BoughtResetUsed {
            wallet: WalletId,
            baseline: Cash,
            at: Timestamp,
        },
        /// The defaults of a user's alerts hold from here on: before, nothing was owed by mail.
        AlertsBegun {
            at: Timestamp,
        },
        /// A new chat or webhook to which alerts go. Earlier builds wrote it for a change, too.
        AlertTargetSet {
            target: u32,
            channel: Channel,
            /// Not shown.
            url: HiddenText,
            /// Signs the deliveries; not shown.
            secret: Option<HiddenText>,
            label: Option<String>,
            kinds: AlertKinds,
            is_enabled: bool,
            at: Timestamp,
        },
        /// What was owed to it is dropped.
        AlertTargetRemoved {
            target: u32,
            at: Timestamp,
        },
        /// The kinds of alerts that go by mail.
        MailChoiceSet {
            kinds: AlertKinds,
            at: Timestamp,
        },
        AlertDelivered {
            /// Absent: by mail.
            target: Option<u32>,
            /// Its number.
            alert: u64,
            at: Timestamp,
        },
        /// An attempt to deliver failed.
        AlertFailed {
            /// Absent: by mail.
            target: Option<u32>,
            /// Its number.
            alert: u64,
            error: String,
            /// There are no more attempts.
            gives_up: bool,
            /// The target is switched off.
            disables: bool,
            at: Timestamp,
        },
        /// The order before it in the record uses up the day of a free plan. Only of a user with alerts.
        DailyLimitReached {
            limit: u32,
            resets_at: Timestamp,
            at: Timestamp,
        },
        /// What an event states about a subscription whose price is not known here. It gives nothing, and is kept until
        /// the price is known.
        SubscriptionUnpriced {
            subscription: String,
            /// The provider's id of the price.
            price: Option<String>,
            status: SubscriptionStatus,
            period_end: Option<Timestamp>,
            cancel_at_period_end: bool,
            trial_ends_at: Option<Timestamp>,
            event: String,
            /// When the provider made the event.
            created: Timestamp,
            at: Timestamp,
        },
        /// What an event states about the refunds of a payment. Its effect is another fact of the record.
        RefundStated {
            payment: String,
            /// The refund that failed; absent: cents were returned.
            failed: Option<String>,
            /// US cents: all that was returned so far, or those of the refund that failed.
            cents: u64,
            /// When the provider made the event.
            created: Timestamp,
            at: Timestamp,
        },
        /// Less of a payment is returned than was noted, because a refund failed. What it took back is given back.
        RefundUndone {
            payment: String,
            /// US cents that are returned now.
            refunded: u64,
            /// The wallet that receives `credit`: cash and deposits.
            wallet: Option<WalletId>,
            credit: Cash,
            /// A bought reset of the MAIN wallet is given back.
            is_reset_given: bool,
            at: Timestamp,
        },
        /// A chat or webhook has changed.
        AlertTargetChanged {
            target: u32,
            /// Absent: it stays, unless `clears_label`.
            label: Option<String>,
            clears_label: bool,
            /// Absent: they stay.
            kinds: Option<AlertKinds>,
            /// Absent: it stays.
            is_enabled: Option<bool>,
            at: Timestamp,
        },
        /// A notice of the operator. Only of a user with alerts.
        NoticeRaised {
            text: String,
            at: Timestamp,
        },
        /// The address of a user that had none.
        EmailNoted {
            email: String,
            at: Timestamp,
        },
        /// The user's object numbers come to their end: ids of its next objects are `prefix` × 2²⁸ + number. No user has
        /// that id, and it is higher than the prefixes before it.
        NumbersExtended {
            prefix: UserId,
            at: Timestamp,
        },
        /// The fee of the fill before it in the record is by the schedule of the market.
        FillCharged {
            trade: TradeId,
            schedule: FeeSchedule,
            rounding: FeeRounding,
            at: Timestamp,
        },
        /// The maker of the fill before it in the record has earned a rebate. It is paid later, and is not cash before.
        RebateAccrued {
            trade: TradeId,
            wallet: WalletId,
            amount: Cash,
            at: Timestamp,
        },
        /// What a wallet had earned by rebates when the UTC day began is paid: cash +amount.
        RebatePaid {
            wallet: WalletId,
            amount: Cash,
            at: Timestamp,
        },
        /// The set of realism of a key: its later orders have the terms of that set.
        KeyRealismSet {
            key: KeyId,
            /// Absent: the set of keys without a choice.
            set: Option<String>,
            at: Timestamp,
        },
        /// The place of a resting order in the queue of its level: when it comes to rest, then at most one per minute.
        QueueNoted {
            order: OrderId,
            /// Shares of the venue before it.
            ahead: Qty,
            /// How sure that is.
            confidence: Bps,
            at: Timestamp,
            /// The recording's time, if a recording drives the venue's clock; absent if server time does.
            venue_at: Option<Timestamp>,
        },
        /// What a rehearsal of the venue's checks found in signed orders of a key (gateway/docs/rehearsal.md), about once
        /// a minute for each rule and class. It changes nothing.
        StrictFound {
            key: KeyId,
            rule: Rule,
            class: Class,
            /// That of the last order.
            diagnosis: Diagnosis,
            /// Orders since the fact before it.
            count: u32,
            /// The last one of them that has a row.
            order: Option<OrderId>,
            at: Timestamp,
        },
        /// Order facts of the user up to this number are not kept any more: a stream that continues before the next one
        /// gets a gap.
        OrderFactsCut {
            upto: u64,
            at: Timestamp,
        },
    }
}
