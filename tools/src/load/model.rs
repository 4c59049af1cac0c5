//! What a client knows about its orders after their answers, in files: rows of a fixed size, appended as answers come, so
//! that neither a run nor a later comparison needs memory for all of them.
//!
//! | File | Holds |
//! |---|---|
//! | `runs.jsonl` | a line for each run: its name, the server's time before it, what it trades |
//! | `NNN.rows` | rows of the users whose ids have this remainder, 64 bytes each, in the order of their answers |

use super::protocol::Placed;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use wire::decimal::Decimal;

/// Files of rows. The rows of one are read together: an hour of 20,000 orders a second has some 18 MB in each.
pub const FILES: u64 = 256;
const RUNS_FILE: &str = "runs.jsonl";
const VERSION: u8 = 1;
const ROW_BYTES: usize = 64;
/// Rows of a user file that are written together.
const BUFFER_BYTES: usize = 4 << 10;
/// Runs of one model; a row has their place in 16 bits.
const RUNS_MAX: usize = 60_000;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    version: u8,
    /// What every client id of the run begins with.
    pub run: String,
    /// The server's time before the first order.
    pub since: String,
    /// What is traded, in the order of the instruments.
    pub tokens: Vec<String>,
}

/// The meaning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum What {
    /// An acknowledged order, as it was answered.
    Placed = 1,
    /// An order that exists; the answer did not show it.
    There,
    /// Refused because it could not be filled: it exists, cancelled.
    Killed,
    /// An order that may exist.
    Unknown,
    /// An acknowledged cancel.
    Cancelled,
    /// A cancel that may have happened.
    CancelUnknown,
}

impl What {
    const ALL: [What; 6] =
        [What::Placed, What::There, What::Killed, What::Unknown, What::Cancelled, What::CancelUnknown];
}

/// An order's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Sort {
    Rest,
    Buy,
    Sell,
}

impl Sort {
    const ALL: [Sort; 3] = [Sort::Rest, Sort::Buy, Sort::Sell];

    pub fn side(self) -> &'static str {
        if self == Sort::Sell { "SELL" } else { "BUY" }
    }
}

/// Names an order: run, connection, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderName {
    pub run: u16,
    pub lane: u16,
    pub number: u32,
}

/// One row. Amounts are in 10⁻⁶ shares or dollars; those of rows that are no [`What::Placed`] are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub user: u64,
    pub name: OrderName,
    pub what: What,
    pub sort: Sort,
    /// Its place among the tokens of the run.
    pub instrument: u16,
    /// The server's number of the order.
    pub order: u64,
    /// Average of the fills, or the limit without one.
    pub price: u32,
    pub quantity: i64,
    pub filled: i64,
    pub notional: i64,
    pub fee: i64,
}

impl Row {
    /// A row without the amounts of an answer.
    pub fn new(user: u64, name: OrderName, what: What, (sort, instrument): (Sort, u16)) -> Row {
        let (order, price) = (0, 0);
        Row { user, name, what, sort, instrument, order, price, quantity: 0, filled: 0, notional: 0, fee: 0 }
    }

    /// With an answer; `None` if that has amounts out of range.
    pub fn answered(self, placed: &Placed<'_>) -> Option<Row> {
        let filled = micros(&placed.filled_quantity)?;
        // Without a fill the notional is that of the request.
        let of_fills = |text: &str| if filled == 0 { Some(0) } else { micros(text) };
        Some(Row {
            what: What::Placed,
            order: placed.order_id,
            price: u32::try_from(micros(&placed.price)?).ok()?,
            quantity: micros(&placed.requested_quantity)?,
            filled,
            notional: of_fills(&placed.notional)?,
            fee: of_fills(&placed.fee)?,
            ..self
        })
    }

