//! What a back-test is asked for: the body of its creation, which is also stored and read back, and the specification
//! that the command line takes (gateway/docs/simulation.md §6).

use super::fill::{LATENCY_MS_MAX, word};
use super::provenance::FillModelName;
use super::{ID_CHARS_MAX, LABEL_CHARS_MAX, OUTCOME_DEFAULT, missing};
use crate::api::orders::words::{SIDES, SideName, side};
use crate::http::code::Code;
use crate::http::record::{ByName, List, forms, record, write_record};
use crate::http::reply::Refusal;
use crate::http::scalar::words;
use engine::amount::{Cash, Qty};
use engine::backtest::{
    Field, FillModel, Haircut, Latency, Operator, PREDICATES_MAX, Predicate, SEEDS_MAX, SHARES_MAX, Strategy,
    Threshold, TickMode,
};
use engine::order::Side;
use engine::time::Timestamp;
use std::borrow::Cow;
use wire::decimal::{self, Decimal};
use wire::fields::{Body, Problems, is_longer};
use wire::instant;
use wire::value::Value;

/// Most markets of a request; a plan may allow fewer.
pub const MARKETS_MAX: usize = 100;
/// Highest bankroll, and the one of a request without any.
const BANKROLL_MAX: Cash = Cash::from_dollars(10_000_000);
const BANKROLL_DEFAULT: Cash = Cash::from_dollars(1_000);
/// Highest delay of the forms with a distribution.
const DRAWN_MS_MAX: u64 = 10_000;
const SEED_MAX: u64 = i64::MAX as u64;
const CONDITION: &str = "0x5151515151515151515151515151515151515151515151515151515151515151";

words! {
    pub SpecVersion = "1";
    pub FieldName = "price", "mid", "best_bid", "best_ask", "spread", "depth", "time_to_resolution_hours";
    pub OperatorName = "lt", "lte", "gt", "gte", "eq";
    pub TickModeName = "grid", "event";
}

forms! {
    pub SentLatency = Millis(#[schemars(range(max = LATENCY_MS_MAX))] u64), Constant(ConstantLatency),
        Uniform(UniformLatency), LogNormal(LogNormalLatency); SentLatency::Millis(0);
}

record! {
    /// A back-test to create. Other fields are ignored.
    pub struct NewBacktest<'a> {
        condition_ids: List<Condition<'a>, 1, MARKETS_MAX> = List(vec![Condition(CONDITION.into())]), "The markets, each once.";
        start: Cow<'a, str> = "2026-09-30T17:00:00Z".into();
        end: Cow<'a, str> = "2026-09-30T19:00:00Z".into(), "After the start, not in the future, not included.";
        strategy: StrategySpec<'a> = StrategySpec::example();
        initial_bankroll: Option<Cow<'a, str>> = Some("500".into()),
            "US dollars, above 0 and at most 10,000,000. Default 1000.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        token_ids: Option<ByName<Condition<'a>, Cow<'a, str>>> = None,
            "Tokens by market, in place of the outcome's label.", skip_serializing_if;
        tick_mode: Option<TickModeName> = None,
            "`grid` (default) decides every minute, `event` at every change of a book.", skip_serializing_if;
        #[schemars(range(max = SEED_MAX))]
        seed: Option<u64> = None, "The first seed. Default 0.", skip_serializing_if;
        #[schemars(range(min = 1, max = SEEDS_MAX))]
        seeds: Option<u64> = None, "Count of seeds. Default 1.", skip_serializing_if;
        latency_ms: Option<SentLatency> = None,
            "Delay between decision and order. Default 0.", skip_serializing_if;
        haircut: Option<Cow<'a, str>> = None,
            "The part of each level that may be missing, 0 to 0.9. Default 0.", skip_serializing_if;
    }

    /// What is traded in each market, and when.
    pub struct StrategySpec<'a> {
        spec_version: Option<SpecVersion> = Some("1".into()), skip_serializing_if;
        side: Option<SideName> = Some("BUY".into()), "SELL buys the other outcome. Default `BUY`.", skip_serializing_if;
        #[schemars(length(max = LABEL_CHARS_MAX))]
        outcome: Option<Cow<'a, str>> = Some("Yes".into()), "Label, in any case. Default `Yes`.", skip_serializing_if;
        size: Cow<'a, str> = "25".into(), "Shares of an entry, above 0, cut down to four decimals.";
        fill_model: Option<FillModelName> = Some("depth_walk".into()), "Default `depth_walk`.", skip_serializing_if;
        entry: Option<List<PredicateSpec<'a>, 0, PREDICATES_MAX>> = Some(List(vec![PredicateSpec::example()])),
            "All must hold; without one the first decision enters.", skip_serializing_if;
        exit: Option<List<PredicateSpec<'a>, 0, PREDICATES_MAX>> = Some(List(vec![PredicateSpec {
            field: "price".into(), op: "gte".into(), value: "0.45".into(),
        }])), "All must hold; without one the position is held to the end.", skip_serializing_if;
    }

    /// A comparison with a constant. One about an unknown figure does not hold.
    pub struct PredicateSpec<'a> {
        field: FieldName = "price".into(), "`price` is the best ask to enter and the best bid to leave; `depth` the shares there.";
        op: OperatorName = "lte".into();
        value: Cow<'a, str> = "0.31".into();
    }

    /// A fixed delay.
    pub struct ConstantLatency {
        #[schemars(range(max = DRAWN_MS_MAX))]
        constant: u64 = 250;
    }

    /// A delay between two ends.
    pub struct UniformLatency {
        uniform: List<Millis, 2, 2> = List(vec![Millis(100), Millis(300)]);
    }

    /// A delay of a log-normal distribution.
    pub struct LogNormalLatency {
        lognormal: LogNormalFigures = LogNormalFigures::example();
    }

    /// Its median, its 99th percentile, and the longest delay: 0 < p50 < p99 ≤ max.
    pub struct LogNormalFigures {
        p50: u64 = 60;
        p99: u64 = 250;
        #[schemars(range(max = DRAWN_MS_MAX))]
        max: u64 = 2_000;
    }
}

