//! Texts of a page. Only [`Html::raw`] writes markup; every other text is escaped.

use engine::amount::{Cash, Qty};
use engine::time::Timestamp;
use wire::decimal;
use wire::instant;

/// Characters of a label at most; the rest of a longer one is left out.
const LABEL_CHARS_MAX: usize = 300;

/// A page in progress.
#[derive(Default)]
pub(crate) struct Html(String);

impl Html {
    /// Markup of ours.
    pub fn raw(&mut self, markup: &str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// A text of anyone, escaped.
    pub fn text(&mut self, text: &str) -> &mut Html {
        escape(text, &mut self.0);
        self
    }

    /// A text of anyone of any length, whose direction of writing ends with it.
    pub fn label(&mut self, text: &str) -> &mut Html {
        self.raw("<bdi>");
        match text.char_indices().nth(LABEL_CHARS_MAX) {
            Some((end, _)) => self.text(&text[..end]).raw("…"),
            None => self.text(text),
        };
        self.raw("</bdi>")
    }

    /// `<tag class="…">text</tag>`.
    pub fn element(&mut self, tag: &str, class: &str, text: &str) -> &mut Html {
        self.open(tag, class).text(text).close(tag)
    }

    pub fn open(&mut self, tag: &str, class: &str) -> &mut Html {
        self.raw("<").raw(tag);
        if !class.is_empty() {
            self.raw(" class=\"").raw(class).raw("\"");
        }
        self.raw(">")
    }

    pub fn close(&mut self, tag: &str) -> &mut Html {
        self.raw("</").raw(tag).raw(">")
    }

    pub fn end(self) -> String {
        self.0
    }
}

/// Escapes what is markup in HTML and XML; what neither allows is replaced.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// Dollars with two decimals: `1,234.50`, `−0.52`.
pub(crate) fn money(cash: Cash) -> String {
    grouped(&decimal::text(|out| decimal::exactly::<2>(out, cash.0)))
}

/// The same with the sign of a gain.
pub(crate) fn change(cash: Cash) -> String {
    let text = money(cash);
    // What rounds to zero has no sign.
    if cash.0 > 0 && text.bytes().any(|digit| matches!(digit, b'1'..=b'9')) { format!("+{text}") } else { text }
}

/// A price in 10⁻⁶ USD with at most four decimals: `0.31`, `0.4067`.
pub(crate) fn price(cash: Cash) -> String {
    let text = decimal::text(|out| decimal::exactly::<4>(out, cash.0));
    let short = text.trim_end_matches('0');
    // At least two decimals.
    let decimals = short.len() - short.find('.').map_or(short.len(), |point| point + 1);
    if decimals < 2 { text[..text.len() - 2].to_owned() } else { short.to_owned() }
}

pub(crate) fn shares(qty: Qty) -> String {
    grouped(&decimal::text(|out| decimal::qty(out, qty)))
}

/// A part of a whole in percent with two decimals, half away from zero; of nothing it is nothing.
pub(crate) fn percent(part: i64, whole: u64) -> String {
    let magnitude = if whole == 0 { 0 } else { scaled(part.unsigned_abs(), 10_000, whole) };
    let sign = if part < 0 && magnitude > 0 { "−" } else { "" };
    format!("{sign}{}.{:02} %", count(magnitude / 100), magnitude % 100)
}

/// `value × by ÷ of`, half up.
pub(super) fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let (value, by, of) = (u128::from(value), u128::from(by), u128::from(of));
    u64::try_from((2 * value * by + of) / (2 * of)).unwrap_or(u64::MAX)
}

/// `12,345`.
pub(crate) fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// One thing, or several of them.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `2026-09-30 17:22:00` in UTC.
pub(crate) fn time(at: Timestamp) -> String {
    instant::ts_text(at).replace('T', " ").replace('Z', "")
}

/// A decimal with its digits in groups of three, and a minus that is as wide as a plus.
fn grouped(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("−", digits));
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let cases = [
            ("plain", "plain"),
            ("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"),
            ("\" onload=\"x", "&quot; onload=&quot;x"),
            ("a & b &amp;", "a &amp; b &amp;amp;"),
            ("]]>", "]]&gt;"),
            ("\u{0}\u{1b}\u{7f}\u{85}\u{ffff}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("\t\n", "  "),
            ("é😀", "é😀"),
        ];
        for (text, expected) in cases {
            let mut page = Html::default();
            page.text(text);
            assert_eq!(page.end(), expected);
        }
        let mut page = Html::default();
        page.label(&"<".repeat(400));
        assert_eq!(page.end(), format!("<bdi>{}…</bdi>", "&lt;".repeat(300)));
        println!("escapes: {} cases", cases.len() + 1);
    }

    #[test]
    fn numbers() {
        let cases = [
            (money(Cash(0)), "0.00"),
            (money(Cash(1_234_567_895_000)), "1,234,567.90"),
            (money(Cash(-517_380)), "−0.52"),
            (money(Cash(-4_999)), "0.00"),
            (money(Cash(999_995_000)), "1,000.00"),
            (change(Cash(2_923_240)), "+2.92"),
            (change(Cash(-2_923_240)), "−2.92"),
            (change(Cash(4_999)), "0.00"),
            (change(Cash(0)), "0.00"),
            (price(Cash(310_000)), "0.31"),
            (price(Cash(406_666)), "0.4067"),
            (price(Cash(5_000)), "0.005"),
            (price(Cash(1_000_000)), "1.00"),
            (price(Cash(0)), "0.00"),
            (shares(Qty(25_000_000)), "25"),
            (shares(Qty(1_234_567_899_999)), "1,234,567.8999"),
            (percent(-103, 100_000), "−0.10 %"),
            (percent(1, 3), "33.33 %"),
            (percent(5, 0), "0.00 %"),
            (percent(-1, 1_000_000), "0.00 %"),
            // The largest figure is cut.
            (percent(i64::MIN, 1), "−184,467,440,737,095,516.15 %"),
            (count(0), "0"),
            (count(123_456), "123,456"),
            (counted(1, "trade", "trades"), "1 trade"),
            (counted(0, "trade", "trades"), "0 trades"),
            (time(Timestamp(1_790_788_920_000_000)), "2026-09-30 17:22:00"),
        ];
        for (text, expected) in &cases {
            assert_eq!(text, expected);
        }
        println!("numbers: {} cases", cases.len());
    }
}
