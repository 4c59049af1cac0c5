//! The records of the analysis.

use super::figures::{self, Figure, TooLarge, average, drawdown, extremes, gain, percent, ratio, since};
use super::{Inputs, OpenPosition};
use crate::api::account::valuation::{Marks, Valuation};
use crate::api::account::view::{CONDITION, CurrencyName, OpenStatus, QUESTION, win_rate};
use crate::api::keys::view::TierName;
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words::{self, SideName};
use crate::http::call::Caller;
use crate::http::record::record;
use crate::http::scalar::{self, ConditionId, Money, Percentage, Price, Quantity, Rate, words};
use crate::http::turns::Turns;
use engine::amount::Cash;
use engine::time::{DAY, Timestamp};
use engine::view::FillView;
use rust_decimal::prelude::{Decimal, RoundingStrategy};
use std::collections::BTreeMap;
use wire::decimal;

/// Positions that are shown before the task yields.
const ROWS_PER_TURN: usize = 256;
/// Decimals of percentages and of plain ratios (gateway/docs/wire.md §1).
const PERCENT_PLACES: u32 = 2;
const RATIO_PLACES: u32 = 6;

words! {
    pub AnalysisVersion = "1.0.0";
    pub Visibility = "public";
}

record! {
    /// Whose account it is.
    pub struct Profile {
        user_id: u64 = 42;
        username: Option<&'static str> = None, "Unknown here.";
        display_name: Option<&'static str> = None, "Unknown here.";
        bio: Option<&'static str> = None, "Unknown here.";
        avatar_url: Option<&'static str> = None, "Unknown here.";
        auth_provider: Option<&'static str> = None, "Unknown here.";
        account_created_at: scalar::Timestamp = scalar::Timestamp::of("2026-09-30T08:00:00Z");
        account_age_days: u64 = 2, "Whole days.";
        api_key_tier: TierName = "free".into(), "The tier of the key of this request.";
        profile_visibility: Visibility = "public".into();
    }

