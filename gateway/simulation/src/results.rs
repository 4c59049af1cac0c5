//! Results as files: rows as Parquet in `{folder}/{job}/trades.parquet` and `equity.parquet`, and the page for people,
//! `report.html`. A file is whole or absent: it is written under another name, synced, renamed, and its folder is synced.
//! It has the hash of the result, so a file of another result counts as absent, and so does a damaged one.

use crate::plan::Plan;
use crate::report;
use archive::{MAKING, Making, hex};
use edge::api::clob::ids::{uuid, uuid_text};
use edge::api::simulation::jobs::{JobRows, JobTrade};
use engine::amount::{Cash, Qty};
use engine::backtest::{EquityPoint, ROWS_MAX, Reason, Report, Trade};
use engine::order::Side;
use engine::time::Timestamp;
use engine::user::backtests::BACKTESTS_KEPT_US;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Key of the hash of the result in the metadata.
const RESULT_KEY: &str = "papertape.result";
/// The page of a result.
const PAGE: &str = "report.html";
/// Larger files are not of this program: a row has less than 200 bytes.
const BYTES_MAX: u64 = 200 * ROWS_MAX as u64;
/// Decimals of money and shares: 10⁻⁶.
const SCALE: i32 = 6;
const PRECISION: i32 = 18;

/// Which rows of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    Trades,
    Equity,
}

/// The rows of all results.
pub struct Results {
    folder: PathBuf,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// µs since 1970.
    Time,
    /// decimal(18,6).
    Decimal,
    Text,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<Arc<str>>),
}

impl From<JobRows> for Rows {
    fn from(rows: JobRows) -> Rows {
        match rows {
            JobRows::Trades => Rows::Trades,
            JobRows::Equity => Rows::Equity,
        }
    }
}

impl Rows {
    pub const ALL: [Rows; 2] = [Rows::Trades, Rows::Equity];

