use super::*;
use crate::row::LEVELS_BYTES_MAX;
use crate::sort::{Order, Sorter};
use crate::testing::{Chance, row};
use crate::write::{HourWriter, ROW_GROUP_ROWS, Written};
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

fn rows_of(seed: u64, count: usize) -> Vec<Row> {
    let (mut chance, folder) = (Chance::seeded(seed), tempfile::tempdir().expect("a folder"));
    let mut sorter = Sorter::new(Order::Hour, folder.path(), 64 << 20);
    (0..count).for_each(|_| sorter.push(&row(&mut chance, 7, 3_600_000)).expect("pushed"));
    sorter.finish().expect("sorted").collect::<Result<_, _>>().expect("rows")
}

fn written(path: &Path, rows: &[Row]) -> Written {
    let mut writer = HourWriter::create(path, Some([7; 32])).expect("created");
    rows.iter().for_each(|row| writer.push(row).expect("pushed"));
    writer.finish().expect("finished")
}

fn read(file: &HourFile, range: Range<u64>) -> Vec<(u64, Row)> {
    file.rows(range).collect::<Result<_, _>>().expect("rows")
}

#[test]
fn written_rows_are_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cases = 0;
    for (seed, count) in [(1, 0), (2, 1), (3, 999), (4, 20_000), (5, 70_001)] {
        let path = folder.path().join(format!("{seed}.parquet"));
        let rows = rows_of(seed, count);
        let of = written(&path, &rows);
        assert_eq!((of.rows, of.bytes), (count as u64, std::fs::metadata(&path).expect("a file").len()));
        let file = HourFile::open(&path).expect("opened");
        assert_eq!(file.source(), Some([7; 32]));
        assert_eq!((file.row_count(), file.extra_columns().len()), (count as u64, 0));
        let all = read(&file, 0..u64::MAX);
        assert!(all.iter().map(|(number, _)| *number).eq(0..count as u64));
        assert!(all.into_iter().map(|(_, row)| row).eq(rows.iter().cloned()), "seed {seed}");
        // Ranges begin inside of pages and batches.
        for start in [0, 1, 4_095, 4_096, 19_999, 20_000, 20_001, 65_000] {
            let range = start.min(count)..(start + 5_000).min(count);
            let found = read(&file, range.start as u64..range.end as u64);
            assert!(found.into_iter().map(|(_, row)| row).eq(rows[range].iter().cloned()), "seed {seed}, {start}");
            cases += 1;
        }
        cases += count;
    }
    println!("rows there and back: {cases} cases");
}

/// Changes the properties of a file.
type Change = fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder;

