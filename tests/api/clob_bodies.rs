//! Bodies as venue clients send them.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Every signature of a test is a different one.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn salt() -> u64 {
    479_249_096_354 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn signature(salt: u64) -> String {
    format!("0x{}{salt:016x}1b", "5f".repeat(56))
}

/// The order of the first generation of clients (py-clob-client 0.34, clob-client 5).
pub fn v1(token: &str, side: &str, maker: &str, taker: &str) -> Value {
    let salt = salt();
    json!({
        "salt": salt,
        "maker": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678",
        "signer": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678",
        "taker": "0x0000000000000000000000000000000000000000",
        "tokenId": token,
        "makerAmount": maker,
        "takerAmount": taker,
        "expiration": "0",
        "nonce": "0",
        "feeRateBps": "1000",
        "side": side,
        "signatureType": 0,
        "signature": signature(salt),
    })
}

/// The order of the second generation (py-clob-client-v2 1.2).
pub fn v2(token: &str, side: &str, maker: &str, taker: &str) -> Value {
    let salt = salt();
    json!({
        "salt": salt,
        "maker": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678",
        "signer": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678",
        "tokenId": token,
        "makerAmount": maker,
        "takerAmount": taker,
        "side": side,
        "expiration": "0",
        "signatureType": 0,
        "timestamp": "1790932445000",
        "metadata": format!("0x{}", "0".repeat(64)),
        "builder": format!("0x{}", "0".repeat(64)),
        "signature": signature(salt),
    })
}

/// The body around an order.
pub fn signed(order: &Value, kind: &str) -> Value {
    json!({"order": order, "owner": "svc_live_of_the_client", "orderType": kind, "deferExec": false, "postOnly": false})
}

/// The same order with another signature.
pub fn fresh(body: &Value) -> Value {
    let (mut body, salt) = (body.clone(), salt());
    body["order"]["salt"] = json!(salt);
    body["order"]["signature"] = json!(signature(salt));
    body
}

/// A flat order.
pub fn flat(token: &str, side: &str, price: &str, size: &str) -> Value {
    json!({"token_id": token, "side": side, "price": price, "size": size})
}