    fn file_name(self) -> &'static str {
        match self {
            Rows::Trades => "trades.parquet",
            Rows::Equity => "equity.parquet",
        }
    }

    fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Rows::Trades => &[
                ("ts", Kind::Time),
                ("condition_id", Kind::Text),
                ("side", Kind::Text),
                ("outcome", Kind::Text),
                ("shares", Kind::Decimal),
                ("price", Kind::Decimal),
                ("notional", Kind::Decimal),
                ("fee", Kind::Decimal),
                ("fill_model", Kind::Text),
                ("reason", Kind::Text),
            ],
            Rows::Equity => &[
                ("ts", Kind::Time),
                ("equity", Kind::Decimal),
                ("cash", Kind::Decimal),
                ("position_value", Kind::Decimal),
            ],
        }
    }

    /// The rows of a result, by column.
    fn of(self, plan: &Plan, report: &Report) -> Vec<Values> {
        match self {
            Rows::Trades => {
                let trades = &report.trades;
                let numbers = |of: fn(&Trade) -> i64| Values::Numbers(trades.iter().map(of).collect());
                let texts = |of: &dyn Fn(&Trade) -> Arc<str>| Values::Texts(trades.iter().map(of).collect());
                let model: Arc<str> = plan.job.strategy.model.name().into();
                vec![
                    numbers(|trade| trade.at.0 as i64),
                    texts(&|trade| plan.job.markets[trade.market].market.condition.clone()),
                    texts(&|trade| side_name(trade.side).into()),
                    texts(&|trade| plan.label(trade.market).clone()),
                    numbers(|trade| trade.shares.0 as i64),
                    numbers(|trade| trade.price.0),
                    numbers(|trade| trade.notional.0),
                    numbers(|trade| trade.fee.0),
                    texts(&|_| model.clone()),
                    texts(&|trade| trade.reason.name().into()),
                ]
            }
            Rows::Equity => {
                let numbers = |of: fn(&EquityPoint) -> i64| Values::Numbers(report.points.iter().map(of).collect());
                vec![
                    numbers(|point| point.at.0 as i64),
                    numbers(|point| point.equity().0),
                    numbers(|point| point.cash.0),
                    numbers(|point| point.position_value.0),
                ]
            }
        }
    }

    /// Writes the rows of a result as a file that appears whole.
    ///
    /// # Errors
    /// The system's.
    pub fn write(self, path: &Path, plan: &Plan, report: &Report) -> io::Result<()> {
        let making = Making::create(path)?;
        self.write_to(making.file().try_clone()?, plan, report).map_err(io::Error::other)?;
        Ok(making.finish()?)
    }

    fn write_to(self, file: File, plan: &Plan, report: &Report) -> ParquetResult<()> {
        let fields: ParquetResult<Vec<_>> = self.columns().iter().map(|(name, kind)| kind.field(name)).collect();
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields?).build()?);
        let hash = KeyValue::new(RESULT_KEY.to_owned(), hex(&report.hash));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(vec![hash]))
            .build();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for values in self.of(plan, report) {
            let missing = || ParquetError::General("the schema has fewer columns than the rows".to_owned());
            let mut column = group.next_column()?.ok_or_else(missing)?;
            match values {
                Values::Numbers(values) => column.typed::<Int64Type>().write_batch(&values, None, None)?,
                Values::Texts(texts) => {
                    let texts: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(&**text)).collect();
                    column.typed::<ByteArrayType>().write_batch(&texts, None, None)?
                }
            };
            column.close()?;
        }
        group.close()?;
        writer.close().map(drop)
    }

    /// Rows of a file from row `from` on; `None`: there is no file of that result.
    fn read(self, path: &Path, hash: &[u8; 32], from: usize, limit: usize) -> Option<Vec<Values>> {
        let file = File::open(path).ok()?;
        if file.metadata().ok()?.len() > BYTES_MAX {
            return None;
        }
        match self.read_from(file, hash, from, limit) {
            Ok(values) => values,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "rows of a back-test are damaged");
                None
            }
        }
    }

    fn read_from(self, file: File, hash: &[u8; 32], from: usize, limit: usize) -> ParquetResult<Option<Vec<Values>>> {
        let reader = SerializedFileReader::new(file)?;
        let metadata = reader.metadata().file_metadata();
        let entries = metadata.key_value_metadata().into_iter().flatten();
        let found = entries.filter(|entry| entry.key == RESULT_KEY).find_map(|entry| entry.value.as_deref());
        if found != Some(hex(hash).as_str()) {
            return Ok(None);
        }
        let wrong = || ParquetError::General("other columns, or more than one row group".to_owned());
        let columns = self.columns();
        if reader.num_row_groups() != 1 || metadata.schema_descr().num_columns() != columns.len() {
            return Err(wrong());
        }
        let group = reader.get_row_group(0)?;
        let mut all = Vec::new();
        for (number, (_, kind)) in columns.iter().enumerate() {
            all.push(match (kind, group.get_column_reader(number)?) {
                (Kind::Time | Kind::Decimal, ColumnReader::Int64ColumnReader(mut column)) => {
                    let mut values = Vec::new();
                    column.skip_records(from)?;
                    column.read_records(limit, None, None, &mut values)?;
                    Values::Numbers(values)
                }
                (Kind::Text, ColumnReader::ByteArrayColumnReader(mut column)) => {
                    let mut values: Vec<ByteArray> = Vec::new();
                    column.skip_records(from)?;
                    column.read_records(limit, None, None, &mut values)?;
                    let text = |value: &ByteArray| value.as_utf8().map(Arc::from);
                    Values::Texts(values.iter().map(text).collect::<ParquetResult<_>>()?)
                }
                _ => return Err(wrong()),
            });
        }
        Ok(Some(all))
    }
}

impl Kind {
    fn field(self, name: &str) -> ParquetResult<Arc<Type>> {
        let physical = if self == Kind::Text { PhysicalType::BYTE_ARRAY } else { PhysicalType::INT64 };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        let builder = match self {
            Kind::Time => builder.with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Kind::Decimal => builder
                .with_logical_type(Some(LogicalType::decimal(SCALE, PRECISION)))
                .with_precision(PRECISION)
                .with_scale(SCALE),
            Kind::Text => builder.with_logical_type(Some(LogicalType::String)),
        };
        builder.build().map(Arc::new)
    }
}

impl Results {
    /// Rows in this folder, which is created when it is needed.
    pub fn new(folder: PathBuf) -> Results {
        Results { folder }
    }

    fn of(&self, job: &[u8; 16]) -> PathBuf {
        self.folder.join(uuid_text(job))
    }

    /// Keeps the rows of a result, and its page.
    ///
    /// # Errors
    /// The system's.
    pub fn keep(&self, job: &[u8; 16], plan: &Plan, report: &Report, page: &str) -> io::Result<()> {
        let folder = self.of(job);
        fs::create_dir_all(&folder)?;
        archive::write_file(&folder.join(PAGE), page.as_bytes())?;
        for rows in Rows::ALL {
            rows.write(&folder.join(rows.file_name()), plan, report)?;
        }
        File::open(&self.folder)?.sync_all()
    }

