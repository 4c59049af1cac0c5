//! Pages of back-tests that the engine ran.

use super::*;
use engine::amount::{Cash, Price, Qty, TickSize};
use engine::backtest::{
    ArchivedMarket, BookChange, BookFrame, Coverage, Ends, EquityPoint, FillModel, Haircut, Hour, HourState, JobMarket,
    Latency, Reason, Sample, Settled, SettlementSource, Strategy, TickMode, Trade, Verdict, run,
};
use engine::id::Outcome;
use engine::market::terms::{Category, Resolution};
use engine::order::{Liquidity, Side};
use engine::rules::Rules;
use engine::time::{HOUR, MINUTE, SECOND, Timestamp};
use roxmltree::{Document, ParsingOptions};
use std::convert::Infallible;

/// 2026-09-30T17.
const FIRST: Hour = Hour(497_441);

fn market(number: usize, verdicts: &[Verdict]) -> JobMarket {
    let states = verdicts.iter().enumerate();
    let states = states.map(|(at, verdict)| HourState::new(Hour(FIRST.0 + at as u32), *verdict, true));
    let end = Hour(FIRST.0 + verdicts.len() as u32);
    JobMarket {
        market: ArchivedMarket {
            condition: format!("0x{number:064x}").into(),
            tokens: [format!("{number}01").into(), format!("{number}02").into()],
            outcomes: ["Yes".into(), "No".into()],
            category: Category::Weather,
            tick: TickSize(100),
            end: Ends::default(),
            settlement: None,
            hours: FIRST..end,
        },
        outcome: Outcome::First,
        coverage: Coverage::of(FIRST..end, states),
        digests: vec![(FIRST, [number as u8; 32])],
    }
}

/// Markets of two hours, bought at the first decision and held.
pub(super) fn job_of(markets: usize) -> Job {
    Job {
        markets: (0..markets).map(|number| market(number, &[Verdict::Valid, Verdict::Degraded])).collect(),
        start: FIRST.start(),
        end: FIRST.start().plus(2 * HOUR),
        strategy: Strategy {
            side: Side::Buy,
            outcome: "Yes".to_owned(),
            size: Qty::from_shares(25),
            model: FillModel::DepthWalk,
            entry: Vec::new(),
            exit: Vec::new(),
        },
        bankroll: Cash::from_dollars(500),
        tick_mode: TickMode::Grid,
        seed: 0,
        seeds: 1,
        latency: Latency::Constant(0),
        haircut: Haircut(0),
    }
}

/// A book of ten levels a side around a price in 10⁻⁴.
fn book(at: Timestamp, market: usize, mid: u16) -> BookFrame {
    let level = |price: u16| (Price(price), Qty::from_shares(20 + u64::from(price / 100 % 7)));
    let bids = (1..=10).map(|step| level(mid - step * 100)).collect();
    let asks = (1..=10).map(|step| level(mid + step * 100)).collect();
    BookFrame { at, market, changes: vec![BookChange::Book { outcome: Outcome::First, bids, asks }] }
}

pub(super) fn ran(job: &Job, frames: &[BookFrame]) -> Report {
    let open = || Ok::<_, Infallible>(frames.iter());
    run(job, &Rules::default(), open, &mut |_| true).expect("it ends")
}

/// Markets that were entered at these prices in 10⁻⁶, with their results.
pub(super) fn entered(markets: &[(i64, Resolution)]) -> (Job, Report) {
    let mut job = job_of(markets.len().max(1));
    for (of, (_, resolution)) in job.markets.iter_mut().zip(markets) {
        let settled = Settled { resolution: *resolution, at: job.end, source: SettlementSource::Upstream };
        of.market.settlement = Some(settled);
    }
    let mut report = ran(&job, &[]);
    let trade = |(market, (price, _)): (usize, &(i64, Resolution))| Trade {
        at: job.start.plus(MINUTE),
        market,
        side: Side::Buy,
        shares: Qty::from_shares(10),
        price: Cash(*price),
        notional: Cash(10 * price),
        fee: Cash(1_000),
        reason: Reason::Entry,
    };
    report.trades = markets.iter().enumerate().map(trade).collect();
    (job, report)
}

