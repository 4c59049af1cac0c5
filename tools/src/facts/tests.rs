use super::*;
use engine::describe::{Field, Kind, Shape};
use engine::market::mutation::MarketMutation;
use engine::mutation::{Mutation, codec};
use std::fmt::Write as _;

/// One line per fact: its name, its bytes as hex.
const GOLDEN: &str = include_str!("../../../engine/src/state/mutation/codec/golden/5.txt");
const PAGE: &str = include_str!("../../../engine/docs/facts.md");

const HEAD: &str = "\
# Facts

`papertape log export` writes one line of JSON for each record of the log; the field `facts` has the facts of the record.
This page is generated from the tables that declare the facts (`engine/src/state/mutation.rs`,
`engine/src/market/mutation.rs`). A test compares it with them, and every example with its table.

## Records

| Field | Type | Meaning |
|---|---|---|
| `lsn` | integer | Number of the record, dense from 1. |
| `kind` | text | `Mutations`, `EpochStart`, `CleanStop` or `Padding`. Only the first has facts. |
| `version` | integer | Format that the facts were written in. They are always shown in the newest form. |
| `owner` | integer | The user that the facts are about; 0: markets. |
| `epoch` | integer | Number of the start of the process that wrote it. |
| `time_us` | integer | Server time, µs since 1970. Never less than in the record before, but for `ClockSetBack`. |
| `synced` | integer | Highest record that was on the device when this one was written. |
| `facts` | list | The facts of one command, in their order. |

A record of a newer format ends the export with an error that names its version. A field of an older format is never
renamed or removed; new fields come last, and are null in older records.

Ids are integers below 2⁵³. Bytes are lower-case hex.
";

/// Name of a type on the page.
fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::Flag => "true or false".to_owned(),
        Shape::Number { unit: "", .. } => "integer".to_owned(),
        Shape::Number { unit, .. } => format!("integer: {unit}"),
        Shape::Signed { unit } => format!("integer of either sign: {unit}"),
        Shape::Text => "text".to_owned(),
        Shape::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Shape::Bytes(count) => format!("{count} bytes"),
        Shape::Option(shape) => format!("{} or null", type_of(shape)),
        Shape::List(shape) => format!("list of {}", type_of(shape)),
        Shape::Record(_) => "object".to_owned(),
    }
}

/// A comment without the marks that only rustdoc understands.
fn plain(comment: &str) -> String {
    comment.trim().replace("[`", "`").replace("`]", "`")
}

/// A row for each field; the fields of an object follow it, prefixed with its name.
fn rows(page: &mut String, prefix: &str, fields: &[Field]) {
    for field in fields {
        let name = format!("{prefix}{}", field.name);
        writeln!(page, "| `{name}` | {} | {} |", type_of(&field.shape), plain(field.meaning)).expect("memory");
        match &field.shape {
            Shape::Record(fields)
            | Shape::Option(Shape::Record(fields))
            | Shape::List(Shape::Record(fields) | Shape::Option(Shape::Record(fields))) => {
                rows(page, &format!("{name}."), fields);
            }
            _ => {}
        }
    }
}

fn fact(page: &mut String, kind: &Kind, example: &serde_json::Value) {
    let Shape::Record(fields) = kind.shape else { panic!("a fact is a record: {}", kind.name) };
    write!(page, "\n### {}\n\n", kind.name).expect("memory");
    if !kind.meaning.is_empty() {
        write!(page, "{}\n\n", plain(kind.meaning)).expect("memory");
    }
    page.push_str("| Field | Type | Meaning |\n|---|---|---|\n");
    rows(page, "", fields);
    write!(page, "\n```json\n{example}\n```\n").expect("memory");
}

/// The first golden line of each fact, as JSON.
fn example(kind: &Kind) -> serde_json::Value {
    let line = GOLDEN.lines().find_map(|line| line.strip_prefix(kind.name)?.strip_prefix(' '));
    let hex = line.unwrap_or_else(|| panic!("golden bytes of {}", kind.name));
    let digits: Vec<u8> = hex.bytes().map(|b| (b as char).to_digit(16).expect("hex") as u8).collect();
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if MarketMutation::KINDS.contains(kind) {
        let fact = codec::decode::<MarketMutation>(codec::VERSION, &bytes).expect("ours").next().expect("one");
        let fact = fact.expect("golden bytes are a fact");
        return json(fact.name(), &fact.value());
    }
    let fact = codec::decode::<Mutation>(codec::VERSION, &bytes).expect("ours").next().expect("one");
    let fact = fact.expect("golden bytes are a fact");
    json(fact.name(), &fact.value())
}

/// Checks that a value has the type that the page states, and describes the first difference.
fn fits(value: &serde_json::Value, shape: &Shape, at: &str) -> Result<(), String> {
    let is_right = match shape {
        Shape::Flag => value.is_boolean(),
        Shape::Number { max, .. } => value.as_u64().is_some_and(|number| number <= *max),
        Shape::Signed { .. } => value.as_i64().is_some(),
        Shape::Text => value.is_string(),
        Shape::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Shape::Bytes(count) => value.as_str().is_some_and(|text| text.len() == 2 * count),
        Shape::Option(shape) => return if value.is_null() { Ok(()) } else { fits(value, shape, at) },
        Shape::List(shape) => {
            let values = value.as_array().ok_or_else(|| format!("{at} is not a list"))?;
            return values.iter().try_for_each(|value| fits(value, shape, at));
        }
        Shape::Record(fields) => {
            let object = value.as_object().ok_or_else(|| format!("{at} is not an object"))?;
            let names: Vec<&str> = object.keys().map(String::as_str).filter(|name| *name != "fact").collect();
            let mut expected: Vec<&str> = fields.iter().map(|field| field.name).collect();
            expected.sort_unstable();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            if sorted != expected {
                return Err(format!("{at} has {sorted:?}, not {expected:?}"));
            }
            return fields
                .iter()
                .try_for_each(|field| fits(&object[field.name], &field.shape, &format!("{at}.{}", field.name)));
        }
    };
    if is_right { Ok(()) } else { Err(format!("{at} is {value}, not {}", type_of(shape))) }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (title, kinds) in [("Facts about users", Mutation::KINDS), ("Facts about markets", MarketMutation::KINDS)] {
        write!(page, "\n## {title}\n").expect("memory");
        kinds.iter().for_each(|kind| fact(&mut page, kind, &example(kind)));
    }
    page
}

#[test]
fn every_fact_is_described_and_its_example_fits() {
    let mut cases = 0;
    for kind in Mutation::KINDS.iter().chain(MarketMutation::KINDS) {
        fits(&example(kind), &kind.shape, kind.name).unwrap_or_else(|error| panic!("{error}"));
        cases += 1;
    }
    // The check detects a value of the wrong type.
    let kind = Mutation::KINDS.iter().find(|kind| kind.name == "OrderClosed").expect("the field exists");
    for (name, wrong) in [("order", json!(-1)), ("reason", json!("Whim")), ("at", json!(null)), ("more", json!(1))] {
        let mut example = example(kind);
        example[name] = wrong;
        assert!(fits(&example, &kind.shape, kind.name).is_err(), "{name}");
    }
    let page = page();
    if std::env::var_os("WRITE_FACTS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/docs/facts.md"), &page).expect("a page");
        return;
    }
    println!("facts: {cases} examples");
    assert!(page == PAGE, "engine/docs/facts.md is out of date: WRITE_FACTS=1 cargo test -p tools facts");
}
