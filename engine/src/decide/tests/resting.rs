//! Resting orders: reservations, the cycle, outages and old quotes, expiry, heartbeats, cancels, settlement.

pub const SCENARIOS: &str = r#"
# a limit away from the market rests with its reservation
book Y bids 0.41x100 asks 0.42x100
buy Y 20 limit 0.37                          -> PENDING 0/20 reserved 7.4
facts                                        -> OrderPlaced OrderRested
money                                        -> 92.6 of 100
quality #1                                   -> displayed 0.415 age 0
terms #1                                     -> Limit Gtc limit 0.37 rate 500
cancel #1                                    -> CANCELLED UserCancelled 0/20
money                                        -> 100 of 100
cancel #1                                    -> OrderNotCancellable
cancel #9                                    -> OrderNotFound

# a reservation is rounded up and computed again after every fill
market 0 geopolitics 0.0001
book Y asks 0.5x100
buy Y 1.0001 limit 0.3333                    -> PENDING 0/1.0001 reserved 0.333334
// 1.0001 × 0.3333 = 0.33333333
level Y ask 0.3333x1
cycle                                        -> looked 1 filled 1 closed 0
// 0.0001 × 0.3333 = 0.00003333, up: 0.000034
order #1                                     -> PENDING 1/1.0001 @0.3333 fee 0 reserved 0.000034
level Y ask 0.3333x2
cycle                                        -> looked 1 filled 1 closed 0
order #1                                     -> FILLED 1.0001/1.0001 @0.333301 fee 0
money                                        -> 99.666666 of 99.666666

# a marketable GTC fills immediately at the walked price
book Y asks 0.40x10 0.42x100
buy Y 30 limit 0.45                          -> FILLED 30/30 @0.413333 fee 0.3636
fills #1                                     -> Taker BookWalk 30 for 12.4 fee 0.3636 at 500 bps

# a marketable GTC that the book covers in part: the part is posted, the rest rests as maker
book Y asks 0.40x10 0.42x10 0.50x100
buy Y 30 limit 0.42                          -> PENDING 20/30 @0.41 fee 0.2418 reserved 4.2
facts                                        -> OrderPlaced OrderFilled OrderRested
money                                        -> 87.3582 of 91.5582
holding Y                                    -> 20 cost 8.2
level Y ask 0.41x5
cycle                                        -> looked 1 filled 1 closed 0
// maker at its own limit, no fee
fills #1                                     -> Taker BookWalk 20 for 8.2 fee 0.2418 at 500 bps | Maker MatchingEngine 5 for 2.1 fee 0 at 0 bps
order #1                                     -> PENDING 25/30 @0.412 fee 0.2418 reserved 2.1
notices                                      -> 1:placed 2:filled 3:filled-resting
cancel #1                                    -> CANCELLED UserCancelled 25/30 @0.412 fee 0.2418
money                                        -> 89.4582 of 89.4582
holding Y                                    -> 25 cost 10.3

# the whole cost must be covered before anything is posted
book Y asks 0.40x10
buy Y 300 limit 0.42                         -> InsufficientBalance 100 < 125.92
// 4 + 0.12 + 290 × 0.42

# a SELL rests with its shares and is a maker at its limit
market 0 geopolitics 0.01
hold Y 50 0.40
book Y bids 0.40x100 asks 0.45x100
sell Y 30 limit 0.50                         -> PENDING 0/30 reserved 30 shares
holding Y                                    -> 50 cost 20 reserved 30
level Y bid 0.52x10
cycle                                        -> looked 1 filled 1 closed 0
order #1                                     -> PENDING 10/30 @0.5 fee 0 reserved 20 shares
holding Y                                    -> 40 cost 16 reserved 20 realized 1
money                                        -> 85 of 85
cancel #1                                    -> CANCELLED UserCancelled 10/30 @0.5 fee 0
holding Y                                    -> 40 cost 16 realized 1

# touching triggers; the best price is first, then the older order
market 0 geopolitics 0.01
book Y asks 0.50x1000
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
buy Y 10 limit 0.39                          -> PENDING 0/10 reserved 3.9
level Y ask 0.40x25
cycle                                        -> looked 3 filled 3 closed 0
order #2                                     -> FILLED 10/10 @0.42 fee 0
order #1                                     -> FILLED 10/10 @0.4 fee 0
order #3                                     -> PENDING 5/10 @0.4 fee 0 reserved 2
facts                                        -> OrderFilled OrderFilled OrderFilled
records                                      -> 6

