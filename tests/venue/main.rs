//! The venues through the whole server: recorded markets from their listing to their payout.

mod archive;
mod archive_fetch;
mod both_live;
mod fake_kalshi;
mod fake_polymarket;
mod kalshi_faults;
mod kalshi_live;
mod kalshi_recorded;
mod kalshi_tape;
mod polymarket_live;
mod recorded_live;
mod synthetic;