    fn write(&self) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&self.user.to_le_bytes());
        put(&self.order.to_le_bytes());
        put(&self.name.number.to_le_bytes());
        put(&self.name.lane.to_le_bytes());
        put(&self.name.run.to_le_bytes());
        put(&[self.what as u8, self.sort as u8]);
        put(&self.instrument.to_le_bytes());
        put(&self.price.to_le_bytes());
        for amount in [self.quantity, self.filled, self.notional, self.fee] {
            put(&amount.to_le_bytes());
        }
        bytes
    }

    /// `None` for bytes that no row of these runs has.
    fn read(bytes: &[u8; ROW_BYTES], runs: &[Run]) -> Option<Row> {
        let mut rest = &bytes[..];
        let mut take = |count: usize| {
            let (part, after) = rest.split_at(count);
            rest = after;
            let mut number = [0; 8];
            number[..count].copy_from_slice(part);
            u64::from_le_bytes(number)
        };
        let (user, order) = (take(8), take(8));
        let name = OrderName { number: take(4) as u32, lane: take(2) as u16, run: take(2) as u16 };
        let (what, sort, instrument, price) = (take(1) as u8, take(1) as u8, take(2) as u16, take(4) as u32);
        let [quantity, filled, notional, fee] = [(); 4].map(|()| take(8) as i64);
        let what = What::ALL.into_iter().find(|known| *known as u8 == what)?;
        let sort = Sort::ALL.into_iter().find(|known| *known as u8 == sort)?;
        let run = runs.get(usize::from(name.run))?;
        let row = Row { user, name, what, sort, instrument, order, price, quantity, filled, notional, fee };
        let is_sound =
            usize::from(instrument) < run.tokens.len() && [quantity, filled, notional, fee].iter().all(|of| *of >= 0);
        is_sound.then_some(row)
    }
}

/// A decimal in units of 10⁻⁶; `None` for another text, and for a finer one.
pub fn micros(text: &str) -> Option<i64> {
    Decimal::parse(text).ok()?.cash_exact().map(|cash| cash.0)
}

/// Writes the rows of a run. The first failed write ends it; the run goes on.
pub struct ModelWriter {
    folder: PathBuf,
    run: u16,
    /// Opened by their first rows.
    files: Vec<Option<BufWriter<File>>>,
    failed: Option<String>,
}

impl ModelWriter {
    /// Begins a run in a folder, which has the earlier runs of the same server or is made.
    ///
    /// # Errors
    /// One sentence.
    pub fn begin(folder: &Path, run: &str, since: &str, tokens: Vec<String>) -> Result<ModelWriter, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let runs = read_runs(folder)?;
        if runs.len() >= RUNS_MAX {
            return Err(format!("{}: a model has at most {RUNS_MAX} runs", folder.display()));
        }
        let line = Run { version: VERSION, run: run.to_owned(), since: since.to_owned(), tokens };
        let line = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        let file = File::options().create(true).append(true).open(folder.join(RUNS_FILE));
        file.and_then(|mut file| writeln!(file, "{line}")).map_err(failed)?;
        let files = (0..FILES).map(|_| None).collect();
        Ok(ModelWriter { folder: folder.to_owned(), run: runs.len() as u16, files, failed: None })
    }

    /// The place of the run among those of the model.
    pub fn run(&self) -> u16 {
        self.run
    }

    pub fn add(&mut self, row: &Row) {
        if self.failed.is_none()
            && let Err(error) = self.write(row)
        {
            self.failed = Some(format!("{}: {error}", self.folder.display()));
        }
    }

    fn write(&mut self, row: &Row) -> std::io::Result<()> {
        let place = (row.user % FILES) as usize;
        let file = match &mut self.files[place] {
            Some(file) => file,
            none => {
                let opened = File::options().create(true).append(true).open(rows_file(&self.folder, place as u64))?;
                none.insert(BufWriter::with_capacity(BUFFER_BYTES, opened))
            }
        };
        file.write_all(&row.write())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first failure: the model lacks rows.
    pub fn end(mut self) -> Result<(), String> {
        for file in self.files.iter_mut().flatten() {
            if let Err(error) = file.flush() {
                self.failed.get_or_insert(format!("{}: {error}", self.folder.display()));
            }
        }
        self.failed.map_or(Ok(()), |why| Err(format!("the model is incomplete: {why}")))
    }
}

fn rows_file(folder: &Path, place: u64) -> PathBuf {
    folder.join(format!("{place:03}.rows"))
}

fn read_runs(folder: &Path) -> Result<Vec<Run>, String> {
    let path = folder.join(RUNS_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let lines = BufReader::new(file).lines().enumerate().map(|(number, line)| {
        let line = line.map_err(|error| format!("{}: {error}", path.display()))?;
        let run: Option<Run> = serde_json::from_str(&line).ok().filter(|run: &Run| run.version == VERSION);
        run.ok_or_else(|| format!("{}: line {} is not a run of this version", path.display(), number + 1))
    });
    lines.collect()
}

/// What was known of one order after its last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub row: Row,
    /// Its cancel: [`What::Cancelled`], [`What::CancelUnknown`] or none.
    pub cancel: Option<What>,
}

