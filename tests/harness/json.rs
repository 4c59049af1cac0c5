//! Reading answers. Money and shares are compared as integers of 10⁻⁶, never as floats.

use serde_json::Value;

/// The member at a path such as `/position/quantity`; panics with the whole answer when it is missing.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    value.pointer(path).unwrap_or_else(|| panic!("no {path} in {value}"))
}

/// A text member.
pub fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_else(|| panic!("{path} is not a text in {value}"))
}

/// An integer member.
pub fn int(value: &Value, path: &str) -> i64 {
    at(value, path).as_i64().unwrap_or_else(|| panic!("{path} is not an integer in {value}"))
}

/// A list member; an empty path is the answer itself.
pub fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().unwrap_or_else(|| panic!("{path} is not a list in {value}"))
}

/// A decimal text member in millionths.
pub fn micros_at(value: &Value, path: &str) -> i64 {
    micros(text(value, path))
}

/// A decimal text in millionths: `"-1.25"` → −1 250 000. More than six decimals is an error of the server.
pub fn micros(decimal: &str) -> i64 {
    try_micros(decimal).unwrap_or_else(|| panic!("{decimal:?} is not a decimal of the wire"))
}

fn try_micros(decimal: &str) -> Option<i64> {
    let (negative, digits) = match decimal.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, decimal),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (digits, ""),
    };
    if whole.is_empty() || fraction.len() > 6 || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_i64.pow(6 - fraction.len() as u32);
    let fraction = if fraction.is_empty() { 0 } else { fraction.parse::<i64>().ok()? * scale };
    let value = whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction)?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::try_micros;

    #[test]
    fn decimals_are_read_to_the_last_digit() {
        let rows = [
            ("0", Some(0)),
            ("0.00", Some(0)),
            ("12", Some(12_000_000)),
            ("-3.20", Some(-3_200_000)),
            ("78.391", Some(78_391_000)),
            ("0.000001", Some(1)),
            ("0.0000001", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("1e3", None),
        ];
        for (decimal, expected) in rows {
            assert_eq!(try_micros(decimal), expected, "{decimal}");
        }
        println!("decimals: {} cases", rows.len());
    }
}
