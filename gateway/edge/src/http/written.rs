//! Rows that are serialised one by one, so that a long list is written with other work in between.

use super::record::Record;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The text of a record, with the schema of the record.
#[derive(Debug)]
pub struct Written<R> {
    text: Box<RawValue>,
    record: PhantomData<fn() -> R>,
}

impl<R: Serialize> Written<R> {
    /// Serialises a record.
    pub fn new(record: &R) -> Written<R> {
        let text = to_raw_value(record).expect("a record has texts as names, and its fields do not fail");
        Written { text, record: PhantomData }
    }
}

/// Serialises rows, and yields to other tasks of the thread after every `per_turn` of them.
pub async fn written<R: Serialize>(rows: impl IntoIterator<Item = R>, per_turn: usize) -> Vec<Written<R>> {
    let mut list = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        if at > 0 && at % per_turn == 0 {
            tokio::task::yield_now().await;
        }
        list.push(Written::new(&row));
    }
    list
}

impl<R> Serialize for Written<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<R: JsonSchema> JsonSchema for Written<R> {
    fn inline_schema() -> bool {
        R::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        R::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        R::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        R::json_schema(generator)
    }
}

impl<R: Record> Record for Written<R> {
    fn example() -> Written<R> {
        Written::new(&R::example())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::record::{record, write_record};

    record! {
        struct Row {
            at: u64 = 7;
        }
    }

    #[test]
    fn written_rows_have_the_text_and_the_schema_of_their_records() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let rows = runtime.block_on(written((0..5).map(|at| Row { at }), 2));
        let mut out = Vec::new();
        write_record(&mut out, &rows);
        assert_eq!(String::from_utf8(out).unwrap(), r#"[{"at":0},{"at":1},{"at":2},{"at":3},{"at":4}]"#);
        assert_eq!(serde_json::to_value(Vec::<Written<Row>>::example()).unwrap().to_string(), r#"[{"at":7}]"#);
        let mut generator = SchemaGenerator::default();
        let of_row = generator.subschema_for::<Row>();
        assert_eq!(generator.subschema_for::<Written<Row>>(), of_row);
    }
}
