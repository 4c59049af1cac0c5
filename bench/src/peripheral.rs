//! Orders over HTTP on a server with billing, mail, chats, webhooks, football and status files, compared with a server
//! that has none of them.
//!
//! Everything is switched on and nothing is asked of it: what is measured is what an order pays for its presence. The
//! users have no alerts.

use crate::http;
use crate::report::{Report, Size};
use crate::seats::Seats;
use crate::seeded::Place;
use crate::twins::{self, Twin};
use std::path::{Path, PathBuf};

/// More than those of other comparisons: the ratio is to be known to a hundredth.
const ROUNDS: usize = 30;

pub fn run(size: Size, report: &mut Report) {
    let seats = Seats::take(report);
    let twins = [false, true].map(|has_all| {
        let place = Place::seeded(Twin::users_count(size), size);
        let token = http::write_tape(&place.tape());
        let config = place.write_config("process");
        if has_all {
            switch_on(&config, place.path());
        }
        let server = seats.start(&config);
        Twin::of(place, server, &token)
    });
    twins::compare(twins, "all providers", ROUNDS, size, report);
    report.note("users", "without alerts: nothing is sent during the rounds");
}

/// Appends every provider to the configuration. The payment provider is an address of this machine where nothing
/// listens: it is called by routes only.
fn switch_on(config: &Path, place: &Path) {
    let football = place.join("football");
    let incidents = place.join("incidents.json");
    std::fs::create_dir(&football).expect("room for a folder");
    let written = std::fs::write(football.join("fixtures.json"), "[]")
        .and_then(|()| std::fs::write(&incidents, "{\"incidents\":[]}"));
    written.expect("room for two files");
    let mail: PathBuf = place.join("mail");
    let secret = "0123456789abcdef".repeat(4);
    let mut text = std::fs::read_to_string(config).expect("just written");
    text.push_str(&format!(
        "[billing]\nprovider = \"stripe\"\nsecret_key = \"{secret}\"\nwebhook_secrets = [\"{secret}\"]\n\
         stripe_base_url = \"http://127.0.0.1:9\"\nprice_pro_monthly = \"price_1\"\n\
         success_url = \"https://example.net/paid\"\ncancel_url = \"https://example.net/left\"\n\
         return_url = \"https://example.net/account\"\n\
         [email]\nsmtp_url = \"file:{}\"\n\
         [integrations]\nallow_private_targets = true\n\
         [football]\nprovider = \"file:{}\"\n\
         [status]\nincidents_file = {incidents:?}\n",
        mail.display(),
        football.display(),
    ));
    std::fs::write(config, text).expect("room for a configuration");
}