/// Files of other writers differ in encodings, pages, compression and indexes; the rows are the same.
#[test]
fn files_of_other_writers_have_the_same_rows() {
    let cases: [(&str, Change); 7] = [
        ("plain values", |of| plain(of).set_compression(Compression::SNAPPY)),
        ("plain values in pages of version 2", |of| plain(of).set_writer_version(WriterVersion::PARQUET_2_0)),
        ("lengths before texts", |of| {
            let texts = [schema::TOKEN, schema::BIDS, schema::HASH].map(|column| schema::TABLE[column].0);
            texts.into_iter().fold(plain(of), |of, name| {
                of.set_column_encoding(ColumnPath::from(name), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            })
        }),
        ("no compression", |of| of.set_compression(Compression::UNCOMPRESSED)),
        ("no page index", |of| of.set_offset_index_disabled(true).set_statistics_enabled(EnabledStatistics::None)),
        ("short pages", |of| of.set_data_page_row_count_limit(7).set_write_batch_size(7)),
        ("short pages without index", |of| {
            plain(of).set_data_page_row_count_limit(11).set_write_batch_size(11).set_offset_index_disabled(true)
        }),
    ];
    let (folder, rows) = (tempfile::tempdir().expect("a folder"), rows_of(12, 9_000));
    for (name, change) in cases {
        let path = folder.path().join("hour.parquet");
        let mut writer = HourWriter::create_with(&path, None, change).expect("created");
        rows.iter().for_each(|row| writer.push(row).expect("pushed"));
        writer.finish().expect("finished");
        let file = HourFile::open(&path).expect("opened");
        assert!(read(&file, 0..u64::MAX).into_iter().map(|(_, row)| row).eq(rows.iter().cloned()), "{name}");
        let range = read(&file, 4_321..8_765);
        assert!(range.into_iter().map(|(_, row)| row).eq(rows[4_321..8_765].iter().cloned()), "{name}");
    }
    println!("files of other writers: {} cases", cases.len());
}

/// The Parquet library makes each such text from the one before it: a small page could become gigabytes.
#[test]
fn texts_with_shared_prefixes_are_refused() {
    let (folder, rows) = (tempfile::tempdir().expect("a folder"), rows_of(12, 90));
    let path = folder.path().join("hour.parquet");
    for column in [schema::MARKET, schema::TOKEN, schema::BIDS] {
        let change = |of| plain(of).set_column_encoding(schema::TABLE[column].0.into(), Encoding::DELTA_BYTE_ARRAY);
        let mut writer = HourWriter::create_with(&path, None, change).expect("created");
        rows.iter().for_each(|row| writer.push(row).expect("pushed"));
        writer.finish().expect("finished");
        let file = HourFile::open(&path).expect("opened");
        let error = file.all_rows().find_map(Result::err).expect("refused").to_string();
        assert!(error.contains("DELTA_BYTE_ARRAY"), "{error}");
    }
    println!("texts with shared prefixes: 3 cases");
}

/// A flipped byte anywhere in a page of ours is found by its checksum.
#[test]
fn damaged_pages_are_refused_with_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hour.parquet");
    written(&path, &rows_of(13, 45_000));
    let good = std::fs::read(&path).expect("read");
    let file = HourFile::open(&path).expect("opened");
    let footer = &file.columns.footer;
    let mut cases = 0;
    for leaf in 0..schema::COLUMNS {
        let pages = footer.pages(0, leaf).expect("a page index");
        for page in pages {
            // The last byte of a page is one of its data.
            let at = page.offset as usize + page.compressed_page_size as usize - 1;
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            let damaged = HourFile::of_bytes("damaged.parquet", bytes).expect("the footer is good");
            match damaged.all_rows().find_map(Result::err) {
                Some(Error::Refused(path, refusal)) => {
                    assert_eq!(path, Path::new("damaged.parquet"));
                    assert_eq!(refusal.offset, footer.offset(0, leaf), "{refusal}");
                    assert!(refusal.reason.contains("CRC"), "{refusal}");
                }
                other => panic!("column {leaf}, byte {at}: {other:?}"),
            }
            cases += 1;
        }
    }
    assert!(cases >= 3 * schema::COLUMNS, "{cases}");
    println!("damaged pages: {cases} cases");
}

/// A file of a library's writer: whole books with these texts as bids. It has no checksums.
fn foreign(properties: WriterPropertiesBuilder, bids: &[ByteArray]) -> Vec<u8> {
    let schema = schema::message().expect("a schema");
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).expect("a writer");
    let mut group = file.next_row_group().expect("a row group");
    let rows = bids.len();
    for number in 0..schema::COLUMNS {
        let mut column = group.next_column().expect("a column").expect("one more");
        let is_filled = number < schema::REQUIRED || number == schema::BIDS;
        let levels = vec![i16::from(is_filled); rows];
        let levels = (number >= schema::REQUIRED).then_some(&levels[..]);
        let count = if is_filled { rows } else { 0 };
        let market = Condition([7; 32]).text().to_vec();
        let result = match column.untyped() {
            ColumnWriter::Int64ColumnWriter(column) => {
                let millis = Timestamp::of_hour(crate::testing::HOUR).millis() as i64;
                column.write_batch(&vec![millis; count], levels, None)
            }
            ColumnWriter::Int32ColumnWriter(column) => column.write_batch(&[], levels, None),
            ColumnWriter::FixedLenByteArrayColumnWriter(column) => {
                column.write_batch(&vec![ByteArray::from(market).into(); count], levels, None)
            }
            ColumnWriter::ByteArrayColumnWriter(column) => match number {
                schema::BIDS => column.write_batch(bids, levels, None),
                schema::EVENT => column.write_batch(&vec![ByteArray::from("book"); count], levels, None),
                _ => column.write_batch(&vec![ByteArray::from("1"); count], levels, None),
            },
            _ => panic!("the schema has no other types"),
        };
        result.expect("written");
        column.close().expect("closed");
    }
    group.close().expect("closed");
    file.into_inner().expect("finished")
}