# users never compete: each meets the whole book
market 0 geopolitics 0.01
book Y asks 0.50x1000
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
user 2
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
level Y ask 0.40x10
cycle                                        -> looked 2 filled 2 closed 0
records                                      -> 6

# candidates: changed books, and all in every tenth cycle
market 0 geopolitics 0.01
market 1 geopolitics 0.01
book Y asks 0.50x1000
book Y1 asks 0.50x1000
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
buy Y1 10 limit 0.40                         -> PENDING 0/10 reserved 4
cycle                                        -> looked 0 filled 0 closed 0
level Y ask 0.40x5
cycle                                        -> looked 1 filled 1 closed 0
// depleted, and the book has not changed since
cycle                                        -> looked 0 filled 0 closed 0
level Y1 ask 0.40x3
cycle                                        -> looked 1 filled 1 closed 0
cycle                                        -> looked 0 filled 0 closed 0
cycle                                        -> looked 0 filled 0 closed 0
cycle                                        -> looked 0 filled 0 closed 0
cycle                                        -> looked 0 filled 0 closed 0
cycle                                        -> looked 0 filled 0 closed 0
cycle                                        -> looked 0 filled 0 closed 0
// the eleventh visits all orders, and depletion is kept
cycle                                        -> looked 2 filled 0 closed 0
order #1                                     -> PENDING 5/10 @0.4 fee 0 reserved 2

# a change of the complement's book is a change of the effective book
market 0 geopolitics 0.01
book Y asks 0.50x1000
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
cycle                                        -> looked 0 filled 0 closed 0
book N bids 0.60x4
cycle                                        -> looked 1 filled 1 closed 0
levels                                       -> ~0.4x4
order #1                                     -> PENDING 4/10 @0.4 fee 0 reserved 2.4

# post-only: judged before depletion, never a taker
market 0 geopolitics 0.01
book Y asks 0.42x10
buy Y 10 limit 0.42 post                     -> PostOnlyWouldCross
buy Y 10 limit 0.42                          -> FILLED 10/10 @0.42 fee 0
// depleted for this user, but still on the book
buy Y 10 limit 0.42 post                     -> PostOnlyWouldCross
buy Y 10 limit 0.41 post                     -> PENDING 0/10 reserved 4.1
sell Y 5 limit 0.41 post                     -> PENDING 0/5 reserved 5 shares
level Y bid 0.41x5
sell Y 5 limit 0.41 post                     -> PostOnlyWouldCross
buy Y 5 market 0.42 post                     -> PostOnlyType
buy Y 5 limit 0.42 fak post                  -> PostOnlyType

# without post-only, what is depleted is not marketable: it rests
market 0 geopolitics 0.01
book Y asks 0.42x10
buy Y 10 limit 0.42                          -> FILLED 10/10 @0.42 fee 0
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2
terms #2                                     -> Limit Gtc limit 0.42 rate 0
level Y ask 0.42x8
cycle                                        -> looked 1 filled 1 closed 0
order #2                                     -> PENDING 8/10 @0.42 fee 0 reserved 0.84

# GTD: ended from the instant of its expiration
market 0 geopolitics 0.01
book Y asks 0.50x1000
buy Y 10 limit 0.40 gtd                      -> InvalidExpiration
buy Y 10 limit 0.40 gtd exp=0s               -> InvalidExpiration
buy Y 10 limit 0.40 gtd exp=10s              -> PENDING 0/10 reserved 4
// the expiration is ignored for other types
buy Y 10 limit 0.40 exp=-10s                 -> PENDING 0/10 reserved 4
wait 9999ms
cycle                                        -> looked 0 filled 0 closed 0
wait 1ms
level Y ask 0.40x100
cycle                                        -> looked 1 filled 1 closed 1
order #1                                     -> CANCELLED GtdExpired 0/10
order #2                                     -> FILLED 10/10 @0.4 fee 0
orders cancelled                             -> #1 of 1

