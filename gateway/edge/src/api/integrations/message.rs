//! An alert as its receivers get it (gateway/docs/integrations.md §5): JSON for webhooks, a line for chats, a text for
//! mail. Pure.
//!
//! Texts of markets, keys and requests are hostile: a title may hold mentions, markup and line breaks. They enter a line
//! by `Place` only.

use super::kinds;
use crate::api::account::settlements::Settlement;
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words;
use crate::http::auth::uuid_text;
use crate::http::record::write_record;
use engine::amount::Cash;
use engine::id::{InstrumentId, MarketId, UserId};
use engine::market::catalog::Catalog;
use engine::market::terms::Resolution;
use engine::order::{Order, Side, Status};
use engine::time::Timestamp;
use engine::user::alerts::AlertKind;
use engine::user::backtests::BacktestEnd;
use engine::view::{AboutView, KeyView, OwedAlert};
use wire::write::{Object, object};
use wire::{decimal, instant};

/// Characters of a line of chat at most.
pub const LINE_CHARS_MAX: usize = 2_000;
/// Characters of a text from outside in a line.
const TEXT_CHARS_MAX: usize = 200;
/// The text of a test.
const TEST_TEXT: &str = "This is a test: alerts of your account reach you here.";

/// An alert to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// A UUID; the same for each attempt.
    pub id: [u8; 16],
    pub kind: AlertKind,
    pub at: Timestamp,
    pub user: UserId,
    /// The object `data` of the payload.
    data: Vec<u8>,
    line: Line,
    /// The condition id of its market.
    market: Option<String>,
    order: Option<u64>,
}

/// A line in pieces: texts of this program, and texts from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Own(String),
    Outside(String),
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Chat,
    Mail,
}

impl Line {
    fn own(mut self, text: impl Into<String>) -> Line {
        self.0.push(Piece::Own(text.into()));
        self
    }

    /// A text of a market, a user or a client.
    fn outside(mut self, text: &str) -> Line {
        self.0.push(Piece::Outside(text.to_owned()));
        self
    }

    fn text(&self, place: Place) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Own(own) => text.push_str(own),
                Piece::Outside(outside) => place.write(outside, &mut text),
            }
        }
        text.chars().take(LINE_CHARS_MAX).collect()
    }
}

impl Place {
    /// Appends a text from outside: on one line, of bounded length, without what the place gives a meaning.
    fn write(self, text: &str, out: &mut String) {
        let mut chars = text.chars().peekable();
        let mut last = ' ';
        for _ in 0..TEXT_CHARS_MAX {
            let Some(c) = chars.next() else { break };
            let next = chars.peek().copied().unwrap_or(' ');
            match c {
                c if is_invisible(c) => out.push(' '),
                // A mention, the scheme of an address, and a host without one: broken by a space of no width.
                '@' if self == Place::Chat => out.extend([c, '\u{200b}']),
                ':' if self == Place::Chat && next == '/' => out.extend([c, '\u{200b}']),
                '.' if self == Place::Chat && !last.is_whitespace() && next.is_alphabetic() => {
                    out.extend([c, '\u{200b}'])
                }
                c if self == Place::Chat && MARKUP.contains(c) => out.extend(['\\', c]),
                c => out.push(c),
            }
            last = c;
        }
        if chars.next().is_some() {
            out.push('…');
        }
    }
}

/// Characters with which chats mark texts up.
const MARKUP: &str = r"\*_~`|<>[]()#-+=!";

/// Whether a character breaks a line, or changes how others are shown.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}' | '\u{61c}' | '\u{180e}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