/// Files without checksums, as those of earlier builds, are read.
#[test]
fn checksums_are_not_needed() {
    let texts = [r#"[["0.5","7"]]"#, "[]", r#"[["0.25","1.5"]]"#].map(ByteArray::from);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    let file = HourFile::of_bytes("hour.parquet", foreign(properties, &texts)).expect("opened");
    let bids: Vec<Vec<(Price, Qty)>> = read(&file, 0..9)
        .into_iter()
        .map(|(_, row)| match row.event {
            Event::Book { bids, .. } => bids,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bids, [vec![(Price(5_000), Qty(7_000_000))], vec![], vec![(Price(2_500), Qty(1_500_000))]]);
    println!("files without checksums: {} rows", bids.len());
}

/// Rows of the largest size, each in a page of its own, in a file of some kilobytes.
#[test]
fn large_texts_are_read_in_bounded_memory() {
    let text = ByteArray::from([&b"[]"[..], &vec![b' '; LEVELS_BYTES_MAX - 2]].concat());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_size_limit(1)
        .set_write_batch_size(1);
    let bytes = foreign(properties, &vec![text; 700]);
    assert!(bytes.len() < 4 << 20, "{}", bytes.len());
    let file = HourFile::of_bytes("hour.parquet", bytes).expect("opened");
    let mut rows = 0;
    let memory = allocation_counter::measure(|| rows = file.all_rows().filter(Result::is_ok).count());
    assert_eq!(rows, 700);
    assert!(memory.bytes_max <= MEMORY_MAX, "{} bytes", memory.bytes_max);
    println!("large texts: {rows} rows in {} bytes", memory.bytes_max);
}

fn plain(properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    schema::TABLE.into_iter().fold(properties.set_dictionary_enabled(false), |of, (name, _)| {
        of.set_column_dictionary_enabled(ColumnPath::from(name), false)
    })
}

/// The library's reader finds the same sizes, pages and metadata.
#[test]
fn the_file_has_the_layout_of_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hour.parquet");
    let rows = rows_of(6, 50_000);
    written(&path, &rows);
    let options = parquet::file::serialized_reader::ReadOptionsBuilder::new().with_page_index().build();
    let file = std::fs::File::open(&path).expect("a file");
    let reader = SerializedFileReader::new_with_options(file, options).expect("a Parquet file");
    let metadata = reader.metadata();
    assert_eq!(metadata.file_metadata().num_rows(), rows.len() as i64);
    let schema = metadata.file_metadata().schema_descr();
    let printed: Vec<String> = (0..schema.num_columns()).map(|at| format!("{:?}", schema.column(at).name())).collect();
    assert_eq!(printed, schema::TABLE.map(|(name, _)| format!("{name:?}")));
    let offsets = metadata.offset_index().expect("a page index");
    let mut cases = 0;
    for (number, column) in metadata.row_group(0).columns().iter().enumerate() {
        let pages = offsets[0][number].page_locations();
        let starts: Vec<i64> = pages.iter().map(|page| page.first_row_index).chain([rows.len() as i64]).collect();
        assert!(starts.windows(2).all(|two| two[1] - two[0] <= 20_000), "{starts:?}");
        assert!(matches!(column.compression(), parquet::basic::Compression::ZSTD(_)));
        let encodings: Vec<_> = column.encodings().collect();
        let is_delta = encodings.contains(&parquet::basic::Encoding::DELTA_BINARY_PACKED);
        let is_dictionary = encodings.contains(&parquet::basic::Encoding::RLE_DICTIONARY);
        assert_eq!(is_delta, [schema::RECEIVED, schema::SOURCE, schema::FEE_RATE].contains(&number));
        assert!(is_delta || is_dictionary, "{number}: {encodings:?}");
        // Bounds are not cut: some readers take a cut id for a damaged file.
        if number == schema::MARKET {
            let bounds = column.statistics().expect("bounds");
            let lens = [bounds.min_bytes_opt(), bounds.max_bytes_opt()].map(|bytes| bytes.map(<[u8]>::len));
            assert_eq!(lens, [Some(Condition::TEXT_LEN); 2]);
        }
        cases += 1;
    }
    println!("columns: {cases} cases");
}

#[test]
fn rows_out_of_order_or_range_are_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hour.parquet");
    let rows = rows_of(7, 3);
    let mut writer = HourWriter::create(&path, None).expect("created");
    writer.push(&rows[1]).expect("pushed");
    let wrong = [
        rows[0].clone(),
        Row { received: rows[1].received.plus(1), ..rows[1].clone() },
        Row { token: "x".into(), ..rows[1].clone() },
        Row { event: Event::Book { bids: vec![(Price(0), Qty(1))], asks: Vec::new() }, ..rows[1].clone() },
        Row {
            event: Event::PriceChange {
                price: Price(1),
                size: Qty(SIZE_MAX.0 + 1),
                side: BookSide::Bid,
                best_bid: None,
                best_ask: None,
            },
            ..rows[1].clone()
        },
    ];
    for row in &wrong {
        assert!(matches!(writer.push(row), Err(Error::Refused(..))), "{row:?}");
    }
    writer.push(&rows[2]).expect("pushed");
    assert_eq!(writer.finish().expect("finished").rows, 2);
    assert_eq!(read(&HourFile::open(&path).expect("opened"), 0..9).len(), 2);
    println!("wrong rows: {} cases", wrong.len());
}