# GTD: while the clock is in doubt it is not swept, and neither book nor print fills it; afterwards it is swept
market 0 geopolitics 0.01
balance 1000
book Y bids 0.30x10 asks 0.50x1000
buy Y 10 limit 0.40 gtd exp=10s              -> PENDING 0/10 reserved 4
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
wait 10s
level Y ask 0.40x15
cycle none                                   -> looked 2 filled 1 closed 0
order #1                                     -> PENDING 0/10 reserved 4
order #2                                     -> FILLED 10/10 @0.4 fee 0
print Y 0.35x50 sell                         -> filled 0
level Y ask 0.40x14
cycle venue                                  -> looked 1 filled 0 closed 0
order #1                                     -> PENDING 0/10 reserved 4
facts                                        -> 
// it can be cancelled, and another one rests
cancel #1                                    -> CANCELLED UserCancelled 0/10
buy Y 10 limit 0.30 gtd exp=10s              -> PENDING 0/10 reserved 3
wait 10s
cycle none                                   -> looked 0 filled 0 closed 0
cycle                                        -> looked 0 filled 0 closed 1
order #3                                     -> CANCELLED GtdExpired 0/10

# heartbeats: while the clock is in doubt a lapse is not swept, and the user's orders do not fill; a beat continues
market 0 geopolitics 0.01
balance 1000
book Y bids 0.30x10 asks 0.50x1000
cycle none                                   -> looked 0 filled 0 closed 0
beat bot 1000                                -> lapses in 2000 ms
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
wait 2s
level Y ask 0.40x6
cycle none                                   -> looked 1 filled 0 closed 0
print Y 0.35x50 sell                         -> filled 0
beat bot 1000                                -> lapses in 2000 ms
cycle none                                   -> looked 0 filled 0 closed 0
level Y ask 0.40x7
cycle none                                   -> looked 1 filled 1 closed 0
order #1                                     -> PENDING 7/10 @0.4 fee 0 reserved 1.2
wait 2s
cycle venue                                  -> looked 0 filled 0 closed 0
cycle                                        -> looked 0 filled 0 closed 1
order #1                                     -> CANCELLED HeartbeatLapsed 7/10 @0.4 fee 0

# an ended market: its orders end by venue time, unless that is in doubt too
market 0 geopolitics 0.01 end=1h
balance 1000
book Y bids 0.30x10 asks 0.50x1000
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
state 0 closed
wait 25h
cycle none                                   -> looked 0 filled 0 closed 0
order #1                                     -> PENDING 0/10 reserved 4
cycle venue                                  -> looked 0 filled 0 closed 1
order #1                                     -> EXPIRED MarketClosed 0/10

# GTD: at most ten years ahead; milliseconds sent as seconds are further
market 0 geopolitics 0.01
book Y asks 0.50x1000
buy Y 10 limit 0.40 gtd exp=315619201s       -> InvalidExpiration
buy Y 10 limit 0.40 gtd exp=315619201s venue -> InvalidExpiration
buy Y 10 limit 0.40 gtd exp=315619200s       -> PENDING 0/10 reserved 4

# outage: GTC rests untouched with its fee reserved and a hold reason; immediate orders are refused
market 0 weather 0.01
book Y bids 0.38x10 asks 0.42x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
hold N 10 0.10
book Y bids 0.38x10 asks 0.42x100
outage on
buy Y 10 market 0.50                         -> VenueUnavailable
buy Y 10 limit 0.50 ioc                      -> VenueUnavailable
// 10 × 0.50 + 10 × 0.05 × 0.25
buy Y 10 limit 0.50                          -> PENDING 0/10 reserved 5.125 awaiting held
buy Y 10 limit 0.41                          -> PENDING 0/10 reserved 4.22095 awaiting held
buy Y 10 limit 0.50 post                     -> PENDING 0/10 reserved 5 awaiting held
sell N 10 limit 0.55                         -> PENDING 0/10 reserved 10 shares awaiting held
cycle                                        -> looked 0 filled 0 closed 0
facts                                        -> OrderHeld
order #1                                     -> PENDING 0/10 reserved 4 held
cycle                                        -> looked 0 filled 0 closed 0
facts                                        -> 
// cancels never need the venue
outage off
cycle                                        -> looked 4 filled 3 closed 0
// first live book: taker at walked prices; post-only maker at its limit; not marketable: maker from now on
fills #2                                     -> Taker BookWalk 10 for 4.2 fee 0.1218 at 500 bps
order #3                                     -> PENDING 0/10 reserved 4.1
fills #4                                     -> Maker MatchingEngine 10 for 5 fee 0 at 0 bps
// asks of Y at 0.42 are bids for N at 0.58
fills #5                                     -> Taker BookWalk 10 for 5.8 fee 0.1218 at 500 bps
order #1                                     -> PENDING 0/10 reserved 4