    /// `ui` is the MAIN wallet, `api` the API wallet, the last three are of the wallets asked about.
    pub struct AnalysisBalance<'a> {
        currency: CurrencyName = "USD".into();
        ui_balance: Money = Money::of("1000"), "Available cash.";
        api_balance: Money = Money::of("78.391"), "Available cash.";
        starting_ui_balance: Money = Money::of("1000");
        starting_api_balance: Money = Money::of("100");
        ui_pnl: Money = Money::of("0"), "Total value less what it began with.";
        api_pnl: Money = Money::of("-0.859"), "Total value less what it began with.";
        ui_pnl_percentage: Option<Percentage<'a>> = Some("0.00".into()), "Of what it began with.";
        api_pnl_percentage: Option<Percentage<'a>> = Some("-0.86".into()), "Of what it began with.";
        total_portfolio_value: Money = Money::of("99.141"), "Cash and open positions.";
        unrealized_pnl: Money = Money::of("-0.25"),
            "Market value less cost of the open positions, without fees.";
        realized_pnl: Money = Money::of("0"), "Of all positions, fees excluded.";
    }

    /// An open position; the largest first.
    pub struct AnalysisPosition<'a> {
        position_id: u64 = 7_001;
        market_id: ConditionId<'a> = CONDITION.into();
        market_question: Option<&'a str> = Some(QUESTION);
        market_category: &'a str = "weather";
        outcome: &'a str = "Yes";
        quantity: Quantity = Quantity::of("50");
        avg_entry_price: Price = Price::of("0.42");
        current_price: Option<Price> = Some(Price::of("0.415")), "Null without a mark.";
        cost_basis: Money = Money::of("21");
        market_value: Option<Money> = Some(Money::of("20.75")), "Null without a mark.";
        unrealized_pnl: Option<Money> = Some(Money::of("-0.25")),
            "Market value less cost, without fees; null without a mark.";
        unrealized_pnl_percentage: Option<Percentage<'a>> = Some("-1.19".into()), "Of the cost.";
        status: OpenStatus = "OPEN".into();
        weight_percentage: Option<Percentage<'a>> = Some("100.00".into()),
            "Of the invested value; at cost without a mark.";
    }

    /// Fills, and positions with a known exit.
    pub struct TradingStats<'a> {
        total_trades: u64 = 1, "Fills.";
        total_buys: u64 = 1;
        total_sells: u64 = 0;
        total_wins: u64 = 0, "Closed positions that gained.";
        total_losses: u64 = 0, "Closed positions that lost.";
        active_trading_days: u64 = 1, "UTC days with a fill.";
        unique_markets_traded: u64 = 1;
        buy_sell_ratio: Option<scalar::Decimal<'a>> = None, "Buys by sells.";
        total_volume: Money = Money::of("21"), "Sum of the notionals.";
        avg_trade_size: Option<Money> = Some(Money::of("21"));
        median_trade_size: Option<Money> = Some(Money::of("21"));
        largest_trade: Option<Money> = Some(Money::of("21"));
        smallest_trade: Option<Money> = Some(Money::of("21"));
        total_fees_paid: Money = Money::of("0.609");
        win_rate: Option<Rate<'a>> = None, "Wins by closed positions.";
        best_trade_pnl: Option<Money> = None, "The most that a closed position brought, without fees.";
        worst_trade_pnl: Option<Money> = None, "The least that a closed position brought, without fees.";
        avg_win_pnl: Option<Money> = None;
        avg_loss_pnl: Option<Money> = None, "Negative.";
        profit_factor: Option<scalar::Decimal<'a>> = None, "Gross profit by gross loss; null without a loss.";
        first_trade_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:15:00.004211Z"));
        last_trade_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:15:00.004211Z"));
        avg_trades_per_day: Option<scalar::Decimal<'a>> = Some("1.00".into()), "By days with a fill.";
    }

    /// How the value is spread, and how far it fell.
    pub struct RiskMetrics<'a> {
        open_position_count: u64 = 1;
        largest_position_weight: Option<Percentage<'a>> = Some("100.00".into()), "Of the invested value.";
        largest_position_market: Option<ConditionId<'a>> = Some(CONDITION.into());
        top_3_concentration: Option<Percentage<'a>> = Some("100.00".into()), "Of the invested value.";
        portfolio_diversity_score: Option<scalar::Decimal<'a>> = Some("0.00".into()),
            "1 less the sum of the squared weights.";
        avg_position_size: Option<Money> = Some(Money::of("20.75"));
        cash_percentage: Option<Percentage<'a>> = Some("79.07".into()),
            "Of the total value; what is reserved counts as cash.";
        invested_percentage: Option<Percentage<'a>> = Some("20.93".into()), "Of the total value.";
        max_drawdown_7d: Option<Percentage<'a>> = None, "Below a running peak; null of fewer than two snapshots.";
        max_drawdown_30d: Option<Percentage<'a>> = None, "The same.";
    }

    /// Total value at full hours. Returns are from the first to the last snapshot; null of fewer than two.
    pub struct EquityTimeline<'a> {
        return_7d: Option<Percentage<'a>> = None, "Return over the last 7 days, from equity snapshots.";
        return_30d: Option<Percentage<'a>> = None, "Return over the last 30 days, from equity snapshots.";
        return_all_time: Option<Percentage<'a>> = None, "Of all snapshots there are, a year at most.";
        peak_value: Option<Money> = Some(Money::of("100")), "Within the days asked about.";
        peak_date: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:00:00Z"));
        trough_value: Option<Money> = Some(Money::of("100")), "Within the days asked about.";
        trough_date: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:00:00Z"));
        current_value: Money = Money::of("99.141"), "Of this moment.";
        snapshots_available: u64 = 1, "Within the days asked about.";
        latest_snapshot_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:00:00Z"));
    }

    /// Open positions of one category.
    pub struct CategoryExposure<'a> {
        category: &'a str = "weather";
        position_count: u64 = 1;
        total_value: Money = Money::of("20.75");
        weight_percentage: Option<Percentage<'a>> = Some("100.00".into()), "Of the invested value.";
    }

    /// A fill.
    pub struct AnalysisTrade<'a> {
        order_id: u64 = 90_412;
        market_id: ConditionId<'a> = CONDITION.into();
        market_question: Option<&'a str> = Some(QUESTION);
        side: SideName = "BUY".into();
        outcome: &'a str = "Yes";
        price: Price = Price::of("0.42");
        quantity: Quantity = Quantity::of("50");
        notional: Money = Money::of("21");
        filled_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:15:00.004211Z");
    }

    /// Everything about an account in one answer.
    pub struct ProfileAnalysis<'a> {
        analysis_generated_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T10:00:00Z");
        analysis_version: AnalysisVersion = "1.0.0".into();
        natural_language_summary: String = concat!(
            "1 trade in 1 market; 0 of 0 closed positions won. ",
            "1 position open; the portfolio is worth 99.141 USD."
        ).to_owned(), "For people.";
        profile: Profile = Profile::example();
        balance: AnalysisBalance<'a> = AnalysisBalance::example();
        open_positions: Vec<AnalysisPosition<'a>> = Vec::example();
        trading_stats: TradingStats<'a> = TradingStats::example();
        risk_metrics: RiskMetrics<'a> = RiskMetrics::example();
        equity_timeline: EquityTimeline<'a> = EquityTimeline::example();
        category_exposure: Vec<CategoryExposure<'a>> = Vec::example(), "By name.";
        recent_trades: Vec<AnalysisTrade<'a>> = Vec::example(), "Newest first.";
    }
}