/// The fields of a request, of its strategy and of a predicate.
const FIELDS: [&str; 11] = [
    "condition_ids",
    "start",
    "end",
    "strategy",
    "initial_bankroll",
    "token_ids",
    "tick_mode",
    "seed",
    "seeds",
    "latency_ms",
    "haircut",
];
const STRATEGY_FIELDS: [&str; 7] = ["spec_version", "side", "outcome", "size", "fill_model", "entry", "exit"];
const PREDICATE_FIELDS: [&str; 3] = ["field", "op", "value"];

/// The first field of a request that no part of it has, like `strategy.sise`; `None`: there is none. The route ignores
/// such fields, as all routes do; the command refuses them: a misspelt one would change the result unseen.
pub fn unknown_field(value: &Value<'_>) -> Option<String> {
    let of_strategy = || {
        let strategy = value.get("strategy")?;
        unknown_in(strategy, &STRATEGY_FIELDS).map(|name| format!("strategy.{name}")).or_else(|| {
            ["entry", "exit"].into_iter().find_map(|list| {
                let Some(Value::Array(predicates)) = strategy.get(list) else { return None };
                let name = predicates.iter().find_map(|predicate| unknown_in(predicate, &PREDICATE_FIELDS))?;
                Some(format!("strategy.{list}.{name}"))
            })
        })
    };
    unknown_in(value, &FIELDS).map(str::to_owned).or_else(of_strategy)
}

/// The first field of an object that is not one of these.
fn unknown_in<'a>(value: &'a Value<'_>, known: &[&str]) -> Option<&'a str> {
    let Value::Object(fields) = value else { return None };
    fields.iter().map(|(name, _)| &**name).find(|name| !known.contains(name))
}

/// A condition id as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Condition<'a>(#[schemars(length(min = 1, max = ID_CHARS_MAX))] Cow<'a, str>);

impl crate::http::record::Record for Condition<'_> {
    fn example() -> Self {
        Condition(CONDITION.into())
    }
}

/// A count of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Millis(#[schemars(range(max = DRAWN_MS_MAX))] u64);

impl crate::http::record::Record for Millis {
    fn example() -> Self {
        Millis(100)
    }
}

/// A valid request in itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// 1 to [`MARKETS_MAX`], each once.
    pub conditions: Vec<String>,
    pub start: Timestamp,
    pub end: Timestamp,
    pub strategy: Strategy,
    pub bankroll: Cash,
    /// Tokens by condition.
    pub tokens: Vec<(String, String)>,
    pub tick_mode: TickMode,
    pub seed: u64,
    pub seeds: u16,
    pub latency: Latency,
    pub haircut: Haircut,
}