# a start without a message from a venue: a missing book is not an empty one, and held orders stay held
market 0 weather 0.01
outage on
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4.12 awaiting held
outage off
no_contact on
buy Y 10 market 0.50                         -> VenueUnavailable
buy Y 10 limit 0.50 ioc                      -> VenueUnavailable
buy Y 10 limit 0.50 fok                      -> VenueUnavailable
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4.12 awaiting
cycle                                        -> looked 0 filled 0 closed 0
facts                                        -> 
order #1                                     -> PENDING 0/10 reserved 4.12 awaiting held
// outages were ended before
outage on
cycle                                        -> looked 0 filled 0 closed 0
facts                                        -> OrderHeld
order #2                                     -> PENDING 0/10 reserved 4.12 awaiting held
outage off
no_contact off
book Y asks 0.42x100
cycle                                        -> looked 2 filled 0 closed 0
order #1                                     -> PENDING 0/10 reserved 4
// an empty book is one
book Y
buy Y 10 limit 0.50 ioc                      -> NoExecutableDepth | CANCELLED FakNoFill 0/10

# an outage that ends in the same cycle as a price fall: a held order becomes maker and its fee is released
market 0 weather 0.01
book Y asks 0.42x5
outage on
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.3218 awaiting held
outage off
cycle                                        -> looked 1 filled 1 closed 0
facts                                        -> OrderHeld OrderFilled OrderRested
order #1                                     -> PENDING 5/10 @0.42 fee 0.0609 reserved 2.1
level Y ask 0.41x5
cycle                                        -> looked 1 filled 1 closed 0
fills #1                                     -> Taker BookWalk 5 for 2.1 fee 0.0609 at 500 bps | Maker MatchingEngine 5 for 2.1 fee 0 at 0 bps

# an outage that ends before a cycle leaves no hold reason
market 0 weather 0.01
book Y asks 0.42x5
cycle                                        -> looked 0 filled 0 closed 0
outage on
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.3218 awaiting held
outage off
// so that the order does not meet its book
wait 61s
cycle                                        -> looked 0 filled 0 closed 0
facts                                        -> OrderHeld
order #1                                     -> PENDING 0/10 reserved 4.3218 awaiting

# the safeguard: an order whose fees by level exceed its reservation ends, nothing is overdrawn
flag min_order_size_enforced off
balance 0.00043
market 0 weather 0.0001
book Y asks 0.90x10
outage on
buy Y 0.001 limit 0.42                       -> PENDING 0/0.001 reserved 0.00043 awaiting held
outage off
book Y asks 0.4199x0.0005 0.42x0.0005
cycle                                        -> looked 1 filled 0 closed 1
order #1                                     -> CANCELLED AutoCancelled 0/0.001
money                                        -> 0.00043 of 0.00043

# an old quote: as in an outage, without a hold reason
market 0 weather 0.01
book Y asks 0.42x100
wait 60s
buy Y 10 market 0.42                         -> FILLED 10/10 @0.42 fee 0.1218
wait 1ms
buy Y 10 market 0.42                         -> StaleQuote 60001 > 60000
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.3218 awaiting
buy Y 10 limit 0.42 post                     -> PENDING 0/10 reserved 4.2 awaiting
cycle                                        -> looked 0 filled 0 closed 0
alive
cycle                                        -> looked 2 filled 2 closed 0
fills #2                                     -> Taker BookWalk 10 for 4.2 fee 0.1218 at 500 bps
fills #3                                     -> Maker MatchingEngine 10 for 4.2 fee 0 at 0 bps

# resting orders are skipped while the quote is too old, and matched afterwards
market 0 geopolitics 0.01
book Y asks 0.50x100
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2
cycle                                        -> looked 0 filled 0 closed 0
level Y ask 0.42x100
wait 61s
cycle                                        -> looked 0 filled 0 closed 0
alive
cycle                                        -> looked 1 filled 1 closed 0