    /// Removes the rows of a result.
    pub fn remove(&self, job: &[u8; 16]) {
        let folder = self.of(job);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(folder = %folder.display(), %error, "rows of a back-test cannot be removed");
            }
            _ => {}
        }
    }

    /// Removes rows that were written longer ago than back-tests are kept, and files that a kill left.
    ///
    /// # Errors
    /// The system's.
    pub fn sweep(&self, now: Timestamp) -> io::Result<()> {
        let folders = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            folders => folders?,
        };
        let oldest = Duration::from_micros(now.0.saturating_sub(BACKTESTS_KEPT_US));
        for folder in folders {
            let folder = folder?;
            let name = folder.file_name();
            let Some(job) = name.to_str().and_then(uuid) else { continue };
            if !folder.file_type()?.is_dir() {
                continue;
            }
            let written = folder.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            if written < oldest {
                self.remove(&job);
                continue;
            }
            for name in Rows::ALL.map(Rows::file_name).into_iter().chain([PAGE]) {
                let making = folder.path().join(format!("{name}{MAKING}"));
                if making.exists() {
                    fs::remove_file(making)?;
                }
            }
        }
        Ok(())
    }

    /// The page of a result; `None`: there is none of that result.
    pub fn page(&self, job: &[u8; 16], hash: &[u8; 32]) -> Option<Vec<u8>> {
        let file = File::open(self.of(job).join(PAGE)).ok()?;
        let mut page = String::new();
        file.take(report::BYTES_MAX as u64 + 1).read_to_string(&mut page).ok()?;
        let is_whole = page.len() <= report::BYTES_MAX && page.contains(&hex(hash));
        is_whole.then(|| page.into_bytes())
    }

    /// Trades from row `from` on, at most `limit`. `conditions`: the markets of the job. `None`: there is no file of that
    /// result.
    pub fn trades(
        &self,
        job: &[u8; 16],
        hash: &[u8; 32],
        conditions: &[String],
        (from, limit): (usize, usize),
    ) -> Option<Vec<JobTrade>> {
        let rows = Rows::Trades;
        let columns = rows.read(&self.of(job).join(rows.file_name()), hash, from, limit)?;
        let [at, conditions_of, sides, outcomes, shares, prices, notionals, fees, _, reasons] = &columns[..] else {
            return None;
        };
        let trade = |row: usize| {
            let condition = conditions_of.text(row)?;
            let trade = Trade {
                at: Timestamp(u64::try_from(at.number(row)?).ok()?),
                market: conditions.iter().position(|of| **of == **condition)?,
                side: side_of(sides.text(row)?)?,
                shares: Qty(u64::try_from(shares.number(row)?).ok()?),
                price: Cash(prices.number(row)?),
                notional: Cash(notionals.number(row)?),
                fee: Cash(fees.number(row)?),
                reason: reason_of(reasons.text(row)?)?,
            };
            Some(JobTrade { trade, outcome: outcomes.text(row)?.clone() })
        };
        (0..at.len()).map(trade).collect()
    }

    /// Points of equity from row `from` on, at most `limit`; `None`: there is no file of that result.
    pub fn points(&self, job: &[u8; 16], hash: &[u8; 32], (from, limit): (usize, usize)) -> Option<Vec<EquityPoint>> {
        let rows = Rows::Equity;
        let columns = rows.read(&self.of(job).join(rows.file_name()), hash, from, limit)?;
        let [at, _, cash, values] = &columns[..] else { return None };
        let point = |row: usize| {
            Some(EquityPoint {
                at: Timestamp(u64::try_from(at.number(row)?).ok()?),
                cash: Cash(cash.number(row)?),
                position_value: Cash(values.number(row)?),
            })
        };
        (0..at.len()).map(point).collect()
    }

    /// The whole file of a result; `None`: there is none.
    pub fn file(&self, job: &[u8; 16], hash: &[u8; 32], rows: Rows) -> Option<Vec<u8>> {
        let path = self.of(job).join(rows.file_name());
        rows.read(&path, hash, 0, 0)?;
        fs::read(path).ok()
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    fn number(&self, row: usize) -> Option<i64> {
        match self {
            Values::Numbers(values) => values.get(row).copied(),
            Values::Texts(_) => None,
        }
    }

    fn text(&self, row: usize) -> Option<&Arc<str>> {
        match self {
            Values::Numbers(_) => None,
            Values::Texts(values) => values.get(row),
        }
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Buy => "BUY",
        Side::Sell => "SELL",
    }
}

fn side_of(name: &str) -> Option<Side> {
    [Side::Buy, Side::Sell].into_iter().find(|side| side_name(*side) == name)
}

fn reason_of(name: &str) -> Option<Reason> {
    [Reason::Entry, Reason::Exit, Reason::Settlement].into_iter().find(|reason| reason.name() == name)
}

#[cfg(test)]
mod tests;