impl Message {
    /// The message of an alert that is owed.
    pub fn of(user: UserId, owed: &OwedAlert, catalog: &Catalog) -> Message {
        let alert = &owed.alert;
        let (mut data, mut market, mut order) = (Vec::new(), None, None);
        let line = match &owed.about {
            AboutView::Order(closed) => {
                let texts = Texts::of(catalog, closed.terms.instrument);
                (market, order) = (Some(texts.market().to_owned()), Some(closed.id.0));
                let shown = Shown {
                    price: Cash(i64::from(closed.terms.limit.0) * 100),
                    quantity: closed.terms.quantity,
                    notional: closed.notional,
                    fee: closed.fee,
                    status: words::status(closed.status()),
                    reason: closed.closed().and_then(|(reason, _)| words::cancelled_reason(reason)),
                };
                shown.data(&mut data, closed, &texts);
                shown.line(alert.kind, closed, &texts)
            }
            AboutView::Fill(view) => {
                let (filled, fill) = (&view.order, &view.fill);
                let texts = Texts::of(catalog, filled.terms.instrument);
                (market, order) = (Some(texts.market().to_owned()), Some(filled.id.0));
                let status = if alert.kind == AlertKind::OrderFilled { Status::Filled } else { Status::Pending };
                let shown = Shown {
                    price: fill_price(filled, fill),
                    quantity: fill.qty,
                    notional: fill.notional,
                    fee: fill.fee,
                    status: words::status(status),
                    reason: None,
                };
                shown.data(&mut data, filled, &texts);
                shown.line(alert.kind, filled, &texts)
            }
            AboutView::Position(held) => {
                let texts = Texts::of(catalog, held.instrument);
                market = Some(texts.market().to_owned());
                match Settlement::new(held, catalog) {
                    Some(settlement) => write_record(&mut data, &settlement),
                    None => object(&mut data, |o| o.integer("position_id", held.id.0)),
                }
                let payout = held.settlement.as_ref().map(|settled| settled.payout).unwrap_or_default();
                let line = Line::default().own("Settled: ").outside(texts.outcome());
                let line = line.own(format!(" paid {}", dollars(payout)));
                titled(line, texts.question())
            }
            AboutView::Market(id) => {
                let (condition, question, winner) = resolution(catalog, *id);
                object(&mut data, |o| {
                    o.text("market_id", &condition);
                    o.text_or_null("question", question.as_deref());
                    o.text_or_null("resolved_outcome", winner.as_deref());
                    o.ts("resolved_at", alert.at);
                });
                market = Some(condition);
                let line = match &winner {
                    Some(winner) => Line::default().own("Resolved to ").outside(winner),
                    None => Line::default().own("Resolved"),
                };
                titled(line, question.as_deref())
            }
            AboutView::DailyLimit { limit, resets_at } => {
                object(&mut data, |o| {
                    o.integer("limit", (*limit).into());
                    o.ts("resets_at", *resets_at);
                });
                let until = instant::ts_text(*resets_at);
                Line::default().own(format!("The {limit} orders of today are used; more from {until}."))
            }
            AboutView::Balance { wallet, available, baseline } => {
                object(&mut data, |o| {
                    o.integer("wallet_id", wallet.0);
                    o.money("available", *available);
                    o.money("baseline", *baseline);
                });
                let (available, baseline) = (dollars(*available), dollars(*baseline));
                Line::default().own(format!("The API wallet is low: {available} of {baseline} is free."))
            }
            AboutView::Key(key) => {
                object(&mut data, |o| key_fields(o, key));
                named(Line::default().own("A key was created: ").outside(&key.prefix).own("…"), key)
            }
            AboutView::Rotation { old, new } => {
                object(&mut data, |o| {
                    key_fields(o, new);
                    o.integer("replaces_key_id", old.0);
                });
                let line = Line::default().own(format!("Key {old} was replaced by ")).outside(&new.prefix).own("…");
                named(line, new)
            }
            AboutView::Backtest { id, job } => {
                let ended = job.as_deref().and_then(|job| job.ended.as_ref());
                let end = ended.map(|ended| match ended.end {
                    BacktestEnd::Completed => "completed",
                    BacktestEnd::Failed => "failed",
                    BacktestEnd::Cancelled => "cancelled",
                });
                let figures = ended.and_then(|ended| ended.figures.as_ref());
                object(&mut data, |o| {
                    o.text("job_id", &uuid_text(id));
                    o.word_or_null("status", end);
                    o.text_or_null("error", ended.and_then(|ended| ended.error.as_deref()));
                    o.or_null("total_pnl", figures.map(|figures| figures.total_pnl), Object::money);
                    o.integer_or_null("trades", figures.map(|figures| figures.trades));
                });
                let line = Line::default().own(format!("Back-test {} {}", *uuid_text(id), end.unwrap_or("ended")));
                match figures {
                    Some(figures) => line.own(format!(": {}", dollars(figures.total_pnl))),
                    None => line,
                }
            }
            // The operator's own text: addresses in it may be followed.
            AboutView::Notice(text) => {
                object(&mut data, |o| o.text("text", text));
                Line::default().own(&**text)
            }
            AboutView::Gone => {
                object(&mut data, |_| {});
                Line::default().own(subject(alert.kind))
            }
        };
        Message { id: alert.uuid(user), kind: alert.kind, at: alert.at, user, data, line, market, order }
    }