impl<'a> ProfileAnalysis<'a> {
    /// # Errors
    /// [`TooLarge`]: a figure is out of range.
    pub(super) async fn new(
        inputs: &Inputs,
        caller: &Caller,
        marks: Marks<'a>,
    ) -> Result<ProfileAnalysis<'a>, TooLarge> {
        let median = inputs.trades.median().await;
        let mut open_positions = Vec::with_capacity(inputs.open.len());
        let mut turns = Turns::of(ROWS_PER_TURN);
        for open in &inputs.open {
            turns.work(1).await;
            open_positions.push(AnalysisPosition::new(open, inputs, marks)?);
        }
        Ok(ProfileAnalysis {
            analysis_generated_at: scalar::Timestamp(inputs.now),
            analysis_version: "1.0.0".into(),
            natural_language_summary: summary(inputs),
            profile: Profile::new(inputs, caller),
            balance: AnalysisBalance::new(inputs)?,
            open_positions,
            trading_stats: TradingStats::new(inputs, median)?,
            risk_metrics: RiskMetrics::new(inputs, marks)?,
            equity_timeline: EquityTimeline::new(inputs)?,
            category_exposure: CategoryExposure::all(inputs, marks)?,
            recent_trades: inputs.recent.iter().map(|view| AnalysisTrade::new(view, marks)).collect(),
        })
    }
}

fn summary(inputs: &Inputs) -> String {
    let Inputs { trades, outcomes, open, chosen, .. } = inputs;
    let count = |number: u64, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    format!(
        "{} in {}; {} of {} won. {} open; the portfolio is worth {} USD.",
        count(trades.count(), "trade"),
        count(trades.markets_count() as u64, "market"),
        outcomes.wins,
        count(outcomes.closed, "closed position"),
        count(open.len() as u64, "position"),
        decimal::text(|out| decimal::money(out, chosen.total)),
    )
}

impl Profile {
    fn new(inputs: &Inputs, caller: &Caller) -> Profile {
        let user = &inputs.user;
        Profile {
            user_id: user.id.0,
            username: None,
            display_name: None,
            bio: None,
            avatar_url: None,
            auth_provider: None,
            account_created_at: scalar::Timestamp(user.created_at),
            account_age_days: inputs.now.since(user.created_at) / DAY,
            api_key_tier: caller.tier.into(),
            profile_visibility: "public".into(),
        }
    }
}

impl AnalysisBalance<'_> {
    fn new(inputs: &Inputs) -> Result<Self, TooLarge> {
        let Inputs { ui, api, chosen, .. } = inputs;
        let of_start = |wallet: &Valuation| percent(wallet.unrealized.0.into(), wallet.starting.0.into());
        let gain = |open: &OpenPosition| i128::from(open.value.0) - i128::from(open.view.position.cost.0);
        Ok(AnalysisBalance {
            currency: "USD".into(),
            ui_balance: Money(ui.available),
            api_balance: Money(api.available),
            starting_ui_balance: Money(ui.starting),
            starting_api_balance: Money(api.starting),
            ui_pnl: Money(ui.unrealized),
            api_pnl: Money(api.unrealized),
            ui_pnl_percentage: percentage(of_start(ui))?,
            api_pnl_percentage: percentage(of_start(api))?,
            total_portfolio_value: Money(chosen.total),
            unrealized_pnl: money(inputs.open.iter().map(gain).sum())?,
            realized_pnl: money(inputs.outcomes.realized)?,
        })
    }
}

