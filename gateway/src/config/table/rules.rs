//! Rows of order rules, route gates, fees, keys and streams.

use super::{is_own_machine_only, texts};
use crate::config::setting::{Setting, boolean, integer, list, map, moment, optional_word, switch, text, word, words};
use crate::config::source::Values;
use crate::config::{OrderEvents, SUBSCRIPTIONS_MAX};
use engine::market::terms::Category;
use engine::realism::FillModel;
use engine::rules::{FeeRates, Rules};

pub(super) fn rows() -> Vec<Setting> {
    [gates(), rollout(), orders(), realism(), fees(), accounts(), reads()].into_iter().flatten().collect()
}

fn gates() -> Vec<Setting> {
    vec![
        boolean("flags.high_freq_updown_enabled", false, "Lists up-or-down markets of five and fifteen minutes."),
        boolean("flags.chart_archive_read_enabled", false, "Opens the route of archived charts; without it: 404."),
        boolean("flags.feature_simulation_api_enabled", false, "Opens `/v1/simulation`; without it: 404."),
        boolean("flags.closed_beta_mode", false, "Users that are not admitted get no key: 403 `CLOSED_BETA`."),
        boolean(
            "flags.paid_keys_enabled",
            true,
            "Keys of paid tiers are issued; without it: 403 `API_PRO_COMING_SOON`.",
        ),
        boolean("flags.allowlist_enabled", false, "Only accounts of `access.allowlist` are let in."),
        integer("flags.cohort_cap", 0, 0..=1_000_000_000, "Active beta users at most; 0: no bound."),
    ]
}

/// The value of `auto` for the seven switches of order semantics.
fn umbrella(values: &Values) -> bool {
    values.boolean("flags.order_semantics_v2_enabled")
}

fn rollout() -> Vec<Setting> {
    let one = |key: &'static str, meaning: &'static str| {
        switch(key, umbrella, "`auto`: as `flags.order_semantics_v2_enabled`", meaning)
    };
    vec![
        boolean("flags.order_semantics_v2_enabled", true, "What `auto` means for the seven switches below."),
        one(
            "flags.fak_partial_fills",
            "FAK and IOC fill what is there. Off: all or nothing, `INSUFFICIENT_LIQUIDITY`.",
        ),
        one(
            "flags.fok_depth_aware",
            "FOK needs its whole size inside its limit. Off: it checks only the best price and fills whole.",
        ),
        one("flags.gtd_auto_expiry", "GTD orders expire. Off: native GTD is refused, venue GTD rests as GTC."),
        one("flags.post_only_enforced", "`post_only` is checked. Off: it is ignored."),
        one("flags.min_order_size_enforced", "Minimum sizes are checked. Off: any size above 0.0001 shares."),
        one(
            "flags.book_impact_depletion",
            "What a user took of a level is gone for that user until the venue changes the level.",
        ),
        one("flags.maker_fill_at_limit", "Resting orders fill at their own limit. Off: at the walked price."),
    ]
}

fn orders() -> Vec<Setting> {
    vec![
        words(
            "flags.depletion_scope",
            "all",
            ["all", "limit_only"],
            "Which orders see and cause depletion; with `limit_only` market orders do neither.",
        ),
        boolean(
            "flags.trade_require_book_depth",
            true,
            "Orders without depth are refused. Off: they fill at the last known price within bounds.",
        ),
        integer(
            "flags.trade_quote_max_age_ms",
            60_000,
            1..=86_400_000,
            "Age of a quote above which immediate orders are refused with `STALE_QUOTE`, in milliseconds.",
        ),
        boolean("flags.trade_quote_max_age_enforce", true, "Off: a quote that is too old is a warning only."),
        boolean(
            "flags.emergency_exit_enabled",
            true,
            "A market SELL after the end date of a market without bids fills at the entry price. Off: `MARKET_CLOSED`.",
        ),
        integer(
            "flags.fok_shortfall_tolerance_shares",
            0,
            0..=1_000,
            "Shares that a FOK order may lack and still fill.",
        ),
        boolean(
            "flags.sync_gtc_match",
            true,
            "A marketable GTC or GTD order fills at placement. Off: in the next matching cycle, as taker.",
        ),
        integer(
            "flags.warn_slippage_bps",
            500,
            0..=1_000_000,
            "Slippage from which a response warns, in basis points.",
        ),
        integer("flags.api_reset_cooldown_days", 0, 0..=365, "Days between two resets of an API wallet."),
        integer("flags.match_interval_ms", 1_000, 10..=60_000, "Period of the matching cycle, in milliseconds."),
        integer("flags.max_shares_per_order", 1_000_000, 1..=1_000_000_000, "Shares of one order at most."),
    ]
}

