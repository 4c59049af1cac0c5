//! Orders that fill immediately: market, FOK, FAK, IOC; fees, budgets, depletion, merged books, quality figures.

pub const SCENARIOS: &str = r#"
# the first example: 50 at 0.42 in a weather market
book Y bids 0.41x100 asks 0.42x200
buy Y 50 market 0.50                         -> FILLED 50/50 @0.42 fee 0.609
facts                                        -> OrderPlaced OrderFilled
money                                        -> 78.391 of 78.391
holding Y                                    -> 50 cost 21
fills #1                                     -> Taker BookWalk 50 for 21 fee 0.609 at 500 bps
quality #1                                   -> displayed 0.415 age 0 spread 241 slippage 120 impact 0 levels 1
terms #1                                     -> Market Fok limit 0.5 rate 500 marketable
quota                                        -> 1
notices                                      -> 1:placed 2:filled

# fees: politics
market 0 politics 0.01
book Y asks 0.65x10
buy Y 10 market 0.65                         -> FILLED 10/10 @0.65 fee 0.091

# fees: crypto
market 0 crypto 0.01
book Y asks 0.50x13
buy Y 13 market 0.50                         -> FILLED 13/13 @0.5 fee 0.2275

# fees: sports, and rounding
market 0 sports 0.0001
book Y asks 0.02x5
buy Y 5 market 0.02                          -> FILLED 5/5 @0.02 fee 0.00294
book Y asks 0.0101x1
buy Y 1 market 0.0101                        -> FILLED 1/1 @0.0101 fee 0.0003

# geopolitics is free of fees, an unknown category pays 500
market 0 geopolitics 0.01
market 1 unheard-of 0.01
book Y asks 0.50x10
book Y1 asks 0.50x10
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0
buy Y1 10 market 0.50                        -> FILLED 10/10 @0.5 fee 0.125

# a walk takes levels best first and pays each level's own fee
book Y asks 0.40x10 0.42x10 0.50x100
buy Y 30 market 0.50                         -> FILLED 30/30 @0.44 fee 0.3668
// 10 × 0.05 × 0.24 = 0.12; 10 × 0.05 × 0.2436 = 0.1218; 10 × 0.05 × 0.25 = 0.125
quality #1                                   -> displayed none age 0 impact 1000 levels 3
levels                                       -> 0.4x10 0.42x10 0.5x10
money                                        -> 86.4332 of 86.4332

# levels are cut down to four decimals
book Y asks 0.40x10.00009 0.41x10
buy Y 12 market 0.50                         -> FILLED 12/12 @0.401667 fee 0.14419
levels                                       -> 0.4x10 0.41x2

# a worst price that touches the level is inside it
book Y asks 0.42x10
buy Y 10 market 0.4199                       -> FokNotFilled 0 < 10 at 0.4199 | CANCELLED FokNotFilled 0/10
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0.1218

# FOK: whole or not at all; the killed row costs nothing and does not count
book Y asks 0.42x30 0.60x100
buy Y 50 market 0.50                         -> FokNotFilled 30 < 50 at 0.5 | CANCELLED FokNotFilled 0/50
facts                                        -> OrderPlaced OrderClosed
money                                        -> 100 of 100
quota                                        -> 0
notices                                      -> 1:placed 2:closed
buy Y 50 limit 0.50 fok                      -> FokNotFilled 30 < 50 at 0.5 | CANCELLED FokNotFilled 0/50
buy Y 50 limit 0.60 fok                      -> FILLED 50/50 @0.492 fee 0.6054

# market with GTC is FOK
book Y asks 0.42x30
buy Y 50 market 0.50 gtc                     -> FokNotFilled 30 < 50 at 0.5 | CANCELLED FokNotFilled 0/50
terms #1                                     -> Market Fok limit 0.5 rate 500
buy Y 30 market 0.50 gtc                     -> FILLED 30/30 @0.42 fee 0.3654
buy Y 30 market 0.50 gtd exp=+60s            -> InvalidTerms