    /// A test, with a random id.
    pub fn test(user: UserId, id: [u8; 16], at: Timestamp) -> Message {
        let mut data = Vec::new();
        object(&mut data, |o| o.text("text", TEST_TEXT));
        let line = Line::default().own(TEST_TEXT);
        Message { id, kind: AlertKind::SystemNotice, at, user, data, line, market: None, order: None }
    }

    /// The id as text.
    pub fn id_text(&self) -> String {
        uuid_text(&self.id).to_string()
    }

    /// The payload of webhooks.
    pub fn webhook(&self) -> Vec<u8> {
        let mut out = Vec::new();
        object(&mut out, |o| {
            self.head(o);
            o.integer("user_id", self.user.0);
            o.name("data").extend_from_slice(&self.data);
        });
        out
    }

    /// The payload of chats: a line, under the two names that services use, and the fields that link it to its objects.
    pub fn chat(&self) -> Vec<u8> {
        let line = self.line.text(Place::Chat);
        let mut out = Vec::new();
        object(&mut out, |o| {
            o.text("content", &line);
            o.text("text", &line);
            // No mention of the text is one, where the service knows this field.
            o.object("allowed_mentions", |o| o.array("parse", [(); 0], |_, ()| {}));
            self.head(o);
            o.text_or_null("market_id", self.market.as_deref());
            o.integer_or_null("order_id", self.order);
        });
        out
    }

    fn head(&self, o: &mut Object<'_>) {
        o.text("id", &self.id_text());
        o.word("event_type", kinds::name(self.kind));
        o.ts("created_at", self.at);
    }

    /// The subject of a mail: a fixed text of its kind.
    pub fn subject(&self) -> &'static str {
        subject(self.kind)
    }

    /// The body of a mail, with lines that end in `\n`.
    pub fn mail(&self) -> String {
        let mut text = self.line.text(Place::Mail);
        text.push_str("\n\n");
        if let Some(order) = self.order {
            text.push_str(&format!("Order: {order}\n"));
        }
        if let Some(market) = &self.market {
            text.push_str("Market: ");
            Place::Mail.write(market, &mut text);
            text.push('\n');
        }
        text.push_str(&format!(
            "Time: {}\nEvent: {} {}\n",
            instant::ts_text(self.at),
            kinds::name(self.kind),
            self.id_text()
        ));
        text
    }
}

fn subject(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::OrderFilled => "An order was filled",
        AlertKind::OrderPartiallyFilled => "An order was partially filled",
        AlertKind::OrderCancelled => "An order was cancelled",
        AlertKind::OrderExpired => "An order has expired",
        AlertKind::PositionSettled => "A position was settled",
        AlertKind::MarketResolvedWatch => "A market was resolved",
        AlertKind::DailyLimitReached => "The daily order limit is reached",
        AlertKind::LowBalance => "The API wallet is low",
        AlertKind::KeyCreated => "An API key was created",
        AlertKind::KeyRotated => "An API key was rotated",
        AlertKind::BacktestFinished => "A back-test has finished",
        AlertKind::SystemNotice => "A notice of the server",
    }
}

/// What an alert shows of an order: the fill that it is about, or the whole order.
struct Shown {
    price: Cash,
    quantity: engine::amount::Qty,
    notional: Cash,
    fee: Cash,
    status: &'static str,
    reason: Option<&'static str>,
}

