//! Rows of the process: listeners, clock, log lines, connections, data directory, write-ahead log.

use super::texts;
use crate::config::setting::{Setting, boolean, integer, list, optional_word, parsed, path, text, word};
use crate::config::{ArchiveBuild, DATA_DIR, Durability, LogFormat, LogLevel};
use engine::format::Formats;
use history::filters::{FILTER_BYTES_MAX, FILTER_BYTES_MIN};

pub(super) fn rows() -> Vec<Setting> {
    [server(), admin(), http(), storage(), archive()].into_iter().flatten().collect()
}

fn server() -> Vec<Setting> {
    vec![
        parsed(
            "server.listen",
            "127.0.0.1:8080",
            texts::LISTEN,
            "Address and port of the wire. Port 0 takes any free port; the banner shows it. The user `demo` is made on a \
             loopback address only.",
        ),
        list(
            "server.hosts",
            &[],
            texts::HOST,
            "Names with a dot that a listener on loopback accepts in `Host`; any other such name is refused with 421 \
             `MISDIRECTED_REQUEST`, so that no web page reaches this server by a name that resolves here. Addresses, \
             `localhost` and names without a dot are always accepted. A server with such names counts as open to others, by \
             a proxy.",
        ),
        parsed(
            "server.public_url",
            "",
            texts::PUBLIC_URL,
            "How clients reach this server, for links in answers. Without it a link has the `Host` of its request, and \
             `http://`.",
        ),
        integer(
            "server.io_threads",
            1,
            1..=64,
            "Threads that own sockets. More than one needs `engine.shards` above 1.",
        ),
        boolean(
            "server.busy_poll",
            false,
            "The thread that runs the core never sleeps. A lone request does not wait for a processor to wake, and one \
             processor is always busy. Without effect on a machine with one processor; meant for `engine.shards = 1`.",
        ),
        integer(
            "server.drain_ms",
            10_000,
            0..=600_000,
            "How long a stop waits for requests in flight, in milliseconds.",
        ),
        path(
            "server.clock_ahead_file",
            "For tests, on loopback only: the file holds seconds that are added to the machine's clock, for server time and \
             for the times of tokens and signatures.",
        ),
        integer(
            "clock.leap_wait_s",
            60,
            0..=3_600,
            "How long, in seconds, no order expires and no market ends after a start whose clock does not fit the journal; \
             see [clock.md](clock.md). 0: the start does not wait, not for a live venue's own time either.",
        ),
        optional_word::<LogLevel>(
            "log.level",
            "`RUST_LOG`, else `info`",
            "The least important lines that are written. `debug` includes refused requests: operation, code and key prefix \
             of at most 1,000 a second.",
        ),
        word("log.format", LogFormat::Auto, "`auto` is text on a terminal and JSON elsewhere."),
    ]
}

fn admin() -> Vec<Setting> {
    vec![
        parsed(
            "admin.listen",
            "",
            texts::ADMIN_LISTEN,
            "Address of the admin listener; another port than that of `server.listen`. An address other than loopback needs \
             `admin.remote` and `admin.token_file`.",
        ),
        boolean(
            "admin.remote",
            false,
            "Allows an admin listener that other machines reach. Metrics need no token: every client that reaches the \
             listener reads them.",
        ),
        path(
            "admin.token_file",
            "File with the admin token: at least 32 printable ASCII characters. Without it the server makes `admin_token` in \
             the data directory.",
        ),
        integer(
            "admin.slow_peer_s",
            60,
            1..=3_600,
            "How long a backup waits for a peer that takes less than 1 MiB a second, in seconds.",
        ),
    ]
}

