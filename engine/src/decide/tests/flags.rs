//! Each flag off: the behaviour described in engine/docs/execution.md §1 and §2.

pub const SCENARIOS: &str = r#"
# FAK_PARTIAL_FILLS off: all or nothing, but a row is left
flag fak_partial_fills off
book Y asks 0.42x30 0.60x100
buy Y 50 market 0.50 fak                     -> InsufficientLiquidity | CANCELLED FakNoFill 0/50
buy Y 50 market 0.40 fak                     -> NoExecutableDepth | CANCELLED FakNoFill 0/50
buy Y 30 market 0.50 ioc                     -> FILLED 30/30 @0.42 fee 0.3654
buy Y 50 limit 0.50 fak id=a                 -> NoExecutableDepth | CANCELLED FakNoFill 0/50
level Y ask 0.42x31
buy Y 50 limit 0.50 fak id=b                 -> InsufficientLiquidity | CANCELLED FakNoFill 0/50
buy Y 50 limit 0.50 fak id=b                 -> InsufficientLiquidity | CANCELLED FakNoFill 0/50 replay available 87.0346 holding 30 fills 0
// a resting order still fills in part
buy Y 40 limit 0.42                          -> PENDING 31/40 @0.42 fee 0.37758 reserved 3.78

# FOK_DEPTH_AWARE off: the best price decides, the rest is priced at the last level
flag fok_depth_aware off
book Y asks 0.40x10 0.42x10 0.60x100
buy Y 50 market 0.50                         -> FILLED 50/50 @0.416 fee 0.6072
// 10 × 0.40 + 40 × 0.42; 0.12 + 0.1218 + 0.3654
fills #1                                     -> Taker BestAsk 50 for 20.8 fee 0.6072 at 500 bps
quality #1                                   -> displayed none age 0 impact 400 levels 2
buy Y 10 limit 0.39 fok                      -> FokNotFilled 0 < 10 at 0.39 | CANCELLED FokNotFilled 0/10
book Y bids 0.30x5
sell Y 20 limit 0.30 fok                     -> FILLED 20/20 @0.3 fee 0.21
fills #3                                     -> Taker BestBid 20 for 6 fee 0.21 at 500 bps
buy Y 10 market 0.50 fak                     -> NoExecutableDepth | CANCELLED FakNoFill 0/10

# FOK_DEPTH_AWARE off with a budget
flag fok_depth_aware off
market 0 geopolitics 0.01
display Y 0.40
book Y asks 0.40x10
buy Y $10 market 0.50                        -> FILLED 25/25 @0.4 fee 0

# GTD_AUTO_EXPIRY off: native 422, a venue client's GTD rests as GTC
flag gtd_auto_expiry off
book Y asks 0.50x100
buy Y 10 limit 0.40 gtd exp=10s              -> GtdUnsupported
buy Y 10 limit 0.40 gtd exp=10s venue        -> PENDING 0/10 reserved 4
terms #1                                     -> Limit Gtc limit 0.4 rate 500
buy Y 10 limit 0.40 gtd exp=-10s venue       -> InvalidExpiration
buy Y 10 limit 0.40 gtd venue                -> InvalidExpiration
wait 20s
cycle                                        -> looked 0 filled 0 closed 0

# POST_ONLY_ENFORCED off: post-only is ignored
flag post_only_enforced off
book Y asks 0.42x100
buy Y 10 limit 0.42 post                     -> FILLED 10/10 @0.42 fee 0.1218
buy Y 10 market 0.42 post                    -> FILLED 10/10 @0.42 fee 0.1218
terms #1                                     -> Limit Gtc limit 0.42 rate 500 marketable

# MIN_ORDER_SIZE_ENFORCED off: anything above one step
flag min_order_size_enforced off
book Y asks 0.42x100
buy Y 0.0001 limit 0.10                      -> BelowMinimum 0.0002
buy Y 0.0002 limit 0.10                      -> PENDING 0/0.0002 reserved 0.00002
buy Y 1 market 0.42                          -> FILLED 1/1 @0.42 fee 0.01218

# BOOK_IMPACT_DEPLETION off: each fill sees the whole book
flag book_impact_depletion off
market 0 geopolitics 0.01
book Y asks 0.42x10
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0
buy Y 20 limit 0.42                          -> PENDING 10/20 @0.42 fee 0 reserved 4.2
cycle                                        -> looked 1 filled 1 closed 0

# DEPLETION_SCOPE limit_only: market orders neither read nor record depletion
flag depletion_covers_market_orders off
market 0 geopolitics 0.01
book Y asks 0.42x10
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0
buy Y 10 limit 0.42                          -> FILLED 10/10 @0.42 fee 0
buy Y 10 limit 0.42 fok                      -> FokNotFilled 0 < 10 at 0.42 | CANCELLED FokNotFilled 0/10
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0

# MAKER_FILL_AT_LIMIT off: a resting order fills at the walked price, the improvement is released
flag maker_fill_at_limit off
market 0 geopolitics 0.01
hold Y 20 0.40
book Y asks 0.50x100
buy Y 20 limit 0.42                          -> PENDING 0/20 reserved 8.4
level Y ask 0.40x10
cycle                                        -> looked 1 filled 1 closed 0
order #1                                     -> PENDING 10/20 @0.4 fee 0 reserved 4.2
fills #1                                     -> Maker MatchingEngine 10 for 4 fee 0 at 0 bps
money                                        -> 83.8 of 88
book Y bids 0.30x10 asks 0.90x1
cancel #1                                    -> CANCELLED UserCancelled 10/20 @0.4 fee 0
sell Y 10 limit 0.45                         -> PENDING 0/10 reserved 10 shares
level Y bid 0.48x4
cycle                                        -> looked 1 filled 1 closed 0
fills #2                                     -> Maker MatchingEngine 4 for 1.92 fee 0 at 0 bps