/// Two markets that move, with several entries and exits, over twenty seeds; the first one gets its result.
pub(super) fn busy() -> (Job, Report) {
    use engine::backtest::{Field, Operator, Predicate, Threshold};
    let when = |operator, hundredths: i128| Predicate {
        field: Field::Price,
        operator,
        value: Threshold(hundredths * 10_000_000_000),
    };
    let mut job = job_of(2);
    let verdicts =
        [Verdict::Valid, Verdict::Valid, Verdict::Degraded, Verdict::Missing, Verdict::Valid, Verdict::Partial];
    job.markets = (0..2).map(|number| market(number, &verdicts)).collect();
    job.end = job.start.plus(6 * HOUR);
    job.markets[0].market.settlement = Some(Settled {
        resolution: Resolution::Winner(Outcome::First),
        at: job.start.plus(4 * HOUR + 35 * MINUTE),
        source: SettlementSource::Upstream,
    });
    job.strategy.entry = vec![when(Operator::LessOrEqual, 42)];
    job.strategy.exit = vec![when(Operator::GreaterOrEqual, 52)];
    (job.seed, job.seeds) = (7, 20);
    (job.latency, job.haircut) = (Latency::Uniform(500, 20_000), Haircut(4_000));
    let mut frames = Vec::new();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for step in 0..1_440_u64 {
        for market in 0..2 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Noise on a wave of 90 minutes between 0.36 and 0.58, the second market half an hour later.
            let phase = (step + 360 - market as u64 * 120) % 360;
            let wave = 3_600 + if phase < 180 { phase } else { 360 - phase } * 2_200 / 180;
            let mid = (wave + state % 500 - 250) / 100 * 100;
            frames.push(book(job.start.plus(step * 15 * SECOND), market, mid as u16));
        }
    }
    let report = ran(&job, &frames);
    (job, report)
}

fn page_of(job: &Job, report: &Report, questions: &[String], warnings: &[String]) -> String {
    let rules = Rules::default();
    html(job, report, &Context { questions, fees: &rules.fees, program: "papertape 0.1.0 (0123abc)", warnings })
}

/// The page as XML.
fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn with_class<'a>(document: &'a Document<'a>, tag: &str, class: &str) -> usize {
    let is_it = |node: &roxmltree::Node<'_, '_>| node.has_tag_name(tag) && node.attribute("class") == Some(class);
    document.descendants().filter(is_it).count()
}

fn headings<'a>(document: &'a Document<'a>) -> Vec<&'a str> {
    document.descendants().filter(|node| node.has_tag_name("h2")).filter_map(|node| node.text()).collect()
}

/// Every page loads nothing.
fn is_alone(page: &str) {
    let references =
        ["http:", "https:", "//", "url(", "@import", "src=", "href=", "<script", "<link", "<img", "<use", "data:"];
    for reference in references {
        assert!(!page.contains(reference), "{reference} in {}", &page[page.find(reference).unwrap_or(0)..][..80]);
    }
    let head = page.find("<title>").expect("a title");
    assert!(page[..head].contains("content=\"default-src 'none'; style-src 'unsafe-inline'; "));
}

#[test]
fn a_page_has_its_parts() {
    let (job, report) = busy();
    assert!(report.trades.len() >= 6 && report.settlement_scored, "{} trades", report.trades.len());
    let questions = ["Rain in Lisbon on 3 October?", "Snow in Oslo on 3 October?"].map(str::to_owned);
    let page = page_of(&job, &report, &questions, &["The recording has 2 gaps.".to_owned()]);
    is_alone(&page);
    let document = parsed(&page);
    let expected =
        ["Warnings", "Equity", "Drawdown", "Prices and fills", "Trades", "Coverage", "What the result depends on"];
    assert_eq!(headings(&document), expected);
    // One band and its explanation; a line for the run, for the naive one, and for each price.
    for (class, count) in [("band", 2), ("run", 2), ("naive", 2), ("price", 4), ("fall", 1)] {
        assert_eq!(with_class(&document, "path", class), count, "{class}");
    }
    for reason in [Reason::Entry, Reason::Exit, Reason::Settlement] {
        let of_reason = |market: usize| {
            report.trades.iter().filter(|trade| (trade.reason, trade.market) == (reason, market)).count()
        };
        // A dot for each, and one in the legend of each chart that has some.
        let dots: usize = (0..2).map(|market| of_reason(market) + usize::from(of_reason(market) > 0)).sum();
        assert_eq!(with_class(&document, "path", reason.name()), dots, "{reason:?}");
        assert_eq!(with_class(&document, "span", reason.name()), of_reason(0) + of_reason(1), "{reason:?}");
    }
    for text in [
        "Rain in Lisbon on 3 October?",
        "The recording has 2 gaps.",
        "500 to 20000 ms, evenly spread",
        "up to 40.00 %",
        "7 to 26",
        "price ≤ 0.42",
        "weather 5.00 %",
        "papertape 0.1.0 (0123abc)",
        &archive::hex(&report.hash),
        &archive::hex(&[1; 32]),
        "3 valid · 1 degraded · 1 partial · 1 missing",
        "2 market hours had no decisions: no usable books.",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("Brier"));
    assert_eq!(page, page_of(&job, &report, &questions, &["The recording has 2 gaps.".to_owned()]), "it is pure");
    println!("parts of a page: {} cases", expected.len() + 21);
}