impl<'a> AnalysisPosition<'a> {
    fn new(open: &OpenPosition, inputs: &Inputs, marks: Marks<'a>) -> Result<AnalysisPosition<'a>, TooLarge> {
        let position = &open.view.position;
        let texts = Texts::of(marks.catalog, position.instrument);
        // Without a mark the gain is unknown.
        let value = open.mark.map(|_| open.value);
        let cost = i128::from(position.cost.0);
        let gain = value.map_or(Ok(None), |value| percent(i128::from(value.0) - cost, cost));
        Ok(AnalysisPosition {
            position_id: position.id.0,
            market_id: texts.market().into(),
            market_question: texts.question(),
            market_category: category(open, marks),
            outcome: texts.outcome(),
            quantity: position.qty.into(),
            avg_entry_price: Price(open.view.average.unwrap_or_default()),
            current_price: open.mark.map(Price),
            cost_basis: Money(position.cost),
            market_value: value.map(Money),
            unrealized_pnl: value.map(|value| Money(value - position.cost)),
            unrealized_pnl_percentage: percentage(gain)?,
            status: "OPEN".into(),
            weight_percentage: percentage(percent(open.value.0.into(), inputs.spread.total))?,
        })
    }
}

impl TradingStats<'_> {
    fn new(inputs: &Inputs, median: Option<Cash>) -> Result<Self, TooLarge> {
        let Inputs { trades, outcomes, .. } = inputs;
        Ok(TradingStats {
            total_trades: trades.count(),
            total_buys: trades.buys,
            total_sells: trades.sells,
            total_wins: outcomes.wins,
            total_losses: outcomes.losses,
            active_trading_days: trades.days,
            unique_markets_traded: trades.markets_count() as u64,
            buy_sell_ratio: plain(ratio(trades.buys.into(), trades.sells.into()))?,
            total_volume: money(trades.volume)?,
            avg_trade_size: average(trades.volume, trades.count())?.map(Money),
            median_trade_size: median.map(Money),
            largest_trade: trades.largest().map(Money),
            smallest_trade: trades.smallest().map(Money),
            total_fees_paid: money(trades.fees)?,
            win_rate: win_rate(outcomes.wins, outcomes.closed),
            best_trade_pnl: outcomes.best.map(Money),
            worst_trade_pnl: outcomes.worst.map(Money),
            avg_win_pnl: average(outcomes.profit, outcomes.wins)?.map(Money),
            avg_loss_pnl: average(-outcomes.loss, outcomes.losses)?.map(Money),
            profit_factor: plain(ratio(outcomes.profit, outcomes.loss))?,
            first_trade_at: trades.first_at.map(scalar::Timestamp),
            last_trade_at: trades.last_at.map(scalar::Timestamp),
            avg_trades_per_day: plain(ratio(trades.count().into(), trades.days.into()))?,
        })
    }
}

