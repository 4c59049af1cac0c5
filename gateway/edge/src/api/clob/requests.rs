//! Request bodies in the shapes of the venue's clients, for the machine description. Their readers ([`super::signed`],
//! [`super::flat`], [`super::cancel`], [`super::tokens`]) take the fields one at a time.

use super::words::VenueOrderType;
use crate::api::orders::records::{SentDecimal, SentExpiration};
use crate::api::orders::words::{RequestedTimeInForce, SideInAnyCase, SideName};
use crate::http::record::{List, forms, record};
use crate::http::scalar::TokenId;
use serde_json::Value;

const TOKEN: &str = "71321045679252212594626385532706912750332728571942532289631379312455583992563";

forms! {
    // An integer: digits as text, or a number.
    pub SentDigits<'a> = Text(#[schemars(length(max = 18))] &'a str), Number(u64); SentDigits::Text("4100000");
    pub SentSide = Word(SideName), Number(#[schemars(range(min = 0, max = 1))] u8); SentSide::Word("BUY".into());
    // Unix seconds.
    pub SignedExpiration<'a> = Text(&'a str), Number(u64), Null(()); SignedExpiration::Text("0");
    // An id of an order, hexadecimal or decimal.
    pub SentOrderId<'a> = Text(&'a str), Number(u64); SentOrderId::Text("268435460");
}

record! {
    /// An order as venue clients sign it, of either generation. The signature is not verified.
    #[serde(rename_all = "camelCase")]
    pub struct SignedOrder<'a> {
        #[schemars(length(max = 256))]
        token_id: &'a str = TOKEN, "The outcome token.";
        side: SentSide = SentSide::example(), "0 is BUY.";
        maker_amount: SentDigits<'a> = SentDigits::Text("4100000"),
            "What the order pays, in 10⁻⁶: USD of a BUY, shares of a SELL. Above 0.";
        taker_amount: SentDigits<'a> = SentDigits::Text("10000000"),
            "What the order gets, in 10⁻⁶: shares of a BUY, USD of a SELL. Above 0.";
        expiration: Option<SignedExpiration<'a>> = Some(SignedExpiration::example()),
            "Unix seconds in the future, at most ten years ahead, for GTD.", skip_serializing_if;
        salt: Option<Value> = Some(479_249_096_354_u64.into()),
            "With the signature it makes a repeated order known for ten minutes.", skip_serializing_if;
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<Value> = Some("0x5f".into());
        signature_type: Option<Value> = Some(0.into()), "Ignored.", skip_serializing_if;
        maker: Option<Value> = None, "Ignored, as is every further field.", skip_serializing_if;
    }

    /// A signed order and its options. A BUY that takes immediately (FOK, FAK) spends makerAmount.
    pub struct PlaceSignedOrder<'a> {
        order: SignedOrder<'a> = SignedOrder::example();
        #[serde(rename = "orderType")]
        #[schemars(extend("x-or-null" = true))]
        order_type: Option<RequestedTimeInForce> = Some("GTC".into()), "In upper or lower case; IOC means FAK. Default: GTC.",
            skip_serializing_if;
        #[serde(rename = "postOnly")]
        #[schemars(extend("x-or-null" = true))]
        post_only: Option<bool> = Some(false), "Refuse instead of taking liquidity. Default false.",
            skip_serializing_if;
        #[schemars(length(max = 256), extend("x-or-null" = true))]
        client_order_id: Option<&'a str> = None, "The same id again answers the same order.", skip_serializing_if;
        owner: Option<Value> = Some("svc".into()), "Ignored.", skip_serializing_if;
        #[serde(rename = "deferExec")]
        defer_exec: Option<Value> = None, "Ignored.", skip_serializing_if;
    }

    /// An order in plain decimals.
    pub struct PlaceFlatOrder<'a> {
        #[schemars(length(max = 256))]
        token_id: &'a str = TOKEN, "The outcome token.";
        side: SideInAnyCase = "BUY".into();
        price: Option<SentDecimal<'a>> = Some(SentDecimal::Text("0.41")),
            "The limit, on the market's tick grid. Required.", skip_serializing_if;
        size: Option<SentDecimal<'a>> = Some(SentDecimal::Text("10")),
            "Shares, above 0, cut down to four decimals. Required, here or as `quantity`.", skip_serializing_if;
        quantity: Option<SentDecimal<'a>> = None, "The same as `size`, which wins.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        order_type: Option<VenueOrderType> = Some("GTC".into()), "In any case. Default GTC.", skip_serializing_if;
        expiration: Option<SentExpiration<'a>> = None,
            "Unix seconds in the future, at most ten years ahead, for GTD.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        post_only: Option<bool> = None, "Refuse instead of taking liquidity. Default false.", skip_serializing_if;
        #[schemars(length(max = 256), extend("x-or-null" = true))]
        client_order_id: Option<&'a str> = None, "The same id again answers the same order.", skip_serializing_if;
    }

    /// The order: hexadecimal or decimal.
    pub struct CancelOrder<'a> {
        #[serde(rename = "orderID")]
        order_id: Option<SentOrderId<'a>> = Some(SentOrderId::example()), "Required, under one of these names.",
            skip_serializing_if;
        #[serde(rename = "orderId", skip_serializing_if = "Option::is_none")]
        camel_case: Option<SentOrderId<'a>> = None;
        #[serde(rename = "order_id", skip_serializing_if = "Option::is_none")]
        snake_case: Option<SentOrderId<'a>> = None;
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<SentOrderId<'a>> = None;
    }

    /// One token of a batch.
    pub struct TokenRequest<'a> {
        token_id: TokenId<'a> = "81140002".into(), "The outcome token.";
        side: Option<Value> = None, "Ignored.", skip_serializing_if;
    }

    /// The tokens of a batch.
    pub struct TokenRequests<'a> {
        items: List<TokenRequest<'a>, 1, 500> = List::example(), "The tokens.";
    }

    /// One side of one token.
    pub struct PriceRequest<'a> {
        token_id: TokenId<'a> = "81140002".into(), "The outcome token.";
        side: SideName = "BUY".into(), "BUY: the best bid; SELL: the best ask. In any case.";
    }

    /// Sides of tokens.
    pub struct PriceRequests<'a> {
        items: List<PriceRequest<'a>, 1, 500> = List::example(), "The sides.";
    }

    /// The older form: tokens alone, answered by rows.
    pub struct PriceRowsRequest<'a> {
        token_ids: List<TokenId<'a>, 1, 500> = List(vec!["81140002".into()]), "The tokens.";
    }
}

forms! {
    pub TokenBatch<'a> = List(List<TokenRequest<'a>, 1, 500>), Object(TokenRequests<'a>); TokenBatch::List(List::example());
    pub PriceBatch<'a> = List(List<PriceRequest<'a>, 1, 500>), Object(PriceRequests<'a>), Older(PriceRowsRequest<'a>);
        PriceBatch::List(List::example());
}

/// The body of `DELETE /v1/orders`.
pub type CancelOrders<'a> = List<SentOrderId<'a>, 0, 3_000>;

/// The example of [`CancelOrders`].
pub fn two_orders() -> CancelOrders<'static> {
    List(vec![SentOrderId::Text("268435460"), SentOrderId::Text("268435461")])
}
