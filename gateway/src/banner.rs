//! The lines that a start prints: address, data directory, durability, venue, markets, the result of recovery, settings
//! that differ from their defaults, and for a first start the demo key (once) with a command to try.

use crate::config::{Config, Durability};
use edge::http::auth::RawKey;
use edge::reads::Reads;
use engine::id::{MarketId, Outcome};
use host::output;
use journal::recover::Report;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses of the listeners.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub server: SocketAddr,
    /// For monitors and operators.
    pub admin: Option<SocketAddr>,
}

/// Prints the banner to standard output.
pub fn print(
    config: &Config,
    reads: &Reads,
    at: Addresses,
    venue: &str,
    report: &Report,
    warnings: &[String],
    demo: Option<&RawKey>,
) {
    // The server runs even if standard output is closed or not read.
    output::write_with_timeout(std::io::stdout, text(config, reads, at, venue, report, warnings, demo));
}

fn text(
    config: &Config,
    reads: &Reads,
    at: Addresses,
    venue: &str,
    report: &Report,
    warnings: &[String],
    demo: Option<&RawKey>,
) -> String {
    let address = at.server;
    let durability = match config.journal.durability {
        Durability::Process => "process (survives any death of the process)",
        Durability::Power => "power (survives power loss too)",
    };
    let mut lines = vec![
        format!("papertape {} on http://{address}", env!("CARGO_PKG_VERSION")),
        format!("  data        {}", config.data.dir.display()),
        format!("  durability  {durability}"),
        format!("  venue       {venue}"),
        format!("  markets     {}", reads.catalog.len()),
        format!("  recovered   {report}"),
    ];
    lines.extend(warnings.iter().map(|warning| format!("  warning     {warning}")));
    lines.extend(at.admin.map(|admin| format!("  metrics     http://{admin}/metrics")));
    // Never the token: banners end up in logs.
    lines.extend(at.admin.map(|admin| {
        let file = config.admin.token_file.clone().unwrap_or_else(|| config.kept_admin_token());
        format!("  admin       http://{admin}/v1/admin/   (token in {})", file.display())
    }));
    lines.extend(config.chosen().map(|setting| format!("  setting     {setting}")));
    if let Some(key) = demo {
        lines.push(format!("  demo key    {}   (shown once)", key.expose()));
        if let Some(token) = first_tradable_token(reads) {
            lines.push("  try".into());
            lines.push(format!(
                "    curl -s http://{address}/v1/orders -H 'X-API-Key: {}' -H 'Content-Type: application/json' \
                 -d '{{\"token_id\":\"{token}\",\"side\":\"BUY\",\"order_type\":\"market\",\"quantity\":\"10\",\"price\":\"0.99\"}}'",
                key.expose()
            ));
        }
    }
    if demo.is_none() {
        lines.push(way_to_a_key(config, at.server, report.users));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// How to get a key when this start printed none.
fn way_to_a_key(config: &Config, address: SocketAddr, users: usize) -> String {
    let command = key_command(config, address);
    match (address.ip().is_loopback(), users) {
        (false, 0) => format!(
            "  keys        none yet; `{command}` creates a user and a key, on this machine. The user `demo` is \
             created only on a \
             loopback address"
        ),
        // A first start printed one, or `seed` wrote them to a file.
        _ => format!("  keys        a lost one is replaced by `{command}`; the user of a first start is `demo`"),
    }
}

/// The command that makes a key for this server, run in the folder in which the server was started, with the options it
/// needs there.
fn key_command(config: &Config, address: SocketAddr) -> String {
    let defaults = Config::defaults();
    // A listener on all addresses is reached by the loopback address.
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let server = SocketAddr::new(ip, address.port());
    let mut command = "papertape key --sub NAME".to_owned();
    if server != defaults.server.listen {
        command.push_str(&format!(" --server {server}"));
    }
    if let Some(file) = &config.file {
        command.push_str(&format!(" --config {}", quoted(&file.to_string_lossy())));
    }
    if config.data.dir != defaults.data.dir {
        command.push_str(&format!(" --data-dir {}", quoted(&config.data.dir.to_string_lossy())));
    }
    command
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if word.bytes().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A token with an ask, so that the command fills.
fn first_tradable_token(reads: &Reads) -> Option<String> {
    let offered = |market: &MarketId| {
        let cell = reads.catalog.market(*market)?;
        let instrument = cell.instrument(Outcome::First);
        let top = reads.books.best(instrument).ok()?;
        (cell.tradable() && top.ask.is_some()).then(|| cell.token(Outcome::First).to_owned())
    };
    reads.catalog.ordered().iter().find_map(offered)
}