impl Shown {
    fn data(&self, out: &mut Vec<u8>, order: &Order, texts: &Texts<'_>) {
        object(out, |o| {
            o.integer("order_id", order.id.0);
            o.text_or_null("client_order_id", order.terms.client_order_id());
            o.text("market_id", texts.market());
            o.text_or_null("question", texts.question());
            o.text("outcome", texts.outcome());
            o.word("side", words::side(order.terms.side));
            o.average("price", self.price);
            o.qty("quantity", self.quantity);
            o.money("notional", self.notional);
            o.money("fee", self.fee);
            o.word("status", self.status);
            o.word_or_null("cancelled_reason", self.reason);
        });
    }

    fn line(&self, kind: AlertKind, order: &Order, texts: &Texts<'_>) -> Line {
        let what = match kind {
            AlertKind::OrderFilled => "filled",
            AlertKind::OrderPartiallyFilled => "partially filled",
            AlertKind::OrderExpired => "expired",
            _ => "cancelled",
        };
        let side = match order.terms.side {
            Side::Buy => "BUY",
            Side::Sell => "SELL",
        };
        let quantity = decimal::text(|out| decimal::qty(out, self.quantity));
        let price = decimal::text(|out| decimal::money(out, self.price));
        let line =
            Line::default().own(format!("Order {} {what}: {side} {quantity} ", order.id)).outside(texts.outcome());
        titled(line.own(format!(" at {price}")), texts.question())
    }
}

/// The line with the title of its market.
fn titled(line: Line, question: Option<&str>) -> Line {
    match question {
        Some(question) => line.own(" – ").outside(question),
        None => line,
    }
}

/// The line with the name of a key.
fn named(line: Line, key: &KeyView) -> Line {
    match &key.name {
        Some(name) => line.own(" (").outside(name).own(")"),
        None => line,
    }
}

fn key_fields(o: &mut Object<'_>, key: &KeyView) {
    o.integer("key_id", key.id.0);
    o.text("key_prefix", &key.prefix);
    o.text_or_null("name", key.name.as_deref());
}

fn dollars(cash: Cash) -> String {
    format!("{} USD", decimal::text(|out| decimal::money(out, cash)))
}

/// The market of an alert, if it is about one.
pub fn market_of(owed: &OwedAlert) -> Option<MarketId> {
    let instrument = match &owed.about {
        AboutView::Order(closed) => closed.terms.instrument,
        AboutView::Fill(view) => view.order.terms.instrument,
        AboutView::Position(held) => held.instrument,
        AboutView::Market(market) => return Some(*market),
        _ => return None,
    };
    Some(instrument.market())
}