# TRADE_REQUIRE_BOOK_DEPTH off: last trade, then catalogue, any size
flag require_book_depth off
market 0 weather 0.01
book Y bids 0.10x5
buy Y 10 market 0.50                         -> FokNotFilled 0 < 10 at 0.5 | CANCELLED FokNotFilled 0/10
display Y 0.40
buy Y 10 market 0.50                         -> FILLED 10/10 @0.4 fee 0.12
fills #2                                     -> Taker Display 10 for 4 fee 0.12 at 500 bps
quality #2                                   -> displayed 0.4 age 0 slippage 0
trade Y 0.42
buy Y 10 market 0.50 fak                     -> FILLED 10/10 @0.42 fee 0.1218
fills #3                                     -> Taker LastTrade 10 for 4.2 fee 0.1218 at 500 bps
buy Y $4.2 market 0.50                       -> FILLED 10/10 @0.42 fee 0.1218
// refused: a limit below the price; further down, a price more than 15 percent from the displayed one
buy Y 10 market 0.41                         -> StaleQuote 0 > 60000
trade Y 0.46
buy Y 10 market 0.50                         -> FILLED 10/10 @0.46 fee 0.1242
trade Y 0.47
buy Y 10 market 0.50                         -> StaleQuote 0 > 60000
// a resting limit needs no price
buy Y 10 limit 0.50                          -> PENDING 0/10 reserved 5
// a book on the needed side is walked
level Y ask 0.49x10
buy Y 10 market 0.50                         -> FILLED 10/10 @0.49 fee 0.12495

# TRADE_REQUIRE_BOOK_DEPTH off: wider bands for up-or-down markets
flag require_book_depth off
market 0 crypto 0.01 updown=5M
market 1 crypto 0.01 updown=15M
market 2 crypto 0.01 updown=1H
display Y 0.40
trade Y 0.60
buy Y 10 market 0.90                         -> FILLED 10/10 @0.6 fee 0.168
display Y1 0.40
trade Y1 0.52
buy Y1 10 market 0.90                        -> FILLED 10/10 @0.52 fee 0.17472
trade Y1 0.53
buy Y1 10 market 0.90                        -> StaleQuote 0 > 60000
display Y2 0.40
trade Y2 0.50
buy Y2 10 market 0.90                        -> FILLED 10/10 @0.5 fee 0.175
trade Y2 0.51
buy Y2 10 market 0.90                        -> StaleQuote 0 > 60000

# TRADE_QUOTE_MAX_AGE_ENFORCE off: a warning
flag quote_age_enforced off
market 0 geopolitics 0.01
book Y asks 0.42x100
wait 61s
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0
quality #1                                   -> displayed none age 61000 impact 0 levels 1 stale
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
level Y ask 0.40x10
wait 61s
cycle                                        -> looked 1 filled 1 closed 0

# EMERGENCY_EXIT_ENABLED off
flag emergency_exit off
market 0 geopolitics 0.01
hold Y 50 0.40
end 0
sell Y 10 market 0.20                        -> MarketClosed

# FOK_SHORTFALL_TOLERANCE_SHARES
rule fok_shortfall 1
market 0 geopolitics 0.01
book Y asks 0.42x9
buy Y 10.0001 market 0.42                    -> FokNotFilled 9 < 10.0001 at 0.42 | CANCELLED FokNotFilled 0/10.0001
buy Y 10 market 0.42                         -> FILLED 9/10 @0.42 fee 0
facts                                        -> OrderPlaced OrderFilled
// never without a fill
buy Y 10 market 0.42                         -> FokNotFilled 0 < 10 at 0.42 | CANCELLED FokNotFilled 0/10

# SYNC_GTC_MATCH off: left to the next cycle, still a taker, its fee reserved
flag sync_gtc_match off
market 0 weather 0.01
book Y asks 0.40x10 0.42x5
buy Y 20 limit 0.42                          -> PENDING 0/20 reserved 8.6436 awaiting
terms #1                                     -> Limit Gtc limit 0.42 rate 500 marketable
buy Y 20 limit 0.39                          -> PENDING 0/20 reserved 7.8
cycle                                        -> looked 1 filled 1 closed 0
order #1                                     -> PENDING 15/20 @0.406667 fee 0.1809 reserved 2.1
fills #1                                     -> Taker BookWalk 15 for 6.1 fee 0.1809 at 500 bps
level Y ask 0.39x20
cycle                                        -> looked 2 filled 2 closed 0
fills #1                                     -> Taker BookWalk 15 for 6.1 fee 0.1809 at 500 bps | Maker MatchingEngine 5 for 2.1 fee 0 at 0 bps
// per user: the better priced order took its 5 first
fills #2                                     -> Maker MatchingEngine 15 for 5.85 fee 0 at 0 bps
// removed before the cycle: a maker from then on
level Y ask 0.42x50
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.3218 awaiting
level Y ask 0.42x0
// order 2 is reached too, but its user has depleted that level
cycle                                        -> looked 2 filled 0 closed 0
order #3                                     -> PENDING 0/10 reserved 4.2
"#;