fn http() -> Vec<Setting> {
    vec![
        integer(
            "http.body_bytes_max",
            1 << 20,
            1_024..=64 << 20,
            "Bytes of a request's body at most; a longer one is refused with 413 `HTTP_413`.",
        ),
        integer(
            "http.connections_max",
            10_000,
            1..=1_000_000,
            "Open connections at most. At the bound the connection that has been idle longest makes room; without an idle \
             one the new connection is closed.",
        ),
        integer(
            "http.connections_per_address_max",
            1_000,
            1..=1_000_000,
            "As `http.connections_max`, for one source address.",
        ),
        integer(
            "http.header_timeout_ms",
            5_000,
            10..=5_000,
            "From the first byte of a request's head to its last, in milliseconds.",
        ),
        integer(
            "http.body_timeout_ms",
            10_000,
            10..=10_000,
            "How long the body of a request may take to arrive, in milliseconds.",
        ),
        integer(
            "http.idle_timeout_ms",
            75_000,
            10..=3_600_000,
            "How long a connection may stay open without a request, in milliseconds.",
        ),
        integer(
            "http.request_timeout_ms",
            30_000,
            100..=600_000,
            "From a request's head to the start of its response, in milliseconds.",
        ),
        integer(
            "http.write_timeout_ms",
            30_000,
            10..=600_000,
            "How long a peer may leave a response unread, in milliseconds.",
        ),
        list(
            "http.trusted_proxies",
            &[],
            texts::NETWORK,
            "Proxies whose `X-Forwarded-For` is believed: the right-most address that is not a proxy counts as the source. A \
             server with a proxy is not one that only its own machine reaches.",
        ),
        list(
            "http.cors_origins",
            &["*"],
            texts::ORIGIN,
            "Origins whose web pages may read responses; `*` alone allows every origin.",
        ),
        text("http.upgrade_url", "/pricing", texts::PRINTABLE, "`upgrade_url` in the body of 402 `UPGRADE_REQUIRED`."),
    ]
}

fn storage() -> Vec<Setting> {
    vec![
        text(
            "data.dir",
            DATA_DIR,
            texts::DATA_DIR,
            "The data directory. The server makes it with mode 0700; one server at a time uses it.",
        ),
        word(
            "journal.durability",
            Durability::Process,
            "What a response promises. `process`: the record survives any death of the process. `power`: the record is on \
             the device and survives loss of power.",
        ),
        parsed(
            "journal.segment_bytes",
            (64 << 20).to_string(),
            texts::SEGMENT_BYTES,
            "Length of a segment of the log, in bytes.",
        ),
        integer(
            "journal.spares_count",
            2,
            2..=8,
            "Segments that are kept ready. Together with `journal.segment_bytes` they must hold the records of all shards.",
        ),
        integer(
            "journal.reserve_bytes",
            256 << 20,
            0..=1 << 50,
            "Free bytes of the disk below which no new segment is made and orders are refused.",
        ),
        integer("journal.checkpoint_segments", 4, 1..=1_000, "Full segments between two snapshots."),
        word(
            "journal.write_formats",
            Formats::Newest,
            "Formats of new records and snapshots. `previous`: the build before reads them, too; fills have no `venue_time` \
             and signed orders keep the id of before.",
        ),
        parsed(
            "journal.crash_at",
            "",
            texts::CRASH_AT,
            "For crash tests: the process ends itself at that passage of that place of the log.",
        ),
    ]
}

