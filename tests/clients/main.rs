//! Clients that other people wrote, unmodified and from their registries, against the real process (clients.md §10),
//! and the description of the server against the server itself.
//!
//! | File | Runs |
//! |---|---|
//! | `python_v1.py` | py-clob-client: orders of the first generation |
//! | `python_v2.py` | py-clob-client-v2: orders of the second |
//! | `typescript.mjs` | @polymarket/clob-client |
//! | `streams.py`, `streams.mjs` | websockets and ws: every channel, and a bot that trades |
//! | `unified.py` | polymarket-client, over the catalogue service and the service of positions |
//! | `nautilus.py` | nautilus_trader: a live node with its Polymarket adapter, which `nautilus-install` fetches |
//! | `checks.py` | nothing: what the Python programs check with |
//! | `proxy.rs` | nginx, with the file that `gateway/docs` has for it |
//! | `description.rs` | schemathesis over `/v1/openapi.json` |
//! | `openapi.rs` | a linter over `gateway/openapi.json` (rules: `redocly.yaml`), and the client that is made of it |
//! | `generated.py` | that client |
//!
//! `tests/clients/install` fetches them into `target/clients`. Where that was not done these tests say that they were
//! skipped: testing wants neither Python nor a network. With `PAPERTAPE_REQUIRE_CLIENTS` set they fail instead.

mod description;
mod facade;
mod openapi;
mod programs;
mod proxy;
mod streams;
mod worlds;
