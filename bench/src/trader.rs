//! One user that sends orders on one connection, over HTTP or over the trade channel, alone or in batches.

use crate::flight::{Answer, Speaks, UNASKED};
use crate::load;
use crate::orders::Orders;
use std::io::Write as _;
use tools::frame::{self, Frame, TEXT};

/// The transport of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Http,
    Socket,
}

/// One user on one connection.
pub struct Trader {
    over: Over,
    key: String,
    orders: Orders,
    /// Orders of one request; 1 = no batch.
    batch: usize,
    body: String,
}

impl Trader {
    /// `name` is part of all its client ids, so that they are unique for the user.
    pub fn new(over: Over, name: &str, key: &str, token: &str, batch: usize) -> Trader {
        let orders = Orders::new(format!("{over:?}-{batch}-{name}"), token);
        Trader { over, key: key.to_owned(), orders, batch, body: String::new() }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// The next order, or batch of them, as JSON.
    pub fn body(&mut self) -> &str {
        self.body.clear();
        match self.batch {
            1 => self.orders.write(&mut self.body),
            count => self.orders.write_batch(count, &mut self.body),
        }
        &self.body
    }
}

impl Speaks for Trader {
    fn request(&mut self, number: u64, out: &mut Vec<u8>) {
        self.body();
        let Trader { key, body, batch, .. } = self;
        let alone = *batch == 1;
        match self.over {
            Over::Http => {
                let path = if alone { "/v1/orders" } else { "/v1/orders/batch" };
                let length = body.len();
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
                     Content-Length: {length}\r\n\r\n"
                );
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(body.as_bytes());
            }
            Over::Socket => {
                let op = if alone { "order.place" } else { "order.batch" };
                frame::text(out, |out| {
                    write!(out, "{{\"id\":{number},\"op\":\"{op}\",\"params\":{body}}}")
                        .expect("writing to a vector succeeds");
                });
            }
        }
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        if self.over == Over::Http {
            let (status, length) = load::head(bytes)?;
            return (bytes.len() >= length).then_some(Answer { bytes: length, number: None, status });
        }
        let Frame { first, payload, bytes } = frame::read(bytes)?;
        let (number, status) = match first {
            TEXT => number_and_status(payload).map_or((None, 500), |(number, status)| (Some(number), status)),
            _ => (None, UNASKED),
        };
        Some(Answer { bytes, number, status })
    }
}

/// Number and status of an answer on the trade channel.
fn number_and_status(payload: &[u8]) -> Option<(u64, u16)> {
    let rest = std::str::from_utf8(payload).ok()?.strip_prefix("{\"id\":")?;
    let (number, rest) = rest.split_once(",\"status\":")?;
    Some((number.parse().ok()?, rest.get(..3)?.parse().ok()?))
}