/// A model that is read.
pub struct Model {
    folder: PathBuf,
    pub runs: Vec<Run>,
}

impl Model {
    /// # Errors
    /// One sentence.
    pub fn open(folder: &Path) -> Result<Model, String> {
        let runs = read_runs(folder)?;
        match runs.is_empty() {
            true => Err(format!("{}: name a folder of `papertape load --model DIR`", folder.display())),
            false => Ok(Model { folder: folder.to_owned(), runs }),
        }
    }

    /// The orders in one of the files, by user, then by their names: each user's are in the order of their sending on
    /// each connection.
    ///
    /// # Errors
    /// One sentence, for a file that was changed or cut, too.
    pub fn orders(&self, place: u64) -> Result<Vec<Known>, String> {
        let path = rows_file(&self.folder, place);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let (rows, rest) = bytes.as_chunks::<ROW_BYTES>();
        let damaged = |number: usize| format!("{}: row {} cannot be read", path.display(), number + 1);
        if !rest.is_empty() {
            return Err(damaged(rows.len()));
        }
        let mut orders: Vec<Known> = Vec::with_capacity(rows.len());
        let mut cancels = Vec::new();
        for (number, bytes) in rows.iter().enumerate() {
            let row = Row::read(bytes, &self.runs).filter(|row| row.user % FILES == place);
            let row = row.ok_or_else(|| damaged(number))?;
            match row.what {
                What::Cancelled | What::CancelUnknown => cancels.push(row),
                _ => orders.push(Known { row, cancel: None }),
            }
        }
        drop(bytes);
        orders.sort_unstable_by_key(|known| (known.row.user, known.row.name));
        for cancel in cancels {
            let of = orders.binary_search_by_key(&(cancel.user, cancel.name), |known| (known.row.user, known.row.name));
            let Ok(at) = of else {
                return Err(format!("{}: an order was cancelled that it lacks", path.display()));
            };
            // An acknowledged one counts, with any others after it.
            if orders[at].cancel != Some(What::Cancelled) {
                orders[at].cancel = Some(cancel.what);
            }
        }
        Ok(orders)
    }

    /// The client id of an order.
    pub fn id(&self, name: OrderName) -> String {
        format!("{}-{}-{}", self.runs[usize::from(name.run)].run, name.lane, name.number)
    }

    /// The order with that client id, if the id is one of these runs.
    pub fn name(&self, id: &str) -> Option<OrderName> {
        let (rest, number) = id.rsplit_once('-')?;
        let (run, lane) = rest.rsplit_once('-')?;
        let run = self.runs.iter().position(|known| known.run == run)?;
        Some(OrderName { run: run as u16, lane: lane.parse().ok()?, number: number.parse().ok()? })
    }