# FAK and IOC: the available size; none is a refusal with a row
book Y asks 0.42x30 0.60x100
buy Y 50 market 0.50 fak                     -> FILLED FakRest 30/50 @0.42 fee 0.3654
facts                                        -> OrderPlaced OrderFilled OrderClosed
buy Y 50 limit 0.50 ioc                      -> NoExecutableDepth | CANCELLED FakNoFill 0/50
terms #2                                     -> Limit Ioc limit 0.5 rate 500
buy Y 50 limit 0.60 fak                      -> FILLED 50/50 @0.6 fee 0.6
terms #3                                     -> Limit Ioc limit 0.6 rate 500 marketable
quota                                        -> 2

# a FAK filled in part: 60.5 of 100 at 0.42
book Y asks 0.42x60.5
buy Y 100 limit 0.42 fak                     -> FILLED FakRest 60.5/100 @0.42 fee 0.73689

# no book on the needed side
book Y bids 0.41x100
buy Y 10 market 0.50                         -> FokNotFilled 0 < 10 at 0.5 | CANCELLED FokNotFilled 0/10
buy Y 10 market 0.50 fak                     -> NoExecutableDepth | CANCELLED FakNoFill 0/10
quality #2                                   -> displayed none age 0
// an unknown token
buy Y1 10 market 0.50                        -> MarketNotFound

# a market without a book
market 0 weather 0.01
buy Y 10 market 0.50 ioc                     -> NoExecutableDepth | CANCELLED FakNoFill 0/10

# SELL receives notional less fee; the average stays, realized excludes fees
book Y asks 0.42x50
buy Y 50 market 0.42                         -> FILLED 50/50 @0.42 fee 0.609
book Y bids 0.50x20 0.45x30
sell Y 20 market 0.50                        -> FILLED 20/20 @0.5 fee 0.25
money                                        -> 88.141 of 88.141
holding Y                                    -> 30 cost 12.6 realized 1.6
sell Y 30 market 0.40                        -> FILLED 30/30 @0.45 fee 0.37125
holding Y                                    -> nothing
closed                                       -> avg 0.42 realized 2.5
money                                        -> 101.26975 of 101.26975
account                                      -> 2 wallets 0 positions 3 fills 1 closed 1 won

# a later buy opens a new episode
market 0 geopolitics 0.01
book Y bids 0.40x100 asks 0.40x10
buy Y 10 market 0.40                         -> FILLED 10/10 @0.4 fee 0
book Y bids 0.40x100
sell Y 10 market 0.40                        -> FILLED 10/10 @0.4 fee 0
book Y asks 0.50x10
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0
holding Y                                    -> 10 cost 5
closed                                       -> avg 0.4 realized 0
account                                      -> 2 wallets 1 positions 3 fills 1 closed 0 won

# SELL needs shares that are held and not reserved
book Y asks 0.40x50
buy Y 50 market 0.40                         -> FILLED 50/50 @0.4 fee 0.6
book Y bids 0.30x100
sell Y 20 limit 0.60                         -> PENDING 0/20 reserved 20 shares
sell Y 31 market 0.30                        -> InsufficientPosition 30 < 31
sell N 5 market 0.30                         -> InsufficientPosition 0 < 5
sell Y 30 market 0.30                        -> FILLED 30/30 @0.3 fee 0.315
holding Y                                    -> 20 cost 8 reserved 20 realized -3

# BUY must be covered, fee included
book Y asks 0.50x1000
buy Y 200 market 0.50                        -> InsufficientBalance 100 < 102.5
buy Y 195 market 0.50                        -> FILLED 195/195 @0.5 fee 2.4375
buy Y 5 market 0.50                          -> InsufficientBalance 0.0625 < 2.5625
quota                                        -> 1

# an amount is a budget; fees come on top
book Y bids 0.40x100 asks 0.42x200
buy Y $21 market 0.50                        -> FILLED 50/51.2195 @0.42 fee 0.609
quality #1                                   -> displayed 0.41 age 0 spread 488 slippage 244 impact 0 levels 1
money                                        -> 78.391 of 78.391

