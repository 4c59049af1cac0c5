//! The model of a load, compared with the server's history: equal as it was written, and every planted fault is named.

use crate::lost::killed;
use crate::{Site, output_text, url};
use std::fs;
use std::path::{Path, PathBuf};
use tests::cases::Cases;
use tests::departing::leaving_soon;
use tests::server::Server;

const ROW_BYTES: usize = 64;

/// Runs a load that writes a model.
#[track_caller]
fn load(site: &Site, server: &Server, model: &Path, args: &str) {
    let mut args: Vec<&str> = args.split(' ').collect();
    args.extend(["--model", model.to_str().expect("UTF-8")]);
    site.load_well(server, &args);
}

/// Compares a model with the server; returns whether they are equal, and the output.
fn reconcile(site: &Site, server: &Server, model: &Path) -> (bool, String) {
    let mut load = site.load(&url(server), &[]);
    let output = load.arg("--check-history").arg(model).output().expect("papertape can be run");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", output_text(&output));
    (output.status.success(), output_text(&output))
}

/// The files of rows of a model.
fn files(model: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(model).expect("a model is a folder").map(|entry| entry.expect("readable").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "rows")).collect();
    files.sort();
    files
}

/// A copy of a model of which `harm` changes the first row that `which` chooses.
#[track_caller]
fn harmed(model: &Path, copy: &Path, which: fn(&[u8]) -> bool, harm: fn(&mut Vec<u8>, usize)) {
    fs::create_dir_all(copy).expect("room");
    fs::copy(model.join("runs.jsonl"), copy.join("runs.jsonl")).expect("room");
    let mut is_harmed = false;
    for file in files(model) {
        let mut bytes = fs::read(&file).expect("readable");
        let found = bytes.chunks(ROW_BYTES).position(which).filter(|_| !is_harmed);
        if let Some(row) = found {
            harm(&mut bytes, row * ROW_BYTES);
            is_harmed = true;
        }
        fs::write(copy.join(file.file_name().expect("a name")), bytes).expect("room");
    }
    assert!(is_harmed, "the model has such a row");
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn add(bytes: &mut [u8], more: i64) {
    let sum = number(bytes) + more;
    bytes.copy_from_slice(&sum.to_le_bytes());
}

/// An acknowledged order with fills, and one without.
fn is_filled(row: &[u8]) -> bool {
    row[24] == 1 && number(&row[40..48]) > 0
}

fn is_resting(row: &[u8]) -> bool {
    row[24] == 1 && number(&row[40..48]) == 0
}

/// The runs over both transports, with orders of which most leave memory.
#[test]
fn a_model_equals_the_history_and_planted_faults_are_named() {
    let cases = Cases::of("models");
    let mut site = Site::new(2);
    leaving_soon(&mut site.place);
    let server = site.place.start();
    let model = site.file("model");
    let runs = [
        "--rate 400 --duration 4 --connections 2 --pipeline 2 --mix rest=40,cross=40,cancel=20",
        "--rate 400 --duration 4 --connections 2 --transport ws --mix rest=30,cross=40,cancel=30 --clean",
    ];
    for args in runs {
        load(&site, &server, &model, args);
        let (is_equal, text) = reconcile(&site, &server, &model);
        assert!(is_equal && text.starts_with("equal: 2 users"), "{args}: {text}");
        cases.one();
    }
    type Row = (&'static str, fn(&[u8]) -> bool, fn(&mut Vec<u8>, usize));
    let rows: [Row; 10] = [
        // An order that the server never had, before all others.
        ("are missing", is_resting, |bytes, at| {
            let mut more = bytes[at..at + ROW_BYTES].to_vec();
            (more[8], more[20]) = (!more[8], 0xff);
            more[16..20].copy_from_slice(&[0; 4]);
            bytes.splice(0..0, more);
        }),
        ("another notional", is_filled, |bytes, at| add(&mut bytes[at + 48..at + 56], 1)),
        ("another fee", is_filled, |bytes, at| add(&mut bytes[at + 56..at + 64], 1)),
        ("another quantity", is_filled, |bytes, at| add(&mut bytes[at + 40..at + 48], 1)),
        ("of another size", is_resting, |bytes, at| add(&mut bytes[at + 32..at + 40], 1)),
        ("at another price", is_resting, |bytes, at| bytes[at + 28] ^= 1),
        ("refused or never sent", is_filled, |bytes, at| drop(bytes.drain(at..at + ROW_BYTES))),
        ("another id, side or token", is_resting, |bytes, at| bytes[at + 8] ^= 1),
        ("another id, side or token", is_resting, |bytes, at| bytes[at + 25] = 2),
        ("killed orders that have trades", is_filled, |bytes, at| bytes[at + 24] = 3),
    ];
    for (number, (expected, which, harm)) in rows.into_iter().enumerate() {
        let copy = site.file(&format!("harmed-{number}"));
        harmed(&model, &copy, which, harm);
        let (is_equal, text) = reconcile(&site, &server, &copy);
        assert!(!is_equal && text.contains("DIFFERENT") && text.contains(expected), "{expected}: {text}");
        cases.one();
    }
    let (is_equal, text) = reconcile(&site, &server, &site.file("nothing"));
    assert!(!is_equal && text.contains("name a folder of `papertape load --model DIR`"), "{text}");
    cases.one();
}

/// What had no answer may have happened or not.
#[test]
fn a_model_equals_the_history_after_a_kill() {
    let cases = Cases::of("models over a kill");
    for transport in ["rest", "ws"] {
        let mut site = Site::new(2);
        let model = site.file("model");
        let mut args: Vec<&str> =
            "--rate 300 --duration 6 --connections 2 --pipeline 4 --mix rest=40,cross=40,cancel=20"
                .split(' ')
                .collect();
        args.extend(["--transport", transport, "--model", model.to_str().expect("UTF-8")]);
        let (server, _, text) = killed(&mut site, &args, true);
        let (is_equal, verdict) = reconcile(&site, &server, &model);
        assert!(is_equal && verdict.starts_with("equal: 2 users"), "{transport}: {verdict}\n{text}");
        cases.one();
    }
}