impl Spec {
    /// Reads a request made at `now`.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, then `INVALID_WINDOW`, then `INVALID_REQUEST` for a token of a market that is not asked for.
    pub fn read(value: &Value<'_>, now: Timestamp) -> Result<Spec, Refusal> {
        let mut body = Body::new(value);
        let conditions = conditions(&mut body);
        let times = ["start", "end"].map(|name| {
            if body.get(name).is_none() {
                body.missing(name);
            }
            body.text(name, ID_CHARS_MAX)
        });
        let strategy = strategy(&mut body);
        let bankroll = bankroll(&mut body);
        let tokens = tokens(&mut body);
        let tick_mode =
            word(&mut body, "tick_mode", &[TickMode::Grid, TickMode::Event].map(|mode| (mode.name(), mode)));
        let seed = body.integer("seed", 0..=SEED_MAX).unwrap_or(0);
        let seeds = body.integer("seeds", 1..=u64::from(SEEDS_MAX)).unwrap_or(1);
        let latency = latency(&mut body);
        let haircut = haircut(&mut body);
        if !body.problems.is_empty() {
            return Err(Refusal::validation(&body.problems));
        }
        let [start, end] = times.map(|text| instant::read(text.unwrap_or_default()));
        let wrong = |why| Err(Refusal::new(Code::InvalidWindow, why));
        let (Some(start), Some(end)) = (start, end) else { return wrong("start or end is not a time.") };
        if start >= end {
            return wrong("start is not before end.");
        }
        if end > now {
            return wrong("end is in the future.");
        }
        let (conditions, tokens) = (conditions.unwrap_or_default(), tokens.unwrap_or_default());
        if tokens.iter().any(|(condition, _)| !conditions.contains(condition)) {
            return Err(Refusal::new(Code::InvalidRequest, "token_ids names a market that is not in condition_ids."));
        }
        let strategy = strategy.ok_or(Code::ValidationFailed)?;
        let (tick_mode, seeds) = (tick_mode.unwrap_or_default(), seeds as u16);
        Ok(Spec { conditions, start, end, strategy, bankroll, tokens, tick_mode, seed, seeds, latency, haircut })
    }

    /// The request with every default, as it is stored.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        write_record(&mut out, &self.record());
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    /// Market hours in thousandths, rounded up.
    pub fn market_hours(&self) -> u64 {
        const PER_THOUSANDTH: u64 = engine::time::HOUR / 1_000;
        (self.end.since(self.start) * self.conditions.len() as u64).div_ceil(PER_THOUSANDTH)
    }

    fn record(&self) -> NewBacktest<'_> {
        let condition = |text: &String| Condition(text.clone().into());
        let ts = |at| Cow::Owned(instant::ts_text(at));
        let tokens = || self.tokens.iter().map(|(market, token)| (condition(market), token.into())).collect();
        let predicates = |of: &[Predicate]| {
            let row = |of: &Predicate| PredicateSpec {
                field: of.field.name().into(),
                op: of.operator.name().into(),
                value: picos_text(of.value.0).into(),
            };
            Some(List(of.iter().map(row).collect()))
        };
        let strategy = &self.strategy;
        NewBacktest {
            condition_ids: List(self.conditions.iter().map(condition).collect()),
            start: ts(self.start),
            end: ts(self.end),
            strategy: StrategySpec {
                spec_version: Some("1".into()),
                side: Some(side(strategy.side).into()),
                outcome: Some((&strategy.outcome).into()),
                size: decimal::text(|out| decimal::qty(out, strategy.size)).into(),
                fill_model: Some(strategy.model.into()),
                entry: predicates(&strategy.entry),
                exit: predicates(&strategy.exit),
            },
            initial_bankroll: Some(decimal::text(|out| decimal::money(out, self.bankroll)).into()),
            token_ids: (!self.tokens.is_empty()).then(|| ByName(tokens())),
            tick_mode: Some(self.tick_mode.name().into()),
            seed: Some(self.seed),
            seeds: Some(self.seeds.into()),
            latency_ms: Some(match self.latency {
                Latency::Constant(millis) => SentLatency::Millis(millis.into()),
                Latency::Uniform(from, to) => {
                    let uniform = List([from, to].map(|millis| Millis(millis.into())).into());
                    SentLatency::Uniform(UniformLatency { uniform })
                }
                Latency::LogNormal { p50, p99, max } => {
                    let lognormal = LogNormalFigures { p50: p50.into(), p99: p99.into(), max: max.into() };
                    SentLatency::LogNormal(LogNormalLatency { lognormal })
                }
            }),
            haircut: Some(decimal::text(|out| decimal::vol(out, u64::from(self.haircut.0) * 100)).into()),
        }
    }
}