# a budget over two levels; the last shares are rounded down
book Y asks 0.40x10 0.43x100
display Y 0.40
buy Y $10 market 0.50                        -> FILLED 23.9534/25 @0.417476 fee 0.291
// 4.00 + 13.9534 × 0.43 = 9.999962
fills #1                                     -> Taker BookWalk 23.9534 for 9.999962 fee 0.291 at 500 bps

# a budget that the book cannot take
book Y asks 0.40x10
display Y 0.40
buy Y $10 market 0.50                        -> FokNotFilled 10 < 25 at 0.5 | CANCELLED FokNotFilled 0/25
buy Y $10 market 0.50 fak                    -> FILLED FakRest 10/25 @0.4 fee 0.12

# a budget may buy more shares than expected
book Y bids 0.10x10 asks 0.18x100
buy Y $9 market 0.90                         -> FILLED 50/64.2857 @0.18 fee 0.369
display Y 0.40
book Y asks 0.18x100
buy Y $9 market 0.90                         -> FILLED 50/22.5 @0.18 fee 0.369

# an amount without any displayed price is sized by the worst price
book Y asks 0.40x100
buy Y $10 market 0.50                        -> FILLED 25/20 @0.4 fee 0.3

# amounts: market BUY, positive, at least one step
book Y asks 0.40x100
sell Y $10 market 0.30                       -> InvalidTerms
buy Y $10 limit 0.40                         -> InvalidTerms
buy Y $0 market 0.40                         -> InvalidQuantity
buy Y $0.000003 market 0.40                  -> InvalidQuantity
buy Y $1 market 0.40                         -> BelowMinimum 5
// a venue client's FOK BUY is a limit order with a budget
buy Y $10 limit 0.40 fok venue               -> FILLED 25/25 @0.4 fee 0.3

# too many shares for one order
rule max_shares 100
book Y asks 0.001x100000
buy Y 100.0001 market 0.50                   -> AboveShareCap 100
buy Y $50.01 market 0.50                     -> AboveShareCap 100
buy Y $60 market 0.50                        -> AboveShareCap 100
buy Y $9000000000000 market 0.50             -> AboveShareCap 100

# depletion: a take counts for its user until the level changes
book Y asks 0.40x50 0.50x50
buy Y 50 market 0.40                         -> FILLED 50/50 @0.4 fee 0.6
buy Y 10 market 0.40                         -> FokNotFilled 0 < 10 at 0.4 | CANCELLED FokNotFilled 0/10
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.125
user 2
buy Y 10 market 0.40                         -> FILLED 10/10 @0.4 fee 0.12
user 1
level Y ask 0.40x20
buy Y 10 market 0.50                         -> FILLED 10/10 @0.4 fee 0.12
level Y ask 0.39x5
buy Y 15 market 0.50                         -> FILLED 15/15 @0.396667 fee 0.17948
book Y asks 0.40x50 0.50x50
buy Y 20 market 0.40                         -> FILLED 20/20 @0.4 fee 0.24

# merged books: the complement's bids are asks
book Y asks 0.45x10
book N bids 0.58x20
buy Y 30 market 0.50                         -> FILLED 30/30 @0.43 fee 0.36735
levels                                       -> ~0.42x20 0.45x10
// a take from the mirror depletes the complement's own book
book N bids 0.58x20
buy Y 20 market 0.42                         -> FILLED 20/20 @0.42 fee 0.2436
buy Y 5 market 0.42                          -> FokNotFilled 0 < 5 at 0.42 | CANCELLED FokNotFilled 0/5

# depletion on the mirror counts when the other token is sold
balance 1000
market 0 geopolitics 0.01
book N asks 0.60x40
buy N 40 market 0.60                         -> FILLED 40/40 @0.6 fee 0
book N bids 0.58x20
book Y
buy Y 15 market 0.42                         -> FILLED 15/15 @0.42 fee 0
sell N 10 market 0.58 fak                    -> FILLED FakRest 5/10 @0.58 fee 0

