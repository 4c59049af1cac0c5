//! What was asked in the form of a snapshot of version 3 and before, field after field.

use super::{HIGH_SLIPPAGE, Rare, STALE_QUOTE, Terms, parts};
use crate::mutation::bytes::Bytes;
use crate::mutation::codec::CodecError;
use crate::mutation::packed::{bits, has};
use crate::user::shared_rows::SharedRow;

impl Bytes for Terms {
    fn put(&self, out: &mut Vec<u8>) {
        // What it writes is pinned, byte for byte, in `tests.rs`.
        self.wallet.put(out);
        self.key.put(out);
        self.quantity.put(out);
        self.amount.put(out);
        self.expiration.put(out);
        self.rare().is_some().put(out);
        if let Some(rare) = self.rare() {
            rare.put(out);
        }
        self.instrument.put(out);
        self.fee_rate.put(out);
        self.displayed.put(out);
        self.quote_age_ms.put(out);
        self.spread_bps.put(out);
        self.slippage_bps.put(out);
        self.impact_bps.put(out);
        self.book_walk_levels.put(out);
        self.limit.put(out);
        self.side.put(out);
        self.order_type.put(out);
        self.time_in_force.put(out);
        self.route.put(out);
        self.post_only.put(out);
        self.marketable.put(out);
        has(self.warnings, HIGH_SLIPPAGE).put(out);
        has(self.warnings, STALE_QUOTE).put(out);
    }

    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        // In the order in which they stand here; the block is known before its place.
        let (wallet, key, quantity) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let (amount, expiration) = (Bytes::take(input)?, Bytes::take(input)?);
        let (rare_block, rare_at) = parts(<Option<Rare> as Bytes>::take(input)?.map(SharedRow::alone));
        Ok(Terms {
            wallet,
            key,
            quantity,
            amount,
            expiration,
            rare_block,
            instrument: Bytes::take(input)?,
            fee_rate: Bytes::take(input)?,
            displayed: Bytes::take(input)?,
            quote_age_ms: Bytes::take(input)?,
            spread_bps: Bytes::take(input)?,
            slippage_bps: Bytes::take(input)?,
            impact_bps: Bytes::take(input)?,
            book_walk_levels: Bytes::take(input)?,
            limit: Bytes::take(input)?,
            side: Bytes::take(input)?,
            order_type: Bytes::take(input)?,
            time_in_force: Bytes::take(input)?,
            route: Bytes::take(input)?,
            post_only: Bytes::take(input)?,
            marketable: Bytes::take(input)?,
            warnings: bits([Bytes::take(input)?, Bytes::take(input)?]),
            rare_at,
        })
    }
}
