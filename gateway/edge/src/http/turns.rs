//! Long work in turns: loops over the catalogue, and answers with long lists, let other tasks of the thread run.

use super::buffer;
use super::record::{Record, write_record};
use super::reply::Reply;
use serde::Serialize;
use wire::write::separate;

/// The work of a loop, in units that the loop chooses.
#[derive(Debug)]
pub struct Turns {
    per_turn: usize,
    done: usize,
}

impl Turns {
    pub const fn of(per_turn: usize) -> Turns {
        Turns { per_turn, done: 0 }
    }

    /// Called before this work. Other tasks run first if the work of a turn is done.
    pub async fn work(&mut self, units: usize) {
        if self.done >= self.per_turn {
            self.done = 0;
            tokio::task::yield_now().await;
        }
        self.done += units;
    }
}

/// A JSON answer whose list is written row by row into the body. The caller says by `turns` when it works.
#[derive(Debug)]
pub struct LongList {
    body: Vec<u8>,
    /// The text after the list.
    rest: Vec<u8>,
    pub turns: Turns,
}

impl LongList {
    /// The answer is an array.
    pub fn alone(per_turn: usize) -> LongList {
        LongList::between(b'[', b']', per_turn)
    }

    /// The answer is an object whose names are not fixed ([`super::record::ByName`]).
    pub fn by_name(per_turn: usize) -> LongList {
        LongList::between(b'{', b'}', per_turn)
    }

    fn between(start: u8, end: u8, per_turn: usize) -> LongList {
        let mut body = buffer::take();
        body.push(start);
        LongList { body, rest: vec![end], turns: Turns::of(per_turn) }
    }

    /// The answer is a record, in which the list of this name is empty so far.
    ///
    /// # Panics
    /// When the record has no such empty list.
    pub fn in_page(page: &impl Record, name: &str, per_turn: usize) -> LongList {
        let mut body = buffer::take();
        write_record(&mut body, page);
        // No text has it, because quotes are escaped in texts.
        let place = format!("\"{name}\":[]");
        let at = body.windows(place.len()).position(|bytes| bytes == place.as_bytes()).expect("an empty list");
        let rest = body.split_off(at + place.len() - 1);
        LongList { body, rest, turns: Turns::of(per_turn) }
    }

    pub fn push(&mut self, row: &impl Serialize) {
        self.push_with(|out| {
            write_record(out, row);
            Ok::<(), ()>(())
        });
    }

    /// Adds a field of an object.
    pub fn push_entry(&mut self, name: &impl Serialize, value: &impl Serialize) {
        self.push(name);
        self.body.push(b':');
        write_record(&mut self.body, value);
    }

    /// Adds the row that `write` writes. Without a row it fails and writes nothing.
    pub fn push_with<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) {
        let before = self.body.len();
        separate(&mut self.body);
        if write(&mut self.body).is_err() {
            self.body.truncate(before);
        }
    }

    /// The answer with these rows, each a unit of work.
    pub async fn with_rows<R: Serialize>(mut self, rows: impl IntoIterator<Item = R>) -> Reply {
        for row in rows {
            self.turns.work(1).await;
            self.push(&row);
        }
        self.reply()
    }

    pub fn reply(mut self) -> Reply {
        self.body.append(&mut self.rest);
        Reply::json(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::record::record;
    use crate::http::testing::run;

    record! {
        struct Row {
            at: u64 = 7;
        }

        struct Page<'a> {
            label: &'a str = "";
            rows: Vec<Row> = Vec::new();
            next: Option<u64> = Some(3);
        }
    }

    #[test]
    fn lists_have_the_text_of_their_records() {
        let rows = |count| (0..count).map(|at| Row { at });
        // A label that looks like the list.
        let page = |count| Page { label: r#""rows":[]"#, rows: rows(count).collect(), next: None };
        let mut cases = 0;
        for count in [0, 1, 2, 5] {
            let alone = run(LongList::alone(2).with_rows(rows(count)));
            assert_eq!(alone.body, Reply::json(&rows(count).collect::<Vec<_>>()).body);
            let in_page = run(LongList::in_page(&page(0), "rows", 2).with_rows(rows(count)));
            assert_eq!(in_page.body, Reply::json(&page(count)).body);
            cases += 2;
        }
        let mut entries = LongList::by_name(2);
        entries.push_entry(&"a", &Row { at: 1 });
        entries.push_with(|_| Err(()));
        entries.push_entry(&"b", &Row { at: 2 });
        assert_eq!(entries.reply().body, br#"{"a":{"at":1},"b":{"at":2}}"#);
        println!("long lists: {cases} cases");
    }
}