/// A number in units of 10⁻¹², as a decimal without trailing zeros.
fn picos_text(picos: i128) -> String {
    let one = 1_000_000_000_000_u128;
    let (sign, magnitude) = (if picos < 0 { "-" } else { "" }, picos.unsigned_abs());
    let text = format!("{sign}{}.{:012}", magnitude / one, magnitude % one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn conditions(body: &mut Body<'_, '_>) -> Option<Vec<String>> {
    let wrong = match body.get("condition_ids") {
        None => {
            body.missing("condition_ids");
            return None;
        }
        Some(Value::Array(items)) if (1..=MARKETS_MAX).contains(&items.len()) => {
            let text = |item: &Value<'_>| match item {
                Value::Text(text) if !text.is_empty() && !is_longer(text, ID_CHARS_MAX) => Some(text.to_string()),
                _ => None,
            };
            let conditions: Option<Vec<String>> = items.iter().map(text).collect();
            match conditions {
                Some(conditions) if is_distinct(&conditions) => return Some(conditions),
                Some(_) => ("duplicate", "names a market twice"),
                None => ("string_type", "holds something else than ids of 1 to 256 characters"),
            }
        }
        Some(Value::Array(_)) => ("list_length", "has not 1 to 100 items"),
        Some(_) => ("list_type", "is not a list"),
    };
    body.problems.add("body", "condition_ids", wrong.0, wrong.1);
    None
}

fn is_distinct(texts: &[String]) -> bool {
    let mut sorted: Vec<&String> = texts.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

fn tokens(body: &mut Body<'_, '_>) -> Option<Vec<(String, String)>> {
    let fields = match body.get("token_ids")? {
        Value::Object(fields) if fields.len() <= MARKETS_MAX => fields,
        _ => {
            body.problems.add("body", "token_ids", "dict_type", "is not an object of at most 100 tokens by market");
            return None;
        }
    };
    let token = |(market, token): &(Cow<'_, str>, Value<'_>)| match token {
        Value::Text(token) if !is_longer(token, ID_CHARS_MAX) => Some((market.to_string(), token.to_string())),
        _ => None,
    };
    let tokens: Option<Vec<_>> = fields.iter().map(token).collect();
    if tokens.is_none() {
        body.problems.add("body", "token_ids", "string_type", "holds something else than token ids");
    }
    tokens
}

fn bankroll(body: &mut Body<'_, '_>) -> Cash {
    let Some(sent) = body.decimal("initial_bankroll") else { return BANKROLL_DEFAULT };
    match sent.cash_exact().filter(|cash| *cash > Cash::ZERO && *cash <= BANKROLL_MAX) {
        Some(cash) => cash,
        None => {
            let message = "is not above 0 and at most 10000000, with at most 6 decimals";
            body.problems.add("body", "initial_bankroll", "decimal_range", message);
            BANKROLL_DEFAULT
        }
    }
}

fn haircut(body: &mut Body<'_, '_>) -> Haircut {
    let Some(sent) = body.decimal("haircut") else { return Haircut(0) };
    match sent.price_exact().filter(|part| part.0 <= Haircut::MAX.0) {
        Some(part) => Haircut(part.0),
        None => {
            body.problems.add("body", "haircut", "decimal_range", "is not 0 to 0.9, with at most 4 decimals");
            Haircut(0)
        }
    }
}

fn latency(body: &mut Body<'_, '_>) -> Latency {
    let drawn = |value: &Value<'_>| match value {
        Value::Number(text) => {
            text.parse().ok().filter(|millis: &u64| *millis <= DRAWN_MS_MAX).map(|millis| millis as u32)
        }
        _ => None,
    };
    let found = match body.get("latency_ms") {
        None => return Latency::default(),
        Some(Value::Number(text)) => {
            let millis = text.parse().ok().filter(|millis: &u64| *millis <= LATENCY_MS_MAX);
            millis.map(|millis| Latency::Constant(millis as u32))
        }
        Some(Value::Object(fields)) => match &fields[..] {
            [(name, value)] if name == "constant" => drawn(value).map(Latency::Constant),
            [(name, Value::Array(ends))] if name == "uniform" => {
                match ends.iter().map(drawn).collect::<Option<Vec<_>>>() {
                    Some(ends) if ends.len() == 2 && ends[0] <= ends[1] => Some(Latency::Uniform(ends[0], ends[1])),
                    _ => None,
                }
            }
            [(name, figures @ Value::Object(_))] if name == "lognormal" => log_normal(figures, drawn),
            _ => None,
        },
        Some(_) => None,
    };
    found.unwrap_or_else(|| {
        let message = "is none of 0 to 60000, constant, uniform, lognormal, with at most 10000 ms in the last three";
        body.problems.add("body", "latency_ms", "latency_form", message);
        Latency::default()
    })
}

fn log_normal(figures: &Value<'_>, drawn: impl Fn(&Value<'_>) -> Option<u32>) -> Option<Latency> {
    let figure = |name| figures.get(name).and_then(&drawn);
    if unknown_in(figures, &["p50", "p99", "max"]).is_some() {
        return None;
    }
    let (p50, p99, max) = (figure("p50")?, figure("p99")?, figure("max")?);
    (0 < p50 && p50 < p99 && p99 <= max).then_some(Latency::LogNormal { p50, p99, max })
}