# a take from mirrored books through one token counts for the other
balance 1000
market 0 geopolitics 0.01
book Y bids 0.27x200 asks 0.28x100
book N bids 0.72x100 asks 0.73x200
buy Y 60 market 0.28                         -> FILLED 60/60 @0.28 fee 0
buy N 150 market 0.73                        -> FILLED 150/150 @0.73 fee 0
sell N 100 market 0.72 fak                   -> FILLED FakRest 40/100 @0.72 fee 0
sell Y 60 market 0.27 fak                    -> FILLED FakRest 50/60 @0.27 fee 0
// a resting order meets the remaining size too
sell N 20 limit 0.72                         -> PENDING 0/20 reserved 20 shares
level N bid 0.71x5
cycle                                        -> looked 1 filled 0 closed 0
user 2
buy Y 100 market 0.28                        -> FILLED 100/100 @0.28 fee 0
user 1
// a change of either entry restores the one size, once
level Y ask 0.28x100
sell N 60 market 0.72 fak                    -> FILLED 60/60 @0.72 fee 0
cycle                                        -> looked 1 filled 1 closed 0
buy Y 100 market 0.28 fak                    -> FILLED FakRest 20/100 @0.28 fee 0

# the mirror in two frames: the second one repeats the first
balance 1000
market 0 geopolitics 0.01
book Y bids 0.27x100 asks 0.28x100
book N bids 0.72x100 asks 0.73x100
buy N 100 market 0.73                        -> FILLED 100/100 @0.73 fee 0
buy Y 100 market 0.28                        -> FILLED 100/100 @0.28 fee 0
level Y ask 0.28x70
buy Y 70 market 0.28                         -> FILLED 70/70 @0.28 fee 0
sell N 5 market 0.72 fak                     -> NoExecutableDepth | CANCELLED FakNoFill 0/5
level N bid 0.72x70
sell N 5 market 0.72 fak                     -> NoExecutableDepth | CANCELLED FakNoFill 0/5
level Y ask 0.28x70
sell N 70 market 0.72                        -> FILLED 70/70 @0.72 fee 0

# equal prices of both books are one level, with one fee
book Y asks 0.42x10 0.50x5
book N bids 0.58x10
buy Y 20 market 0.42                         -> FILLED 20/20 @0.42 fee 0.2436
levels                                       -> 0.42x10 ~0.42x10
quality #1                                   -> displayed none age 0 impact 0 levels 1

# mirrored books are not counted twice
book Y bids 0.41x30 asks 0.42x10
book N bids 0.58x10 asks 0.59x30
buy Y 20 market 0.42                         -> FokNotFilled 10 < 20 at 0.42 | CANCELLED FokNotFilled 0/20
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0.1218

# a crossed merged book is not used
book Y bids 0.41x30 asks 0.45x10
book N bids 0.60x10 asks 0.70x10
buy Y 10 market 0.45                         -> FILLED 10/10 @0.45 fee 0.12375
levels                                       -> 0.45x10

# high slippage is a warning
book Y bids 0.40x100 asks 0.44x100
buy Y 10 market 0.50                         -> FILLED 10/10 @0.44 fee 0.1232
quality #1                                   -> displayed 0.42 age 0 spread 952 slippage 476 impact 0 levels 1
book Y bids 0.40x100 asks 0.45x100
buy Y 10 market 0.50                         -> FILLED 10/10 @0.45 fee 0.12375
quality #2                                   -> displayed 0.425 age 0 spread 1176 slippage 588 impact 0 levels 1 high
// limit orders have no slippage
buy Y 10 limit 0.50 ioc                      -> FILLED 10/10 @0.45 fee 0.12375
quality #3                                   -> displayed 0.425 age 0 spread 1176 impact 0 levels 1

# many levels: more than are copied at first
market 0 geopolitics 0.001
book Y asks 0.300x1 0.301x1 0.302x1 0.303x1 0.304x1 0.305x1 0.306x1 0.307x1 0.308x1 0.309x1 0.310x1 0.311x1 0.312x1 0.313x1 0.314x1 0.315x1 0.316x1 0.317x1 0.318x1 0.319x1
buy Y 20 market 0.5                          -> FILLED 20/20 @0.3095 fee 0
quality #1                                   -> displayed none age 0 impact 317 levels 20
"#;
