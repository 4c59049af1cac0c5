//! State ↔ bytes, and the digest over them.
//!
//! ```text
//! version u16 │ markets: length u64, bytes │ users u64 │ user: length u64, bytes │ user … in id order
//! ```
//!
//! A user's bytes hold what the journal told and nothing that is derived from it, so they are the same whichever shard
//! the user is in and however the state came about. Lists are in the order of their ids. Framing, checksums and files
//! are not this file's matter.

use crate::mutation::bytes::{Bytes, put_list, take_list};
use crate::mutation::codec::CodecError;
use crate::time::Timestamp;
use crate::user::idempotency::Requests;
use crate::user::rows::Rows;
use crate::user::trading::{NOTHING, Trading};
use crate::user::{Identity, Quota, Remembered, Safeguard, User};

/// Appends the bytes of one user.
pub fn put_user(user: &User, out: &mut Vec<u8>) {
    let User { id, created_at, order_facts, grant, wallets, keys, quota, next_object, identity, trading } = user;
    id.put(out);
    created_at.put(out);
    order_facts.put(out);
    grant.put(out);
    quota.put(out);
    next_object.put(out);
    identity.as_ref().and_then(|identity| identity.sub.clone()).put(out);
    identity.as_ref().and_then(|identity| identity.email.clone()).put(out);
    put_list(wallets.len(), wallets.iter(), out);
    put_list(keys.len(), keys.iter(), out);
    // A user who armed and ended a heartbeat and nothing else has traded nothing.
    let trading = trading.as_deref().unwrap_or(&NOTHING);
    put_list(trading.orders.len(), trading.orders.iter(), out);
    put_list(trading.fills.len(), trading.fills.iter(), out);
    put_list(trading.positions.len(), trading.positions.iter(), out);
    match &trading.requests {
        Some(requests) => put_list(requests.rows.len(), requests.rows.iter(), out),
        None => 0_u64.put(out),
    }
    put_list(trading.safeguards.len(), trading.safeguards.iter(), out);
}

/// Reads one user; derived state is derived anew.
pub fn take_user(input: &mut &[u8]) -> Result<User, CodecError> {
    let mut user = User::new(Bytes::take(input)?, None, None, Timestamp::take(input)?);
    user.order_facts = u64::take(input)?;
    user.grant = Bytes::take(input)?;
    user.quota = Quota::take(input)?;
    user.next_object = u32::take(input)?;
    let identity = Identity { sub: Bytes::take(input)?, email: Bytes::take(input)? };
    if identity.sub.is_some() || identity.email.is_some() {
        user.identity = Some(Box::new(identity));
    }
    take_list(input, |wallet| user.wallets.push(wallet))?;
    take_list(input, |key| user.keys.push(key))?;
    user.wallets.shrink_to_fit();
    user.keys.shrink_to_fit();

    let mut trading = Trading::default();
    take_list(input, |order| _ = trading.orders.push(order))?;
    take_list(input, |fill| _ = trading.fills.push(fill))?;
    take_list(input, |position| _ = trading.positions.push(position))?;
    trading.derive()?;
    let mut remembered = Rows::<Remembered>::new();
    take_list(input, |row| _ = remembered.push(row))?;
    if !remembered.is_empty() {
        let mut requests = Requests::default();
        for row in &remembered {
            let order = trading.order_row(row.order).ok_or(CodecError::Reference)?;
            requests.note(row.id(&trading.orders[order]).ok_or(CodecError::Reference)?);
        }
        requests.rows = remembered;
        trading.requests = Some(Box::new(requests));
    }
    take_list(input, |safeguard| trading.safeguards.push(safeguard))?;
    if !trading.is_empty() {
        user.trading = Some(Box::new(trading));
    }
    Ok(user)
}

impl Bytes for Safeguard {
    fn put(&self, out: &mut Vec<u8>) {
        self.label.put(out);
        self.interval_ms.put(out);
    }
    /// It has lapsed until `refresh_safeguards`.
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        Ok(Safeguard { label: Bytes::take(input)?, interval_ms: u32::take(input)?, lapses_at: Timestamp(0) })
    }
}