/// Condition id and question of a market, and the label of the outcome that has won.
fn resolution(catalog: &Catalog, id: MarketId) -> (String, Option<String>, Option<String>) {
    let texts = Texts::of(catalog, InstrumentId(id.0 * 2));
    let cell = catalog.market(id);
    let winner = cell.and_then(|cell| match cell.resolution()? {
        Resolution::Winner(winner) => Some(cell.outcome(winner).to_owned()),
        Resolution::Split => None,
    });
    (texts.market().to_owned(), texts.question().map(str::to_owned), winner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(text: &str) -> String {
        Line::default().outside(text).text(Place::Chat)
    }

    fn mail(text: &str) -> String {
        Line::default().outside(text).text(Place::Mail)
    }

    #[test]
    fn hostile_titles_have_no_meaning() {
        // (title, in a chat, in a mail)
        let rows = [
            ("Rain in Lisbon?", "Rain in Lisbon?", "Rain in Lisbon?"),
            ("@everyone buy", "@\u{200b}everyone buy", "@everyone buy"),
            ("<@1001> <!here>", "\\<@\u{200b}1001\\> \\<\\!here\\>", "<@1001> <!here>"),
            ("**bold** _it_ ~~no~~ `x`", r"\*\*bold\*\* \_it\_ \~\~no\~\~ \`x\`", "**bold** _it_ ~~no~~ `x`"),
            (
                "[click](http://evil.example)",
                "\\[click\\]\\(http:\u{200b}//evil.\u{200b}example\\)",
                "[click](http://evil.example)",
            ),
            ("a\nb\r\nc\td\u{0}e", "a b  c d e", "a b  c d e"),
            ("# head", r"\# head", "# head"),
            ("\u{202e}txt.exe", " txt.\u{200b}exe", " txt.exe"),
            // Services make links of names of hosts too.
            ("join discord.gg/abc", "join discord.\u{200b}gg/abc", "join discord.gg/abc"),
            ("www.evil.example", "www.\u{200b}evil.\u{200b}example", "www.evil.example"),
            ("1.evil/x x.xn--p1ai", "1.\u{200b}evil/x x.\u{200b}xn\\-\\-p1ai", "1.evil/x x.xn--p1ai"),
            ("ПРИМЕР.рф", "ПРИМЕР.\u{200b}рф", "ПРИМЕР.рф"),
            ("0.55, v1.2. End.", "0.55, v1.2. End.", "0.55, v1.2. End."),
            ("... .org a .b", "... .org a .b", "... .org a .b"),
            ("क्.भारत", "क्.\u{200b}भारत", "क्.भारत"),
            ("a\u{200b}b\u{2028}c", "a b c", "a b c"),
            (r"\@", "\\\\@\u{200b}", r"\@"),
            ("||spoiler||", r"\|\|spoiler\|\|", "||spoiler||"),
            ("Subject: x\r\nBcc: y@z", "Subject: x  Bcc: y@\u{200b}z", "Subject: x  Bcc: y@z"),
        ];
        for (title, in_chat, in_mail) in rows {
            assert_eq!(chat(title), in_chat, "{title:?}");
            assert_eq!(mail(title), in_mail, "{title:?}");
        }
        println!("hostile titles: {} cases", rows.len());
    }

    #[test]
    fn every_character_stays_on_one_line_and_is_defused() {
        let mut count = 0;
        for c in (0..=0x2_ffff).chain(0xe_0000..=0xe_0fff).filter_map(char::from_u32) {
            let (chat, mail) = (chat(&c.to_string()), mail(&c.to_string()));
            for text in [&chat, &mail] {
                assert!(text.chars().all(|c| !c.is_control() && c != '\u{2028}' && c != '\u{2029}'), "{c:?}: {text:?}");
            }
            assert!(!MARKUP.contains(c) || chat == format!("\\{c}"), "{c:?}");
            count += 1;
        }
        println!("characters: {count} cases");
    }

    #[test]
    fn lines_have_a_bound() {
        let long = "@".repeat(5_000);
        let text = chat(&long);
        assert_eq!(text.chars().count(), 2 * TEXT_CHARS_MAX + 1);
        assert!(text.ends_with('…'));
        let many = (0..50).fold(Line::default(), |line, _| line.outside(&long));
        assert_eq!(many.text(Place::Chat).chars().count(), LINE_CHARS_MAX);
    }

    #[test]
    fn a_test_is_a_system_notice() {
        let message = Message::test(UserId(7), [0x42; 16], Timestamp(1_790_932_445_000_000));
        assert_eq!(
            String::from_utf8(message.webhook()).expect("JSON"),
            concat!(
                r#"{"id":"42424242-4242-4242-4242-424242424242","event_type":"system_notice","#,
                r#""created_at":"2026-10-02T09:14:05Z","user_id":7,"#,
                r#""data":{"text":"This is a test: alerts of your account reach you here."}}"#
            )
        );
        let chat: serde_json::Value = serde_json::from_slice(&message.chat()).expect("JSON");
        assert_eq!(chat["content"], TEST_TEXT);
        assert_eq!((&chat["content"], &chat["allowed_mentions"]), (&chat["text"], &serde_json::json!({"parse": []})));
        assert_eq!(chat["order_id"], serde_json::Value::Null);
        assert!(message.mail().starts_with(TEST_TEXT) && message.mail().ends_with('\n'));
    }

    #[test]
    fn every_kind_has_a_fixed_subject() {
        let subjects: std::collections::BTreeSet<_> = AlertKind::ALL.into_iter().map(subject).collect();
        assert_eq!(subjects.len(), AlertKind::ALL.len());
        assert!(subjects.iter().all(|subject| subject.is_ascii() && subject.len() < 60));
    }
}