fn strategy(body: &mut Body<'_, '_>) -> Option<Strategy> {
    let fields = match body.get("strategy") {
        Some(fields @ Value::Object(_)) => fields,
        Some(other) => {
            let message = format!("is {}, not an object", other.kind());
            body.problems.add("body", "strategy", "dict_type", message);
            return None;
        }
        None => {
            body.missing("strategy");
            return None;
        }
    };
    let mut inner = Body::new(fields);
    word(&mut inner, "spec_version", &[("1", ())]);
    let side = word(&mut inner, "side", &SIDES).unwrap_or(Side::Buy);
    let outcome = inner.text("outcome", LABEL_CHARS_MAX).unwrap_or(OUTCOME_DEFAULT).to_owned();
    let size = size(&mut inner);
    let models = FillModel::ALL.map(|model| (model.name(), model));
    let model = word(&mut inner, "fill_model", &models).unwrap_or_default();
    let (entry, exit) = (predicates(&mut inner, "entry"), predicates(&mut inner, "exit"));
    if !inner.problems.is_empty() {
        let message = inner.problems.message();
        body.problems.add("body", "strategy", "value_error", message);
        return None;
    }
    Some(Strategy { side, outcome, size, model, entry, exit })
}

fn size(body: &mut Body<'_, '_>) -> Qty {
    if body.get("size").is_none() {
        missing(&mut body.problems, "body", "size");
    }
    let Some(sent) = body.decimal("size") else { return Qty::ZERO };
    let (qty, _) = sent.order_qty_down().unwrap_or_default();
    if qty.is_zero() || sent > Decimal::from(SHARES_MAX) {
        body.problems.add("body", "size", "decimal_range", "is not at least 0.0001 and at most 1000000");
    }
    qty
}

fn predicates(body: &mut Body<'_, '_>, name: &str) -> Vec<Predicate> {
    let items = match body.get(name) {
        None => return Vec::new(),
        Some(Value::Array(items)) if items.len() <= PREDICATES_MAX => items,
        Some(Value::Array(_)) => {
            body.problems.add("body", name, "list_length", format!("has more than {PREDICATES_MAX} items"));
            return Vec::new();
        }
        Some(other) => {
            body.problems.add("body", name, "list_type", format!("is {}, not a list", other.kind()));
            return Vec::new();
        }
    };
    items.iter().filter_map(|item| predicate(item, &mut body.problems, name)).collect()
}

fn predicate(item: &Value<'_>, problems: &mut Problems, name: &str) -> Option<Predicate> {
    let text = |field: &str| match item.get(field) {
        Some(Value::Text(text)) => Some(&**text),
        _ => None,
    };
    let field = text("field").and_then(|text| Field::ALL.into_iter().find(|field| field.name() == text));
    let operator = text("op").and_then(|text| Operator::ALL.into_iter().find(|operator| operator.name() == text));
    let value = match item.get("value") {
        Some(Value::Text(text)) => Decimal::parse(text).ok(),
        Some(Value::Number(text)) => Decimal::parse(text).ok(),
        _ => None,
    };
    let found = field.zip(operator).zip(value);
    if found.is_none() {
        problems.add(
            "body",
            name,
            "predicate",
            "has a predicate without a known field, a known op and a decimal value",
        );
    }
    found.map(|((field, operator), value)| Predicate { field, operator, value: Threshold(value.picos()) })
}

#[cfg(test)]
mod tests;