impl<'a> RiskMetrics<'a> {
    fn new(inputs: &Inputs, marks: Marks<'a>) -> Result<RiskMetrics<'a>, TooLarge> {
        let Inputs { spread, open, chosen, points, .. } = inputs;
        let market = |open: &OpenPosition| Texts::of(marks.catalog, open.view.position.instrument).market();
        let total = i128::from(chosen.total.0);
        let cash = i128::from(chosen.available.0) + i128::from(chosen.reserved.0);
        Ok(RiskMetrics {
            open_position_count: open.len() as u64,
            largest_position_weight: percentage(spread.concentration(1))?,
            largest_position_market: open.first().map(|largest| market(largest).into()),
            top_3_concentration: percentage(spread.concentration(3))?,
            portfolio_diversity_score: plain(spread.diversity())?,
            avg_position_size: spread.average()?.map(Money),
            cash_percentage: percentage(percent(cash, total))?,
            invested_percentage: percentage(percent(spread.total, total))?,
            max_drawdown_7d: percentage(drawdown(since(points, days_ago(inputs, 7))))?,
            max_drawdown_30d: percentage(drawdown(since(points, days_ago(inputs, 30))))?,
        })
    }
}

impl EquityTimeline<'_> {
    fn new(inputs: &Inputs) -> Result<Self, TooLarge> {
        let points = &inputs.points;
        let window = since(points, inputs.equity_from);
        let (peak, trough) = extremes(window).unzip();
        Ok(EquityTimeline {
            return_7d: percentage(gain(since(points, days_ago(inputs, 7))))?,
            return_30d: percentage(gain(since(points, days_ago(inputs, 30))))?,
            return_all_time: percentage(gain(points))?,
            peak_value: peak.map(|(_, value)| Money(value)),
            peak_date: peak.map(|(at, _)| scalar::Timestamp(at)),
            trough_value: trough.map(|(_, value)| Money(value)),
            trough_date: trough.map(|(at, _)| scalar::Timestamp(at)),
            current_value: Money(inputs.chosen.total),
            snapshots_available: window.len() as u64,
            latest_snapshot_at: window.last().map(|(at, _)| scalar::Timestamp(*at)),
        })
    }
}

impl<'a> CategoryExposure<'a> {
    /// The categories of the open positions, by name.
    fn all(inputs: &Inputs, marks: Marks<'a>) -> Result<Vec<CategoryExposure<'a>>, TooLarge> {
        let mut categories: BTreeMap<&'static str, (u64, Cash)> = BTreeMap::new();
        for open in &inputs.open {
            let (count, value) = categories.entry(category(open, marks)).or_default();
            *count += 1;
            value.0 = value.0.saturating_add(open.value.0);
        }
        let row = |(category, (position_count, value)): (&'a str, (u64, Cash))| {
            Ok(CategoryExposure {
                category,
                position_count,
                total_value: Money(value),
                weight_percentage: percentage(percent(value.0.into(), inputs.spread.total))?,
            })
        };
        categories.into_iter().map(row).collect()
    }
}

impl<'a> AnalysisTrade<'a> {
    fn new(view: &FillView, marks: Marks<'a>) -> AnalysisTrade<'a> {
        let FillView { fill, order } = view;
        let texts = Texts::of(marks.catalog, order.terms.instrument);
        AnalysisTrade {
            order_id: order.id.0,
            market_id: texts.market().into(),
            market_question: texts.question(),
            side: words::side(order.terms.side).into(),
            outcome: texts.outcome(),
            price: Price(fill_price(order, fill)),
            quantity: fill.qty.into(),
            notional: Money(fill.notional),
            filled_at: scalar::Timestamp(fill.at),
        }
    }
}

fn days_ago(inputs: &Inputs, days: u64) -> Timestamp {
    Timestamp(inputs.now.0.saturating_sub(days * DAY))
}

fn category(open: &OpenPosition, marks: Marks<'_>) -> &'static str {
    let cell = marks.catalog.of_instrument(open.view.position.instrument);
    cell.and_then(|cell| cell.listing.category.name()).unwrap_or("unknown")
}

/// A sum in 10⁻⁶ USD.
fn money(micros: i128) -> Result<Money, TooLarge> {
    figures::cash(figures::exact(micros)?).map(Money)
}

/// Two decimals.
fn percentage(figure: Figure) -> Result<Option<Percentage<'static>>, TooLarge> {
    Ok(figure?.map(|figure| rounded(figure, PERCENT_PLACES).into()))
}

/// A ratio: two to six decimals.
fn plain(figure: Figure) -> Result<Option<scalar::Decimal<'static>>, TooLarge> {
    Ok(figure?.map(|figure| rounded(figure, RATIO_PLACES).into()))
}

/// Half up to this many decimals, without trailing zeros down to two.
fn rounded(figure: Decimal, places_max: u32) -> String {
    let mut figure = figure.round_dp_with_strategy(places_max, RoundingStrategy::MidpointAwayFromZero).normalize();
    if figure.scale() < 2 {
        figure.rescale(2);
    }
    if figure.is_zero() {
        figure.set_sign_positive(true);
    }
    figure.to_string()
}