fn realism() -> Vec<Setting> {
    vec![
        word(
            "realism.fill_model",
            FillModel::Cross,
            "The fill model of the set `kind`. `touch`: resting orders fill when the book reaches their limit. `cross`: \
             also immediately when the venue trades through it.",
        ),
        text(
            "realism.default",
            "kind",
            texts::SET_NAME,
            "The set of keys for which none was chosen: `kind`, `venue`, `thin`, `brutal`, or one of `realism.sets`.",
        ),
        switch(
            "realism.self_service",
            is_own_machine_only,
            "`auto`: only where no other machine reaches the listener",
            "Owners choose the sets of their keys; else only the operator does.",
        ),
        map(
            "realism.sets",
            texts::ANY,
            "Further sets: `[realism.sets.NAME]` has `base`, the set whose settings it has, and any of `fill_model` (touch, \
             cross, through, queue, queue_prob), `n` (1 to 3), `cancel_share` (0 to 1), `depth_share` (0.01 to 1), \
             `match_window_ms` (0 to 10000) and `half_life_s` (1 to 86400).",
        ),
    ]
}

fn fees() -> Vec<Setting> {
    let fees = Rules::default().fees;
    let rows = Category::ALL.into_iter().map(|category| {
        let (name, meaning) = match category.name() {
            Some(name) => (name, format!("Taker rate of category {name}.")),
            None => ("unknown", "Taker rate of markets of no known category.".to_owned()),
        };
        integer(format!("fees.{name}"), fees.rate(category).0.into(), 0..=10_000, meaning)
    });
    let names = map(
        "fees.category_map",
        texts::CATEGORY,
        "Fee categories of further category names of venues; the key is the venue's name of the category, in any case.",
    );
    let charged = [
        optional_word::<FeeRates>(
            "fees.source",
            "`table`",
            "`auto`: fills of a market that states its own fees are charged by those, as they are at the match. `table`: \
             the rates above, as they are at the placement. Synthetic markets state none.",
        ),
        word(
            "fees.rounding",
            fees.rounding,
            "How the fee of each level is rounded to 5 decimals. Fees that Kalshi states are rounded up to 4.",
        ),
        words(
            "fees.maker_rebate",
            "off",
            ["off", "accrue"],
            "`accrue`: makers earn the rebate that their market states, and are paid at 00:00 UTC from 1 USD on.",
        ),
    ];
    rows.chain([names]).chain(charged).collect()
}

fn accounts() -> Vec<Setting> {
    vec![
        moment(
            "keys.free_trade_since",
            Some(Rules::default().free_trade_since),
            "Keys of the free tier that were issued earlier are read-only.",
        ),
        moment(
            "keys.beta_until",
            None,
            "Keys issued before this time are beta keys; at it they become free and read-only.",
        ),
        boolean(
            "keys.readonly_contained",
            false,
            "A read-only key makes no key that may do more than itself (none at all once it has an end), renames, \
             replaces and revokes only itself, and resets no balance. Off: any active key manages all keys of its account.",
        ),
        list(
            "access.allowlist",
            &[],
            texts::ACCOUNT,
            "Accounts that are let in while `flags.allowlist_enabled` is on.",
        ),
        list("access.flagged", &[], texts::ACCOUNT, "Accounts that are refused with 403 `ACCESS_RESTRICTED`."),
        list("access.disabled_keys", &[], texts::KEY, "Keys that are refused with 401 `KEY_DEACTIVATED`."),
    ]
}

fn reads() -> Vec<Setting> {
    vec![
        integer(
            "book.stale_after_s",
            30,
            1..=3_600,
            "A book without news for this long is shown as stale, in seconds.",
        ),
        integer(
            "export.max_rows",
            100_000,
            1..=100_000_000,
            "Rows of one CSV export; a line after the last one says that there are more.",
        ),
        integer(
            "streams.max_subscriptions",
            500,
            SUBSCRIPTIONS_MAX as u64..=100_000,
            "Ids that one socket of a user of the highest tier may subscribe to; every other socket may have 50.",
        ),
        // `true` and `false` are the values of earlier versions.
        word(
            "streams.order_events",
            OrderEvents::Strict,
            "Which sockets of `/v1/ws/user` get `order` frames: those of the strict dialect and those that ask by \
             `auth.order_events`, all, or none. `true` and `false` mean `all` and `off`.",
        )
        .synonyms(&[("true", "all"), ("false", "off")]),
    ]
}