# a token without messages: the order waits for its first book
market 0 geopolitics 0.01
buy Y 10 limit 0.60                          -> PENDING 0/10 reserved 6 awaiting
book Y asks 0.50x100
cycle                                        -> looked 1 filled 1 closed 0
fills #1                                     -> Taker BookWalk 10 for 5 fee 0 at 0 bps

# a halted market's orders wait
market 0 geopolitics 0.01
book Y asks 0.50x100
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2
cycle                                        -> looked 0 filled 0 closed 0
state 0 halted
level Y ask 0.42x100
cycle                                        -> looked 0 filled 0 closed 0
state 0 active
cycle                                        -> looked 1 filled 1 closed 0

# a market closed and unresolved: orders stay for a day after its end, venue time
market 0 geopolitics 0.01 end=1h
market 1 geopolitics 0.01
book Y asks 0.50x100
book Y1 asks 0.50x100
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2
buy N 10 limit 0.10                          -> PENDING 0/10 reserved 1
buy Y1 10 limit 0.42                         -> PENDING 0/10 reserved 4.2
wait 1h
end 0
state 1 closed
wait 23h
wait 3599s
cycle                                        -> looked 0 filled 0 closed 0
wait 1s
cycle                                        -> looked 0 filled 0 closed 2
order #1                                     -> EXPIRED MarketClosed 0/10
order #2                                     -> EXPIRED MarketClosed 0/10
order #3                                     -> PENDING 0/10 reserved 4.2
money                                        -> 95.8 of 100

# heartbeats: a lapse ends all orders and the registration
market 0 geopolitics 0.01
book Y asks 0.50x100
beat bot 1000                                -> lapses in 2000 ms
facts                                        -> SafeguardArmed
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2
buy Y 10 limit 0.40 from=main                -> PENDING 0/10 reserved 4
wait 1500ms
beat bot 1000                                -> lapses in 2000 ms
facts                                        -> 
beat bot 8000                                -> lapses in 10000 ms
facts                                        -> SafeguardArmed
beat other 60000                             -> lapses in 75000 ms
wait 9999ms
cycle                                        -> looked 0 filled 0 closed 0
wait 1ms
cycle                                        -> looked 0 filled 0 closed 2
facts                                        -> OrderClosed OrderClosed SafeguardEnded
order #1                                     -> CANCELLED HeartbeatLapsed 0/10
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2
cycle                                        -> looked 0 filled 0 closed 0
wait 75s
cycle                                        -> looked 0 filled 0 closed 1
beat bot 1000                                -> lapses in 2000 ms
buy Y 10 limit 0.42                          -> PENDING 0/10 reserved 4.2 awaiting
endbeats                                     -> done
facts                                        -> SafeguardEnded
wait 10s
cycle                                        -> looked 0 filled 0 closed 0

# a fee above the proceeds of a sale needs cash: in a cycle as at placement
rule weather_fee 20000
balance 8.9
hold Y 10 0.40
money                                        -> 0.1 of 0.1
outage on
sell Y 10 limit 0.40                         -> PENDING 0/10 reserved 10 shares awaiting held
outage off
book Y bids 0.40x100
sell Y 10 limit 0.40                         -> InsufficientPosition 0 < 10
cycle                                        -> looked 1 filled 0 closed 1
order #1                                     -> CANCELLED AutoCancelled 0/10
money                                        -> 0.1 of 0.1
sell Y 10 limit 0.40                         -> InsufficientBalance 0.1 < 0.8

# sweeps
market 0 geopolitics 0.01
market 1 geopolitics 0.01
book Y asks 0.50x100
book Y1 asks 0.50x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
buy N 10 limit 0.10                          -> PENDING 0/10 reserved 1
buy Y1 10 limit 0.20                         -> PENDING 0/10 reserved 2
buy Y 10 limit 0.40 from=main                -> PENDING 0/10 reserved 4
cancel nothing                               -> cancelled released 0 and 0
cancel market 7                              -> cancelled released 0 and 0
cancel market 0 Y1                           -> cancelled released 0 and 0
cancel market 0 N                            -> cancelled #2 released 1 and 0
cancel token Y                               -> cancelled #1 released 4 and 0
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
cancel market 0                              -> cancelled #5 released 4 and 0
order #5                                     -> CANCELLED CancelMarket 0/10
cancel all all                               -> cancelled #3 #4 released 6 and 0
order #3                                     -> CANCELLED CancelAll 0/10
quota                                        -> 5

