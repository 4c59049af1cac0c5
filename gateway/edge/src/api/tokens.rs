//! Token ids as public reads take them: 1 to 80 digits.

use crate::http::code::Code;
use engine::id::InstrumentId;
use engine::market::catalog::{Catalog, MarketCell};
use wire::query::Query;

/// The most digits of a token id.
const DIGITS_MAX: usize = 80;

/// 1 to 80 digits.
pub fn well_formed(token: &str) -> bool {
    // Without an early exit, so that the compiler can check many bytes in one instruction.
    (1..=DIGITS_MAX).contains(&token.len()) && token.bytes().fold(true, |digits, b| digits & b.is_ascii_digit())
}

/// The token id of a query (`token_id`, or `token`).
///
/// # Errors
/// [`Code::InvalidTokenId`] without a well-formed one.
pub fn token_id<'a>(query: &'a Query<'_>) -> Result<&'a str, Code> {
    query.first_of(&["token_id", "token"]).filter(|token| well_formed(token)).ok_or(Code::InvalidTokenId)
}

/// The instrument of a token, with its market.
pub fn find<'a>(catalog: &'a Catalog, token: &str) -> Option<(InstrumentId, &'a MarketCell)> {
    let instrument = catalog.by_token(token)?;
    Some((instrument, catalog.of_instrument(instrument)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_id_is_digits() {
        let (longest, longer) = ("7".repeat(80), "7".repeat(81));
        for (query, expected) in [
            ("token_id=81140", Ok("81140")),
            ("token=81140", Ok("81140")),
            ("token_id=1&token=2", Ok("1")),
            ("token_id=1&token_id=2", Ok("2")),
            (&format!("token_id={longest}"), Ok(longest.as_str())),
            (&format!("token_id={longer}"), Err(Code::InvalidTokenId)),
            ("", Err(Code::InvalidTokenId)),
            ("token_id=", Err(Code::InvalidTokenId)),
            ("token_id=0x51", Err(Code::InvalidTokenId)),
            ("token_id=-1", Err(Code::InvalidTokenId)),
            ("token_id=1%00", Err(Code::InvalidTokenId)),
            ("token_id=%EF%BC%91", Err(Code::InvalidTokenId)),
        ] {
            assert_eq!(token_id(&Query::read(query)), expected, "{query}");
        }
    }
}
