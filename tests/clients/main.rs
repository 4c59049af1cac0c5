//! Unmodified third-party clients, from their registries, against the real process (gateway/docs/venue-clients.md §10),
//! and the server against its own OpenAPI document.
//!
//! | File | Runs |
//! |---|---|
//! | `python_v1.py` | py-clob-client: orders of the first generation |
//! | `python_v2.py` | py-clob-client-v2: orders of the second |
//! | `typescript.mjs` | @polymarket/clob-client |
//! | `streams.py`, `streams.mjs` | websockets and ws: every channel, and a bot that trades |
//! | `unified.py` | polymarket-client, over the catalogue service and the service of positions |
//! | `nautilus.py` | nautilus_trader: a live node with its Polymarket adapter, which `nautilus-install` fetches |
//! | `sql.py`, `sql/` | DuckDB with the recipes, pyarrow, polars and pandas, over the files of an archive |
//! | `bot.py` | py-clob-client: an ordinary polling bot, by `papertape backtest --bot` |
//! | `mail.py` | aiosmtpd: a mail server that takes mails, and one that fails |
//! | `signed_orders.py`, `signed_orders.mjs` | py-clob-client-v2, @polymarket/clob-client-v2, polymarket-client: orders and wallets for the tests of the rehearsal, made by hand |
//! | `checks.py` | nothing: the checks of the Python programs |
//! | `proxy.rs` | nginx, with its file in `gateway/docs` |
//! | `description.rs` | schemathesis over `/v1/openapi.json` |
//! | `openapi.rs` | a linter over `gateway/openapi.json` (rules: `redocly.yaml`), and the client made from it (`generator.yaml`) |
//! | `generated.py` | that client |
//! | `payments.rs` | localstripe: the payment provider of a server |
//!
//! `tests/clients/install` fetches them into `target/clients`. Without them these tests report that they were skipped:
//! the test suite needs neither Python nor a network. With `PAPERTAPE_REQUIRE_CLIENTS` set they fail instead.

mod bot;
mod description;
mod facade;
mod mail;
mod openapi;
mod payments;
mod programs;
mod proxy;
mod sql;
mod streams;
mod worlds;