# a market resolves: orders expire, winners are paid, a second settlement finds nothing
market 0 weather 0.01
book Y asks 0.42x50
book N asks 0.60x50
buy Y 50 market 0.42                         -> FILLED 50/50 @0.42 fee 0.609
buy N 10 market 0.60                         -> FILLED 10/10 @0.6 fee 0.12
sell Y 20 limit 0.90                         -> PENDING 0/20 reserved 20 shares
buy Y 10 limit 0.10                          -> PENDING 0/10 reserved 1
settle 0                                     -> paid 0 expired 0
resolve 0 Y
cycle                                        -> looked 0 filled 0 closed 0
settle 0                                     -> paid 2 expired 2
facts                                        -> OrderClosed OrderClosed PositionSettled PositionSettled
order #3                                     -> EXPIRED MarketResolved 0/20
money                                        -> 122.271 of 122.271
closed                                       -> avg 0.6 realized -6 paid 0 at 0 | avg 0.42 realized 29 paid 50 at 1
settle 0                                     -> paid 0 expired 0
facts                                        -> 
account                                      -> 2 wallets 0 positions 2 fills 2 closed 1 won

# a split pays half, rounded half up
market 0 geopolitics 0.01
book Y asks 0.40x10.0001
buy Y 10.0001 market 0.40                    -> FILLED 10.0001/10.0001 @0.4 fee 0
resolve 0 split
settle 0                                     -> paid 1 expired 0
closed                                       -> avg 0.4 realized 1.00001 paid 5.00005 at 0.5

# emergency exit: past the end, no live bid, at the average entry price
market 0 weather 0.01
hold Y 50 0.40
sell Y 10 market 0.90                        -> FokNotFilled 0 < 10 at 0.9 | CANCELLED FokNotFilled 0/10
end 0
sell Y 10 limit 0.30                         -> MarketClosed
buy Y 10 market 0.90                         -> MarketClosed
sell Y 60 market 0.90                        -> InsufficientPosition 50 < 60
sell Y 10 market 0.90                        -> FILLED 10/10 @0.4 fee 0
fills #2                                     -> Taker EmergencyExitEntryPricePostExpiry 10 for 4 fee 0 at 0 bps
holding Y                                    -> 40 cost 16
// a live book is walked, inside the limit
book Y bids 0.30x100
sell Y 10 market 0.20                        -> FILLED 10/10 @0.3 fee 0.105
sell Y 10 market 0.90                        -> FokNotFilled 0 < 10 at 0.9 | CANCELLED FokNotFilled 0/10
// too old a book is not live
wait 61s
sell Y 10 market 0.20 fak                    -> FILLED 10/10 @0.4 fee 0
outage on
sell Y 10 market 0.20                        -> VenueUnavailable
outage off
state 0 closed
sell Y 10 market 0.20                        -> FILLED 10/10 @0.4 fee 0
resolve 0 Y
sell Y 10 market 0.20                        -> MarketClosed

# lists: newest first, by key, with hints
market 0 geopolitics 0.01
market 1 geopolitics 0.01
book Y asks 0.50x100
book Y1 asks 0.50x100
buy Y 10 limit 0.10                          -> PENDING 0/10 reserved 1
buy Y1 10 limit 0.11                         -> PENDING 0/10 reserved 1.1
buy Y 10 limit 0.12                          -> PENDING 0/10 reserved 1.2
wait 1s
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0
cancel #1                                    -> CANCELLED UserCancelled 0/10
orders                                       -> #4 #3 #2 #1 of 4
orders limit=2                               -> #4 #3 … of 4
orders limit=2 after=#3                      -> #2 #1 of 4
orders limit=2 offset=1                      -> #3 #2 … of 4
orders pending                               -> #3 #2 of 2
orders pending limit=1                       -> #3 … of 2
orders filled                                -> #4 of 1
orders expired                               ->  of 0
orders market=1                              -> #2 of 1
orders market=?                              ->  of 0
orders sell                                  ->  of 0
history 10                                   -> Buy 10 for 5
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0
history 1                                    -> Buy 10 for 5 …
"#;