#[test]
fn pages_of_little() {
    let mut cases = 0;
    // Nothing happened; one market without any book; a market and its result.
    for (frames, seeds) in
        [(vec![], 1), (vec![book(FIRST.start(), 0, 4_000)], 1), (vec![book(FIRST.start(), 0, 4_000)], 2)]
    {
        let mut job = job_of(1);
        job.seeds = seeds;
        let report = ran(&job, &frames);
        let page = page_of(&job, &report, &[], &[]);
        is_alone(&page);
        let document = parsed(&page);
        assert_eq!(with_class(&document, "path", "band") > 0, seeds > 1);
        assert_eq!(page.contains("The archive has no price of it in the window."), frames.is_empty());
        assert_eq!(page.contains("There are none."), frames.is_empty());
        assert!(page.contains(&*job.markets[0].market.condition), "without a question the condition is shown");
        cases += 1;
    }
    // A report without samples, as rows alone give it.
    let (job, mut report) = busy();
    report.samples = engine::backtest::Samples::default();
    let page = page_of(&job, &report, &[], &[]);
    assert_eq!(with_class(&parsed(&page), "path", "naive"), 0);
    println!("small pages: {} cases", cases + 1);
}

/// Markets of a venue share its hours: a digest is shown once. An hour of two venues has two.
#[test]
fn an_hour_has_its_digest_once() {
    let next = Hour(FIRST.0 + 1);
    // The digests of each market, and the lines.
    type Digests<'a> = &'a [(Hour, u8)];
    let cases: [(&[Digests<'_>], &[&str]); 4] = [
        (&[&[], &[]], &[]),
        (&[&[(FIRST, 7)]], &["2026-09-30T17 07"]),
        (&[&[(FIRST, 7), (next, 8)], &[(next, 8)], &[(FIRST, 7)]], &["2026-09-30T17 07", "2026-09-30T18 08"]),
        (&[&[(FIRST, 9)], &[(FIRST, 7), (next, 7)]], &["2026-09-30T17 07", "2026-09-30T17 09", "2026-09-30T18 07"]),
    ];
    for (markets, lines) in cases {
        let mut job = job_of(markets.len());
        for (of, digests) in job.markets.iter_mut().zip(markets) {
            of.digests = digests.iter().map(|(hour, byte)| (*hour, [*byte; 32])).collect();
        }
        let page = page_of(&job, &ran(&job, &[]), &[], &[]);
        let document = parsed(&page);
        let list = document.descendants().find(|node| node.attribute("class") == Some("digests")).expect("a list");
        let texts: Vec<&str> =
            list.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
        let expected: Vec<String> =
            lines.iter().flat_map(|line| [line[..14].to_owned(), line[14..].repeat(32)]).collect();
        assert_eq!(texts, expected, "{markets:?}");
        assert!(page.contains(&format!("Digests of {} hour", lines.len())), "{markets:?}");
    }
    println!("digests: {} cases", cases.len());
}

/// The rate of closed positions is the `win_rate` of the summary.
#[test]
fn positions_that_gained_have_the_rate_of_the_summary() {
    let cases = [
        (None, "none closed"),
        (Some((0, 0)), "none closed"),
        (Some((0, 2)), "0 of 2, 0.0%"),
        (Some((7, 12)), "7 of 12, 58.3%"),
        (Some((1, 1)), "1 of 1, 100.0%"),
    ];
    let (job, mut report) = entered(&[(200_000, Resolution::Split)]);
    for (won, expected) in cases {
        report.won = won;
        let page = page_of(&job, &report, &[], &[]);
        assert!(page.contains(&format!("<dt>Positions that gained</dt><dd>{expected}</dd>")), "{won:?}");
    }
    println!("rates: {} cases", cases.len());
}

fn fill(number: u64, side: Side, notional: i64) -> BotFill {
    BotFill {
        at: FIRST.start().plus(number * MINUTE),
        side,
        condition: format!("0x{:064x}", number % 40),
        outcome: "Yes".to_owned(),
        shares: Qty::from_shares(10),
        notional: Cash(notional),
        fee: Cash(1_000),
        liquidity: if number.is_multiple_of(2) { Liquidity::Maker } else { Liquidity::Taker },
    }
}

fn bot_page(fills: &[BotFill], points: &[EquityPoint], text: &str, is_completed: bool) -> String {
    let inputs = vec![(text, text.to_owned()); 300];
    bot_html(&BotRun {
        span: FIRST.start()..FIRST.start().plus(HOUR),
        is_completed,
        initial: Cash::from_dollars(100),
        points,
        orders: 7,
        fills,
        inputs: &inputs,
        warnings: &[text.to_owned()],
    })
}

#[test]
fn runs_of_bots_are_pages() {
    let point = |minute: u64, dollars: i64| EquityPoint {
        at: FIRST.start().plus(minute * MINUTE),
        cash: Cash::from_dollars(dollars),
        position_value: Cash::ZERO,
    };
    let points = [point(0, 100), point(30, 90), point(60, 104)];
    let two = [fill(1, Side::Buy, 3_100_000), fill(2, Side::Sell, 4_500_000)];
    let traded = ["Warnings", "Equity", "Drawdown", "Prices and fills", "Trades", "What the result depends on"];
    let idle = ["Warnings", "Equity", "Drawdown", "Trades", "What the result depends on"];
    let ended = ["Warnings", "Drawdown", "Trades", "What the result depends on"];
    let lost = "The bot lost 10.00 USD (−10.00 %) with 100.00 USD in 2 trades before it failed.";
    let gained = "The bot gained 4.00 USD (4.00 %) with 100.00 USD in 2 trades.";
    let cases = [
        (&two[..], &points[..], true, gained, &traded[..]),
        (&two, &points[..2], false, lost, &traded),
        (&[], &points[..1], true, "The bot made no trade.", &idle),
        (&[], &[], false, "The bot made no trade before it failed.", &ended),
    ];
    for (fills, points, is_completed, sentence, expected) in cases {
        let page = bot_page(fills, points, "a text", is_completed);
        is_alone(&page);
        let document = parsed(&page);
        let heading = document.descendants().find(|node| node.has_tag_name("h1")).and_then(|node| node.text());
        assert_eq!(heading, Some(sentence));
        assert_eq!(headings(&document), expected, "{sentence}");
        let dots = ["entry", "exit"].map(|class| page.matches(&format!("class=\"{class}\" d=\"M")).count());
        // A dot, and that of the legend.
        assert_eq!(dots, if fills.is_empty() { [0, 0] } else { [2, 2] }, "{sentence}");
    }
    assert!(bot_page(&two, &points, "", true).contains("buy: 10 shares at 0.31, 2026-09-30 17:01:00"));
    // Texts of the venue and of the command line stay texts, and a long run has a bound.
    let hostile = "<\"'&>".repeat(2_000);
    let many: Vec<BotFill> = (0..100_000)
        .map(|number| {
            let of = fill(number % 60, Side::Buy, (number as i64 * 7_919) % 10_000_000);
            BotFill { condition: format!("{}{hostile}", number % 40), outcome: hostile.clone(), ..of }
        })
        .collect();
    let page = bot_page(&many, &points, &hostile, true);
    assert!(page.len() <= BYTES_MAX, "{} bytes", page.len());
    let document = parsed(&page);
    assert!(document.descendants().all(|node| !matches!(node.tag_name().name(), "script" | "img")));
    for text in ["The 12 tokens with the most trades are drawn; 28 tokens are left out.", "100 more are left out."] {
        assert!(page.contains(text), "{text}");
    }
    println!("pages of bots: {} cases, the largest has {} bytes", cases.len() + 2, page.len());
}

#[test]
fn hostile_texts_stay_texts() {
    let hostile = [
        "</title><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "<!--",
        "-->",
        "]]>",
        "<![CDATA[",
        "&lt;b&gt;",
        "&#60;",
        "&",
        "</style>",
        "</svg>",
        "<?xml ?>",
        "\u{202e}evil\u{202c}",
        "\u{0}\u{1}\u{b}\u{1f}\u{7f}\u{9f}",
        "\u{feff}",
        "\u{fffe}",
        "a\nb\tc\rd",
        "https://evil.example/x.css",
        "url(https://evil.example)",
        "@import 'x'",
        "é😀",
        "",
    ];
    let (mut job, mut report) = entered(&[(200_000, Resolution::Split), (300_000, Resolution::Split)]);
    let mut cases = 0;
    let clean = page_of(&job, &report, &[], &[]);
    let count = |page: &str| parsed(page).descendants().filter(|node| node.is_element()).count();
    for text in hostile {
        job.strategy.outcome = text.to_owned();
        job.markets[0].market.outcomes = [text.into(), text.into()];
        report.trades[0].reason = Reason::Exit;
        let texts = [text.to_owned(), format!("{text}{text}")];
        let page = page_of(&job, &report, &texts, &texts);
        let document = parsed(&page);
        // Elements are those of texts without markup: two warnings more, and nothing else.
        assert_eq!(count(&page) - count(&clean), 2 * 2, "{text:?}");
        for node in document.descendants() {
            assert!(!matches!(node.tag_name().name(), "script" | "img" | "b"), "{text:?}");
            for attribute in node.attributes() {
                let is_ours = matches!(
                    attribute.name(),
                    "class"
                        | "d"
                        | "style"
                        | "viewBox"
                        | "preserveAspectRatio"
                        | "role"
                        | "aria-label"
                        | "aria-hidden"
                        | "charset"
                        | "http-equiv"
                        | "content"
                        | "name"
                        | "lang"
                        | "colspan"
                );
                assert!(is_ours, "{} of {text:?}", attribute.name());
            }
        }
        // What is readable is shown as it was given.
        if !text.chars().any(|c| c.is_control() || c == '\u{fffe}') && !text.is_empty() {
            let shown = document.descendants().filter(|node| node.has_tag_name("bdi") && node.text() == Some(text));
            assert!(shown.count() >= 3, "{text:?}");
        }
        cases += 1;
    }
    println!("hostile texts: {cases} cases");
}

#[test]
fn the_largest_page_is_within_the_bound() {
    let mut job = job_of(100);
    let hours = 2_160;
    job.end = job.start.plus(hours * HOUR);
    // Neighbours that differ, so that nothing is joined.
    let verdicts: Vec<Verdict> = (0..hours as usize).map(|hour| Verdict::ALL[hour % 5]).collect();
    for (number, of) in job.markets.iter_mut().enumerate() {
        *of = market(number, &verdicts);
        of.digests = (0..hours as u32).map(|hour| (Hour(FIRST.0 + hour), [hour as u8; 32])).collect();
        of.market.outcomes = ["<".repeat(5_000).as_str().into(), "&".repeat(5_000).as_str().into()];
    }
    job.strategy.outcome = "\"".repeat(5_000);
    let mut report = ran(&job_of(100), &[]);
    let moment = |number: u64, of: u64| job.start.plus(hours * HOUR / of * number);
    report.trades = (0..100_000)
        .map(|number| Trade {
            at: moment(number, 100_000),
            market: (number % 100) as usize,
            side: if number % 2 == 0 { Side::Buy } else { Side::Sell },
            shares: Qty(u64::MAX / 7 - number),
            price: Cash((number as i64 * 7_919) % 1_000_000),
            notional: Cash(number as i64 * 1_000_003),
            fee: Cash(number as i64 * 1_009),
            reason: [Reason::Entry, Reason::Exit, Reason::Settlement][(number % 3) as usize],
        })
        .collect();
    report.points = (0..100_000)
        .map(|number| EquityPoint {
            at: moment(number, 100_000),
            cash: Cash((number as i64 * 104_729) % 10_000_000_000_000),
            position_value: Cash((number as i64 * 7_919) % 1_000_000_000),
        })
        .collect();
    report.samples.moments = (0..engine::backtest::SAMPLES_MAX)
        .map(|number| {
            let cash = Cash((number as i64 * 1_299_709) % 5_000_000_000_000);
            Sample { at: moment(number, 1_000), naive: cash, band: Some([Cash(-cash.0), cash, Cash(cash.0 * 2)]) }
        })
        .collect();
    let mids = |market: i64| (0..1_000).map(|number| Some(Cash((number * 7_919 + market) % 1_000_000))).collect();
    report.samples.mids = (0..100).map(mids).collect();
    let long = "<\"'&>".repeat(2_000);
    let page = page_of(&job, &report, &vec![long.clone(); 100], &vec![long; 100]);
    assert!(page.len() <= BYTES_MAX, "{} bytes", page.len());
    let document = parsed(&page);
    let rows = document.descendants().filter(|node| node.has_tag_name("tr")).count();
    // The list of trades with its head and its gap, and the inputs.
    assert_eq!(rows, 1_000 + 2 + 13);
    for text in [
        "The first and the last 500 of 100,000 trades are listed; 99,000 in the middle are left out.",
        "The 12 markets with the most trades are drawn; 88 markets are left out.",
        "1,000 trades, of which 250 are drawn",
        "A cell is 5 hours, and has the colour of the worst of them.",
        "Digests of 2,160 hours",
        "160 more are in the result hash.",
    ] {
        assert!(page.contains(text), "{text}");
    }
    println!("the largest page: {} bytes", page.len());
}
