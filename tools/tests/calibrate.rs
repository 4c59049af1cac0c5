//! `papertape calibrate` as it is started from a shell: on a recording of lines, and its control.

use std::path::Path;
use std::process::Command;

/// 2026-08-11T06:59:00Z in ms.
const FIRST: u64 = 1_786_431_540_000;
const HEADER: &str = "order_id,token_id,side,type,price,size,post_only,sent_at,acked_at,cancelled_at,fill_id,fill_at,\
                      fill_price,fill_size,fee,transaction_hash";

struct Ran {
    code: Option<i32>,
    out: String,
    error: String,
}

fn calibrate(args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_papertape")).arg("calibrate").args(args).output();
    let output = output.expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    Ran { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
}

/// A market at 0.40 to 0.45 for a minute: a hundred shares are bid, and sixty are sold at 20 s and at 30 s.
fn record(folder: &Path) {
    let mut lines = String::new();
    let condition = "0xaa00000000000000000000000000000000000000000000000000000000000001";
    let gamma = format!(
        r#"[{{"id":"1","conditionId":"{condition}","slug":"s","clobTokenIds":"[\"11\",\"12\"]","active":true,"closed":false,"acceptingOrders":true,"orderPriceMinTickSize":0.01,"endDate":"2026-11-03T00:00:00Z"}}]"#
    );
    lines += &format!("{{\"r\":{FIRST},\"v\":\"polymarket\",\"u\":\"/markets?limit=1\",\"s\":200,\"b\":{gamma}}}\n");
    for second in 0..60 {
        let millis = FIRST + second * 1_000;
        let size = [100, 40, 0][usize::from(second >= 20) + usize::from(second >= 30)];
        let bids = |price: &str, size: u64| match size {
            0 => String::new(),
            _ => format!(r#"{{"price":"{price}","size":"{size}"}},"#),
        };
        let book = |token: &str, bids: &str, asks: &str| {
            let [bids, asks] = [bids, asks].map(|side| side.trim_end_matches(','));
            format!(
                r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{millis}","bids":[{bids}],"asks":[{asks}]}}"#
            )
        };
        let first = book("11", &(bids("0.40", size) + &bids("0.39", 50)), &bids("0.45", 100));
        let second_token = book("12", &bids("0.55", 100), &(bids("0.60", size) + &bids("0.61", 50)));
        let mut messages = vec![format!("[{first},{second_token}]")];
        if second == 20 || second == 30 {
            messages.push(format!(
                r#"{{"event_type":"last_trade_price","asset_id":"11","price":"0.40","side":"SELL","size":"60","timestamp":"{millis}"}}"#
            ));
        }
        for message in messages {
            lines += &format!("{{\"r\":{millis},\"v\":\"polymarket\",\"c\":\"1\",\"m\":{message}}}\n");
        }
    }
    std::fs::write(folder.join("tape.jsonl"), lines).expect("a file");
}

/// An order for ten at 0.40 from 10 s to 50 s, which filled at 30 s.
fn order(id: &str, token: &str) -> String {
    let at = |second: u64| (FIRST + second * 1_000) * 1_000;
    format!("{id},{token},BUY,GTC,0.40,10,false,{},{},{},f,{},0.40,10,0,", at(10), at(10), at(50), at(30))
}

#[test]
fn live_orders_are_compared_on_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let tape = folder.path().join("tape");
    std::fs::create_dir(&tape).expect("a folder");
    record(&tape);
    let file = |name: &str, lines: &[&str]| {
        let path = folder.path().join(name);
        std::fs::write(&path, [&[HEADER], lines].concat().join("\n")).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let tape = tape.to_string_lossy().into_owned();
    let good = file("good.csv", &[&order("o1", "11"), &order("o2", "99")]);
    let [json, html] = ["out.json", "out.html"].map(|name| folder.path().join(name).to_string_lossy().into_owned());
    let ran = calibrate(&[&good, "--tape", &tape, "--json", &json, "--html", &html, "--seed", "3", "--self", "off"]);
    assert_eq!(ran.code, Some(0), "{}", ran.error);
    for part in ["1 orders compared, 1 left out (unknown_token)", "queue_prob", "Recall", "hash "] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    let read = |path: &str| std::fs::read_to_string(path).expect("a file");
    let result: serde_json::Value = serde_json::from_str(&read(&json)).expect("JSON");
    let both: Vec<(&str, u64)> = result["models"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["name"].as_str().expect("a name"), row["filled_both"].as_u64().expect("a count")))
        .collect();
    assert_eq!(both, [("touch", 0), ("cross", 0), ("through", 0), ("queue", 1), ("queue_prob", 1)]);
    assert_eq!(result["orders"][0]["models"]["queue"]["filled"], "10");
    assert_eq!((&result["orders"][1]["left_out"], &result["num_compared"]), (&"unknown_token".into(), &1.into()));
    assert!(ran.out.contains(result["result_hash"].as_str().expect("a hash")));
    let page = read(&html);
    for part in ["http:", "https:", "<script", "<link", "<img", "url(", "@import"] {
        assert!(!page.contains(part), "{part} is in the page");
    }
    assert!(page.contains("<title>Calibration</title>") && page.contains("queue_prob"));
    // The same again, to standard output.
    let again = calibrate(&[&good, "--tape", &tape, "--json", "-", "--seed", "3", "--self", "off"]);
    assert_eq!((again.code, again.out.trim_end()), (Some(0), read(&json).trim_end()));
    let cut = order("o1", "11").replace("0.40,10", "0.405555,10");
    let rows: Vec<(Vec<String>, i32, &str)> = vec![
        (vec![file("none.csv", &[&order("o2", "99")]), "--tape".into(), tape.clone()], 1, "no order could be compared"),
        (vec![file("bad.csv", &[&cut]), "--tape".into(), tape.clone()], 2, "line 2, column 15 (price)"),
        (
            vec![file("header.csv", &[])[..].replace("header.csv", "absent.csv"), "--tape".into(), tape.clone()],
            2,
            "absent.csv",
        ),
        (vec![good.clone(), "--tape".into(), format!("{tape}/none")], 2, "none"),
        (vec![good.clone()], 2, "--tape"),
        (vec![good.clone(), "--tape".into(), tape.clone(), "--models".into(), "fifo".into()], 2, "touch, cross"),
        (vec![good.clone(), "--tape".into(), tape.clone(), "--set".into(), "n=9".into()], 2, "1 to 3"),
        (vec![good, "--tape".into(), tape, "--self".into(), "maybe".into()], 2, "on, off"),
    ];
    for (args, code, part) in &rows {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = calibrate(&args);
        assert_eq!(ran.code, Some(*code), "{args:?}: {}", ran.error);
        assert!(ran.error.contains(part), "{part} is not in {}", ran.error);
    }
    println!("calibrate: {} cases", rows.len() + 2);
}

#[test]
fn the_control_passes() {
    let ran = calibrate(&["--control", "--seed", "42"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.error);
    let lines = ran.out.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(lines, 3, "{}", ran.out);
    println!("control: {lines} checks\n{}", ran.out);
}
