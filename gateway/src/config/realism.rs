//! `[realism]`: the sets of the server, and the one of keys without a choice.

use super::source::Values;
use super::table::texts;
use engine::amount::Bps;
use engine::realism::{
    DEPTH_SHARE_MIN, EXPONENT_MAX, FillModel, FillTerms, HALF_LIFE_S_MAX, MATCH_WINDOW_MS_MAX, RealismSet, RealismSets,
    WHOLE,
};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Settings of a set. Of an environment variable the last part is one of them.
const FIELDS: [&str; 7] = ["base", "fill_model", "n", "cancel_share", "depth_share", "match_window_ms", "half_life_s"];

/// The sets of the settings.
///
/// # Errors
/// Everything that is wrong, one line each, with the key and the allowed values.
pub(super) fn sets(values: &Values) -> Result<RealismSets, Vec<String>> {
    let mut sets = RealismSets::default();
    sets.set_kind_model(values.word("realism.fill_model"));
    let (mut errors, mut named) = (Vec::new(), BTreeMap::<&str, BTreeMap<&str, &str>>::new());
    // An empty text is that of a variable that was read by the key of the file.
    for (key, text) in values.entries("realism.sets").iter().filter(|(_, text)| !text.is_empty()) {
        match parts(key) {
            Some((name, field)) => drop(named.entry(name).or_default().insert(field, text)),
            None => errors.push(format!(
                "realism.sets.{key}: unknown key; allowed are {} below the name of a set: letters from a to z, digits, - and _",
                FIELDS.join(", ")
            )),
        }
    }
    // A base may be a set of the same file, in any order; one that needs itself never gets one.
    while !named.is_empty() {
        let ready = |fields: &BTreeMap<&str, &str>| fields.get("base").is_none_or(|base| sets.get(base).is_some());
        let Some(name) = named.iter().find(|(_, fields)| ready(fields)).map(|(name, _)| *name) else { break };
        let fields = named.remove(name).unwrap_or_default();
        let Some(base) = fields.get("base").and_then(|base| sets.get(base)) else {
            errors.push(format!("realism.sets.{name}.base: must be set; allowed is {}", sets.names()));
            continue;
        };
        let mut fill = base.fill;
        for (field, text) in fields.into_iter().filter(|(field, _)| *field != "base") {
            if let Err(allowed) = read(&mut fill, field, text) {
                errors.push(format!("realism.sets.{name}.{field}: allowed is {allowed}"));
            }
        }
        if sets.get(name).is_some() {
            errors.push(format!("realism.sets.{name}: allowed is another name than those of the built-in sets"));
        } else {
            // Out of bounds only after an error.
            sets.add(RealismSet { name: name.into(), fill });
        }
    }
    errors.extend(named.keys().map(|name| format!("realism.sets.{name}.base: allowed is {}", sets.names())));
    let default = values.text("realism.default");
    if !sets.choose_by_default(default) {
        errors.push(format!("realism.default: allowed is {}", sets.names()));
    }
    if errors.is_empty() { Ok(sets) } else { Err(errors) }
}

/// Name and field of a key: `name.field`, or `name_field` of a variable.
fn parts(key: &str) -> Option<(&str, &str)> {
    let of = |field: &&'static str| key.strip_suffix(*field).and_then(|rest| rest.strip_suffix(['.', '_']));
    let (name, field) = FIELDS.iter().find_map(|field| Some((of(field)?, *field)))?;
    texts::is_set_name(name).then_some((name, field))
}

/// Reads one setting.
fn read(fill: &mut FillTerms, field: &str, text: &str) -> Result<(), String> {
    match field {
        "fill_model" => {
            let names = || FillModel::ALL.map(FillModel::name).join(", ");
            fill.model = FillModel::named(text).ok_or_else(names)?;
        }
        "n" => fill.n = integer(text, 1..=EXPONENT_MAX.into())? as u16,
        "cancel_share" => fill.cancel_share = share(text, Bps(0))?,
        "depth_share" => fill.depth_share = share(text, DEPTH_SHARE_MIN)?,
        "match_window_ms" => fill.match_window_ms = integer(text, 0..=MATCH_WINDOW_MS_MAX)?,
        _ => fill.half_life_s = integer(text, 1..=HALF_LIFE_S_MAX)?,
    }
    Ok(())
}

fn integer(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let found = text.parse().ok().filter(|number| range.contains(number));
    found.ok_or_else(|| format!("an integer from {} to {}", range.start(), range.end()))
}

/// A part of the whole, with at most four decimals.
fn share(text: &str, least: Bps) -> Result<Bps, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let bps = (is_number(whole) && is_number(part)).then(|| {
        let ten_thousandths = format!("{part:0<4}").parse::<u32>().unwrap_or(u32::MAX);
        whole.parse::<u32>().unwrap_or(u32::MAX).saturating_mul(WHOLE.0).saturating_add(ten_thousandths)
    });
    let allowed =
        || format!("a number from {} to 1 with at most four decimals", if least.0 == 0 { "0" } else { "0.01" });
    bps.map(Bps).filter(|bps| (least..=WHOLE).contains(bps)).ok_or_else(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_four_decimals_at_most() {
        let rows = [
            ("0", Some(0)),
            ("1", Some(10_000)),
            ("1.0", Some(10_000)),
            ("0.5", Some(5_000)),
            ("0.0001", Some(1)),
            ("0.00001", None),
            ("1.0001", None),
            ("2", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("-0.5", None),
            ("1e-1", None),
            ("0.5x", None),
            ("99999", None),
        ];
        for (text, expected) in rows {
            assert_eq!(share(text, Bps(0)).ok().map(|bps| bps.0), expected, "{text:?}");
        }
        assert!(share("0.0099", DEPTH_SHARE_MIN).is_err() && share("0.01", DEPTH_SHARE_MIN).is_ok());
        println!("shares: {} cases", rows.len() + 2);
    }

    #[test]
    fn a_key_is_a_name_and_a_field() {
        let rows = [
            ("mine.n", Some(("mine", "n"))),
            ("mine_n", Some(("mine", "n"))),
            ("my_own.fill_model", Some(("my_own", "fill_model"))),
            ("my_own_match_window_ms", Some(("my_own", "match_window_ms"))),
            ("mine.delay", None),
            ("mine", None),
            ("n", None),
            (".n", None),
            ("a.b.n", None),
            ("Mine.n", None),
        ];
        for (key, expected) in rows {
            assert_eq!(parts(key), expected, "{key:?}");
        }
        println!("keys of sets: {} cases", rows.len());
    }
}