#[test]
fn a_dropped_writer_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(HourWriter::create(&folder.path().join("hour.parquet"), None).expect("created"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    println!("dropped writers: 1 case");
}

#[test]
fn links_devices_and_other_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    written(&at("hour.parquet"), &rows_of(8, 10));
    let good = std::fs::read(at("hour.parquet")).expect("read");
    std::os::unix::fs::symlink("hour.parquet", at("link")).expect("a link");
    std::fs::write(at("empty"), "").expect("written");
    std::fs::write(at("short"), &good[..good.len() - 1]).expect("written");
    std::fs::write(at("headless"), &good[1..]).expect("written");
    let mut long_footer = good.clone();
    let footer_at = good.len() - 8;
    long_footer[footer_at..footer_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    std::fs::write(at("footer"), long_footer).expect("written");
    let cases = [
        ("link", "is a link"),
        (".", "is not a plain file"),
        ("nothing", "No such file"),
        ("empty", "truncated"),
        ("short", "does not end with PAR1"),
        ("headless", "does not begin with PAR1"),
        ("footer", "the footer has 4294967295 bytes"),
    ];
    for (name, expected) in cases {
        let error = HourFile::open(&at(name)).err().expect("refused").to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
    println!("refused files: {} cases", cases.len());
}

/// Most bytes that a damaged file of some kilobytes may take: a page of the largest size, twice.
const MEMORY_MAX: u64 = 2 * (64 << 20);

/// Seeded changes of a good file: every one is read or refused, in bounded memory.
#[test]
fn damaged_files_never_fail_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hour.parquet");
    written(&path, &rows_of(9, 3_000));
    let good = std::fs::read(&path).expect("read");
    let mut chance = Chance::seeded(10);
    let (mut refused, mut unread, mut cases, mut most) = (0, 0, 0, 0);
    for _ in 0..3_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + chance.below(3) {
            // The footer is small, and most changes there have a meaning.
            let at = match chance.below(2) {
                0 => chance.below(bytes.len() as u64) as usize,
                _ => bytes.len() - 1 - chance.below(4_000.min(bytes.len() as u64)) as usize,
            };
            bytes[at] = match chance.below(4) {
                0 => 0xff,
                1 => 0,
                _ => chance.draw() as u8,
            };
        }
        cases += 1;
        let memory = allocation_counter::measure(|| match HourFile::of_bytes("damaged", bytes) {
            Ok(file) => unread += usize::from(file.all_rows().any(|row| row.is_err())),
            Err(_) => refused += 1,
        });
        assert!(memory.bytes_max <= MEMORY_MAX, "{} bytes", memory.bytes_max);
        most = most.max(memory.bytes_max);
    }
    assert!(refused > 0 && unread > 0 && refused + unread < cases, "{refused} {unread} of {cases}");
    println!("damaged files: {cases} cases, {refused} refused, {unread} refused while reading; {most} bytes");
}

#[test]
fn a_second_row_group_begins_after_a_million_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hour.parquet");
    let mut row = row(&mut Chance::seeded(11), 1, 1);
    row.event = Event::TickSizeChange { old: None, new: TickSize(10) };
    let count = ROW_GROUP_ROWS + 5;
    let mut writer = HourWriter::create(&path, None).expect("created");
    for number in 0..count {
        assert_eq!(writer.is_at_row_group(), number % ROW_GROUP_ROWS == 0);
        writer.push(&row).expect("pushed");
    }
    assert_eq!(writer.finish().expect("finished").row_groups, 2);
    let file = HourFile::open(&path).expect("opened");
    assert_eq!(file.row_groups().collect::<Vec<_>>(), [0, ROW_GROUP_ROWS]);
    let found = read(&file, ROW_GROUP_ROWS - 3..ROW_GROUP_ROWS + 3);
    assert!(found.iter().map(|(number, _)| *number).eq(ROW_GROUP_ROWS - 3..ROW_GROUP_ROWS + 3));
    assert!(found.iter().all(|(_, found)| *found == row));
    println!("rows in two row groups: {} cases", found.len());
}
