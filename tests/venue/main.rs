//! The venues as the whole server shows them: recorded markets from their listing to their payout.

mod kalshi_tape;
mod synthetic;