fn archive() -> Vec<Setting> {
    vec![
        path("archive.dir", "Folder of the archive.").unset("`archive` in the data directory"),
        word(
            "archive.build",
            ArchiveBuild::Auto,
            "Whether the server makes hours of its recording. `auto`: if it records (`venue.record`).",
        ),
        integer(
            "archive.seal_after_s",
            600,
            60..=86_400,
            "How long after its end an hour is made, in seconds; until then it is provisional.",
        ),
        integer("archive.threads", 1, 1..=16, "Venues whose hours are written at the same time, at most."),
        integer(
            "archive.memory_bytes",
            512 << 20,
            128 << 20..=16 << 30,
            "Memory for the sorting of rows, when hours are made and when an archive is replayed, in bytes.",
        ),
        integer("archive.keep_days", 0, 0..=36_500, "Days after which an hour is removed; 0: never."),
        integer(
            "archive.raw_keep_days",
            0,
            0..=36_500,
            "Days after which an hour of the recording is removed; 0: never. Unless `archive.build = \"off\"`, an hour that \
             is not in the archive yet stays.",
        ),
        integer(
            "archive.bytes_max",
            0,
            0..=1 << 50,
            "Bytes of all hours, above which the oldest are removed; 0: no bound.",
        ),
        integer(
            "archive.books_bytes",
            256 << 20,
            16 << 20..=64 << 30,
            "Memory for books and rows that were read from the archive, in bytes.",
        ),
        integer(
            "archive.cache_bytes",
            4 << 30,
            16 << 20..=64 << 30,
            "Bytes of files in the archive that can be made again, above which the oldest are removed.",
        ),
        parsed(
            "archive.fetch_url",
            "",
            texts::ARCHIVE_ADDRESS,
            "Address of a public archive from which `papertape archive fetch` takes hours. Without it nothing is fetched.",
        ),
        integer(
            "archive.crash_at",
            0,
            0..=1 << 32,
            "For crash tests: the process ends itself at that step of the archive's files; 0: it does not.",
        ),
        integer(
            "history.cache_bytes",
            8 << 20,
            1 << 20..=64 << 30,
            "Memory for rows that were read from the history store, in bytes. Rows that are being written take at most \
             another 64 MiB.",
        ),
        integer(
            "history.hot_seconds",
            300,
            1..=7 * 24 * 3_600,
            "How long ended orders and closed positions stay in memory, in seconds of server time from their end. They \
             leave it with the first checkpoint after that.",
        ),
        integer(
            "history.hot_rows_max",
            4_096,
            16..=1 << 24,
            "Ended orders of a user that stay in memory, at most, and closed positions. Older ones leave it with the next \
             checkpoint, however recent they are.",
        ),
        integer(
            "history.hot_orders_max",
            1 << 18,
            1 << 10..=1 << 28,
            "Ended orders of all users that stay in memory, at most. Those that ended first leave it with the next checkpoint, \
             however recent they are: each snapshot writes all that stay.",
        ),
        integer(
            "history.hot_bytes_max",
            4 << 30,
            1 << 20..=1 << 40,
            "Memory for ended orders, fills and closed positions that have not left it, in bytes, in equal shares of the \
             shards; snapshots and the copy of the checkpoints take as much again. From three quarters on they leave \
             however recent they are. At the bound placements are refused (`SERVER_BUSY`) until some have left: the \
             history store takes none while the disk is full or the store is damaged.",
        ),
        integer(
            "history.filter_bytes",
            256 << 20,
            FILTER_BYTES_MIN..=FILTER_BYTES_MAX,
            "Memory for filters over client order ids and order hashes that have left it, in bytes. A placement whose id \
             is in none needs no look-up in the store; beyond the bound the oldest ids are looked up.",
        ),
        integer(
            "history.keep_days",
            0,
            0..=36_500,
            "How many days of ended orders, their trades and closed positions are kept once they have left memory; 0: all. \
             What ended earlier is cut with the next checkpoint, permanently: it is not shown any more, and removed from the disk \
             later. A cut of more than two days waits until a venue's time agrees with the clock, or for a day. At least 4, and \
             longer than `limits.client_ids_hours`.",
        ),
        integer(
            "history.disk_bytes_max",
            0,
            0..=1 << 50,
            "Bytes on disk of what has left memory, above which the oldest days of it are cut; 0: no bound, else at least 64 MiB. \
             The last 4 days always stay, and all that `limits.client_ids_hours` needs. Files may take twice as much while \
             rows are removed.",
        ),
        integer(
            "history.readers",
            3,
            1..=16,
            "Threads that read orders, trades and positions which have left memory. One of several serves only orders and cancels.",
        ),
    ]
}