    pub fn token(&self, row: &Row) -> &str {
        &self.runs[usize::from(row.name.run)].tokens[usize::from(row.instrument)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(run: u16, number: u32) -> OrderName {
        OrderName { run, lane: 3, number }
    }

    fn placed(filled: &'static str) -> Placed<'static> {
        Placed {
            order_id: 90_412,
            price: "0.42".into(),
            notional: "21.00".into(),
            fee: "0.609".into(),
            requested_quantity: "50".into(),
            filled_quantity: filled.into(),
        }
    }

    /// Two runs of one model, with the users 5 and 261, which share a file, and 6.
    fn written(folder: &Path) {
        for (run, number) in [("load-a", 0), ("load-b-c", 7)] {
            let tokens = vec!["71".to_owned(), "72".to_owned()];
            let mut model = ModelWriter::begin(folder, run, "2026-11-27T22:00:00Z", tokens).expect("room");
            for user in [261, 6, 5] {
                for what in [What::Unknown, What::There, What::Killed] {
                    let name = name(model.run(), number + what as u32);
                    model.add(&Row::new(user, name, what, (Sort::Sell, 1)));
                }
                let row = Row::new(user, name(model.run(), number), What::Unknown, (Sort::Buy, 0));
                model.add(&row.answered(&placed("50")).expect("in range"));
                for what in [What::CancelUnknown, What::Cancelled, What::CancelUnknown] {
                    model.add(&Row { what, ..row });
                }
            }
            model.end().expect("room");
        }
    }

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("model");
        written(&folder);
        let model = Model::open(&folder).expect("it was written");
        assert_eq!(model.runs.iter().map(|run| run.run.as_str()).collect::<Vec<_>>(), ["load-a", "load-b-c"]);
        let (mut orders, mut cases) = (0, 0);
        for file in 0..FILES {
            let known = model.orders(file).expect("it is sound");
            assert!(known.is_sorted_by_key(|known| (known.row.user, known.row.name)));
            orders += known.len();
            for known in known {
                let row = known.row;
                let expected = (row.what == What::Placed).then_some(What::Cancelled);
                assert_eq!(known.cancel, expected, "{row:?}");
                if row.what == What::Placed {
                    let amounts = (row.order, row.price, row.quantity, row.filled, row.notional, row.fee);
                    assert_eq!(amounts, (90_412, 420_000, 50_000_000, 50_000_000, 21_000_000, 609_000));
                }
                assert_eq!(model.name(&model.id(row.name)), Some(row.name));
                assert_eq!(model.token(&row), if row.sort == Sort::Buy { "71" } else { "72" });
                cases += 1;
            }
        }
        assert_eq!(orders, 2 * 3 * 4);
        for id in ["", "load-a", "load-a-3", "load-c-3-1", "load-a-x-1", "load-a-3-99999999999", "load-a-3-"] {
            assert_eq!(model.name(id), None, "{id}");
            cases += 1;
        }
        println!("rows of a model: {cases} cases");
    }

    #[test]
    fn a_changed_model_is_an_error() {
        let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 1);
        let byte = |at: usize, value: u8| move |bytes: &mut Vec<u8>| bytes[at] = value;
        // The first row of file 5 is of user 261.
        type Harm = Box<dyn Fn(&mut Vec<u8>)>;
        let cases: [(&str, Harm); 9] = [
            ("row 15 cannot be read", Box::new(|bytes| bytes.extend_from_slice(&[0; 9]))),
            ("row 14 cannot be read", Box::new(cut)),
            ("row 1 cannot be read", Box::new(byte(0, 6))),
            ("row 1 cannot be read", Box::new(byte(22, 2))),
            ("row 1 cannot be read", Box::new(byte(24, 0))),
            ("row 1 cannot be read", Box::new(byte(24, 7))),
            ("row 1 cannot be read", Box::new(byte(25, 3))),
            ("row 1 cannot be read", Box::new(byte(26, 2))),
            ("row 1 cannot be read", Box::new(byte(63, 0x80))),
        ];
        let place = tempfile::tempdir().expect("a folder");
        written(place.path());
        let path = rows_file(place.path(), 5);
        let sound = fs::read(&path).expect("it was written");
        assert_eq!(sound.len(), 2 * 2 * 7 * ROW_BYTES);
        for (expected, harm) in &cases {
            let mut bytes = sound[..14 * ROW_BYTES].to_vec();
            harm(&mut bytes);
            fs::write(&path, bytes).expect("room");
            let error = Model::open(place.path()).expect("its runs are sound").orders(5).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        // Without the order that a cancel belongs to.
        fs::write(&path, &sound[4 * ROW_BYTES..5 * ROW_BYTES]).expect("room");
        let error = Model::open(place.path()).expect("its runs are sound").orders(5).expect_err("no order");
        assert!(error.contains("was cancelled that it lacks"), "{error}");
        for text in ["{}\n", "\n", "not JSON\n", "{\"version\":2,\"run\":\"a\",\"since\":\"\",\"tokens\":[]}\n"] {
            fs::write(place.path().join(RUNS_FILE), text).expect("room");
            assert!(
                Model::open(place.path()).err().is_some_and(|error| error.contains("line 1 is not a run")),
                "{text}"
            );
        }
        fs::remove_file(place.path().join(RUNS_FILE)).expect("it is there");
        assert!(Model::open(place.path()).is_err());
        println!("changed models: {} cases", cases.len() + 6);
    }

    #[test]
    fn an_answer_becomes_a_row_if_its_amounts_are_exact() {
        let row = Row::new(1, name(0, 0), What::Unknown, (Sort::Rest, 0));
        let rested = row.answered(&placed("0")).expect("in range");
        assert_eq!((rested.what, rested.quantity, rested.filled), (What::Placed, 50_000_000, 0));
        assert_eq!((rested.notional, rested.fee), (0, 0), "nothing was filled");
        for wrong in ["", "x", "-", "1e3", "0.0000001", "99999999999999999999"] {
            let wrong = Placed { filled_quantity: wrong.into(), ..placed("50") };
            assert_eq!(row.answered(&wrong), None, "{wrong:?}");
        }
        println!("answers: 7 cases");
    }
}
