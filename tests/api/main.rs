//! The contract, endpoint by endpoint, over a real socket.
//!
//! Each file is a group of rules with its tables. The market is hand-made (`tests::tape`), so every amount is a number
//! that can be checked with a pencil; a section number in a comment is the place of the rule in the contract.

mod abuse;
mod account;
mod analysis;
mod asyncapi;
mod batch;
mod books;
mod cancels;
mod candles;
mod clob_auth;
mod clob_bodies;
mod clob_cancel;
mod clob_lists;
mod clob_place;
mod clob_reads;
mod cohort;
mod credentials;
mod equity;
mod events;
mod exactly_once;
mod executions;
mod export;
mod foreign;
mod headers;
mod health;
mod idempotency;
mod key_times;
mod keys;
mod limits;
mod lists;
mod malformed;
mod markets;
mod matching;
mod numbers;
mod order;
mod place;
mod prices_history;
mod refuse;
mod reset;
mod routes;
mod secrets;
mod settlements;
mod table;
mod updown;
mod usage;
mod user_stream;
mod wallets;
mod ws_folding;
mod ws_market;
mod ws_prices;
mod ws_protocol;
mod ws_sockets;
mod ws_sse;
mod ws_trade;
