//! Parquet files as other programs write them, for tests.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = "message schema {
    required int64 timestamp_received (TIMESTAMP(MILLIS, true));
    required int64 timestamp (TIMESTAMP(MILLIS, true));
    required fixed_len_byte_array(66) market;
    required binary event_type (UTF8);
    required binary asset_id (UTF8);
    optional binary bids (UTF8);
    optional binary asks (UTF8);
    optional int32 price (DECIMAL(9, 4));
    optional int64 size (DECIMAL(18, 6));
    optional binary side (UTF8);
    optional int32 best_bid (DECIMAL(9, 4));
    optional int32 best_ask (DECIMAL(9, 4));
    optional int32 fee_rate_bps (INTEGER(16, false));
    optional binary transaction_hash (UTF8);
    optional int32 old_tick_size (DECIMAL(9, 4));
    optional int32 new_tick_size (DECIMAL(9, 4));
";

/// A book (`levels`) or a change (`price` in 1/10 000, `size` in shares) of a token.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) received: i64,
    pub(crate) market: u8,
    pub(crate) token: &'static str,
    pub(crate) levels: Option<[&'static str; 2]>,
    pub(crate) price: i32,
    pub(crate) size: i64,
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

/// Writes rows as they are. `more`: a further column of texts.
pub(crate) fn write(path: &Path, rows: &[Row], more: Option<&str>) {
    let more_column = more.map(|name| format!("optional binary {name} (UTF8);")).unwrap_or_default();
    let schema = Arc::new(parse_message_type(&format!("{SCHEMA}{more_column}}}")).expect("a schema"));
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
    let file = File::create(path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let changes = |row: &Row| row.levels.is_none();
    let received: Vec<i64> = rows.iter().map(|row| row.received).collect();
    longs(&mut group, &received, None);
    longs(&mut group, &received, None);
    let markets: Vec<FixedLenByteArray> =
        rows.iter().map(|row| ByteArray::from(id(row.market).as_str()).into()).collect();
    let mut column = group.next_column().expect("a column").expect("a column");
    column.typed::<FixedLenByteArrayType>().write_batch(&markets, None, None).expect("values");
    column.close().expect("a column");
    let names = rows.iter().map(|row| Some(if changes(row) { "price_change" } else { "book" }));
    texts(&mut group, names.collect(), true);
    texts(&mut group, rows.iter().map(|row| Some(row.token)).collect(), true);
    for side in [0, 1] {
        texts(&mut group, rows.iter().map(|row| row.levels.map(|levels| levels[side])).collect(), false);
    }
    integers(&mut group, rows.iter().map(|row| changes(row).then_some(row.price)).collect());
    let sizes: Vec<i64> = rows.iter().filter(|row| changes(row)).map(|row| row.size * 1_000_000).collect();
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(changes(row))).collect();
    longs(&mut group, &sizes, Some(&levels));
    texts(&mut group, rows.iter().map(|row| changes(row).then_some("BUY")).collect(), false);
    for _ in 0..3 {
        integers(&mut group, vec![None; rows.len()]);
    }
    texts(&mut group, vec![None; rows.len()], false);
    for _ in 0..2 {
        integers(&mut group, vec![None; rows.len()]);
    }
    if more.is_some() {
        texts(&mut group, vec![Some("x"); rows.len()], false);
    }
    group.close().expect("a group");
    writer.close().expect("a file");
}

/// The text of a market's id.
pub(crate) fn id(market: u8) -> String {
    format!("0x{}", format!("{market:02x}").repeat(32))
}

fn longs(group: &mut Group<'_>, values: &[i64], levels: Option<&[i16]>) {
    let mut column = group.next_column().expect("a column").expect("a column");
    column.typed::<Int64Type>().write_batch(values, levels, None).expect("values");
    column.close().expect("a column");
}

fn integers(group: &mut Group<'_>, rows: Vec<Option<i32>>) {
    let levels: Vec<i16> = rows.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<i32> = rows.into_iter().flatten().collect();
    let mut column = group.next_column().expect("a column").expect("a column");
    column.typed::<Int32Type>().write_batch(&values, Some(&levels), None).expect("values");
    column.close().expect("a column");
}

fn texts(group: &mut Group<'_>, rows: Vec<Option<&str>>, is_required: bool) {
    let levels: Vec<i16> = rows.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<ByteArray> = rows.into_iter().flatten().map(ByteArray::from).collect();
    let mut column = group.next_column().expect("a column").expect("a column");
    let levels = (!is_required).then_some(levels.as_slice());
    column.typed::<ByteArrayType>().write_batch(&values, levels, None).expect("values");
    column.close().expect("a column");
}
