//! The order of checks (engine/docs/orders.md §2), each refusal, and the precedence of errors; idempotency, caps,
//! batches.

pub const SCENARIOS: &str = r#"
# the checks in their order: each line corrects one field and meets the next check
rule free_daily_orders 1
market 0 weather 0.01
book Y bids 0.41x100 asks 0.42x100
buy Y 5 limit 0.30                           -> PENDING 0/5 reserved 1.5
buy ? 0 limit 0.333 gtd post exp=-1s from=unknown invalid     -> DailyLimit 1/1 resets 53100
tier pro
buy ? 0 limit 0.333 gtd post exp=-1s from=unknown invalid     -> InvalidTerms
buy ? 0 limit 0.333 fok post exp=-1s from=unknown -> InvalidQuantity
buy ? 1 limit 0.333 fok post exp=-1s from=unknown -> PostOnlyType
buy ? 1 limit 0.333 gtd post exp=-1s from=unknown -> InvalidExpiration
buy ? 1 limit 0.333 gtd post exp=60s from=unknown -> WalletNotFound
buy ? 1 limit 0.333 gtd post exp=60s         -> MarketNotFound
state 0 halted
buy Y 1 limit 0.333 gtd post exp=60s         -> MarketClosed
state 0 active
buy Y 1 limit 0.333 gtd post exp=60s         -> OffTick 0.01
sell Y 1 limit 0.33 gtd post exp=60s         -> BelowMinimum 5
sell Y 500 limit 0.33 gtd post exp=60s       -> InsufficientPosition 0 < 500
buy Y 500 limit 0.43 gtd post exp=60s        -> PostOnlyWouldCross
buy Y 500 limit 0.41 gtd post exp=60s        -> InsufficientBalance 98.5 < 205
buy Y 50 limit 0.41 gtd post exp=60s         -> PENDING 0/50 reserved 20.5
records                                      -> 3

# of two errors the earlier check wins: immediate orders
market 0 weather 0.01
market 1 weather 0.01
book Y bids 0.41x10
outage on
// 13 before 14
sell Y 50 market 0.40                        -> InsufficientPosition 0 < 50
// 12 before 14
buy Y 1 market 0.50                          -> BelowMinimum 5
// 14 before 15, 16 and 19
wait 61s
buy Y 500 market 0.50                        -> VenueUnavailable
outage off
// 15 before 16 and 19
buy Y 500 market 0.50                        -> StaleQuote 61000 > 60000
alive
// 16 before 19
buy Y 500 market 0.50                        -> FokNotFilled 0 < 500 at 0.5 | CANCELLED FokNotFilled 0/500
book Y asks 0.50x600
// 18 before 19
buy Y 700 market 0.50                        -> FokNotFilled 600 < 700 at 0.5 | CANCELLED FokNotFilled 0/700
buy Y 500 market 0.50                        -> InsufficientBalance 100 < 256.25

# of two errors the earlier check wins: resting orders
rule free_daily_orders 1
book Y asks 0.50x600
buy Y 5 limit 0.30 id=a                      -> PENDING 0/5 reserved 1.5
// idempotency before the cap: replay and conflict
buy Y 5 limit 0.30 id=a                      -> PENDING 0/5 reserved 1.5 replay available 98.5 holding nothing fills 0
buy Y 5 limit 0.30 id=a body=2               -> DuplicateClientOrderId
buy Y 5 limit 0.30 id=a body=2 header        -> IdempotencyKeyReuse
// replay before invalid terms
buy Y 0 limit 0.30 id=a invalid              -> PENDING 0/5 reserved 1.5 replay available 98.5 holding nothing fills 0
// cap before invalid terms
buy Y 0 limit 0.30 invalid                   -> DailyLimit 1/1 resets 53100
// a paid key has no cap, but its orders count
buy Y 5 limit 0.30 pro                       -> PENDING 0/5 reserved 1.5
quota                                        -> 2
// the next UTC day
wait 14h
wait 2700s
alive
buy Y 5 limit 0.30                           -> PENDING 0/5 reserved 1.5
quota                                        -> 1

# killed orders and refusals do not count for the cap
rule free_daily_orders 2
book Y asks 0.50x10
buy Y 20 market 0.50                         -> FokNotFilled 10 < 20 at 0.5 | CANCELLED FokNotFilled 0/20
buy Y 500 limit 0.40                         -> InsufficientBalance 100 < 200
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.125
buy Y 10 limit 0.10                          -> PENDING 0/10 reserved 1
buy Y 10 limit 0.10                          -> DailyLimit 2/2 resets 53100
cancel #3                                    -> CANCELLED UserCancelled 0/10
buy Y 10 limit 0.10                          -> DailyLimit 2/2 resets 53100

# idempotency: the first answer stays, also after later events
book Y bids 0.39x100 asks 0.42x100
buy Y 20 limit 0.40 id=a                     -> PENDING 0/20 reserved 8
facts                                        -> OrderPlaced OrderRested RequestRemembered
level Y ask 0.40x50
cycle                                        -> looked 1 filled 1 closed 0
order #1                                     -> FILLED 20/20 @0.4 fee 0
buy Y 20 limit 0.40 id=a                     -> PENDING 0/20 replay available 92 holding nothing fills 0
client a                                     -> FILLED 20/20 @0.4 fee 0
client b                                     -> OrderNotFound
// a fill at placement
buy Y 10 market 0.50 id=b                    -> FILLED 10/10 @0.4 fee 0.12
sell Y 30 limit 0.90                         -> PENDING 0/30 reserved 30 shares
cancel all                                   -> cancelled #3 released 0 and 30
buy Y 10 market 0.50 id=b                    -> FILLED 10/10 @0.4 fee 0.12 replay available 87.88 holding 30 fills 1

# idempotency: a killed order's refusal is repeated with its figures
book Y asks 0.42x30
buy Y 50 market 0.50 id=k                    -> FokNotFilled 30 < 50 at 0.5 | CANCELLED FokNotFilled 0/50
book Y asks 0.42x300
buy Y 50 market 0.50 id=k                    -> FokNotFilled 30 < 50 at 0.5 | CANCELLED FokNotFilled 0/50 replay available 100 holding nothing fills 0
buy Y 50 market 0.50 id=l                    -> FILLED 50/50 @0.42 fee 0.609
buy Y 50 limit 0.10 fak id=m                 -> NoExecutableDepth | CANCELLED FakNoFill 0/50
buy Y 50 limit 0.10 fak id=m                 -> NoExecutableDepth | CANCELLED FakNoFill 0/50 replay available 78.391 holding 50 fills 0

# idempotency: a refused request is forgotten; another user has other ids
book Y asks 0.42x300
buy Y 500 limit 0.40 id=a                    -> InsufficientBalance 100 < 200
buy Y 50 limit 0.40 id=a body=2              -> PENDING 0/50 reserved 20
user 2
buy Y 50 limit 0.40 id=a body=3              -> PENDING 0/50 reserved 20

# an implicit id is valid for ten minutes, is not a client id, and refuses nothing
book Y asks 0.42x300
buy Y 50 limit 0.40 id=salt implicit         -> PENDING 0/50 reserved 20
wait 600s
alive
buy Y 50 limit 0.40 id=salt implicit         -> PENDING 0/50 reserved 20 replay available 80 holding nothing fills 0
wait 1us
buy Y 50 limit 0.40 id=salt implicit         -> PENDING 0/50 reserved 20
buy Y 50 limit 0.40 id=salt implicit body=2  -> PENDING 0/50 reserved 20

# an id counts for three days from the placement of its order; then it is free
book Y asks 0.42x300
buy Y 50 limit 0.40 id=a                     -> PENDING 0/50 reserved 20
wait 71h
wait 3599999ms
alive
buy Y 50 limit 0.40 id=a                     -> PENDING 0/50 reserved 20 replay available 80 holding nothing fills 0
wait 1ms
buy Y 50 limit 0.40 id=a                     -> PENDING 0/50 reserved 20 replay available 80 holding nothing fills 0
buy Y 50 limit 0.40 id=a body=2              -> DuplicateClientOrderId
buy Y 50 limit 0.40 id=a body=2 header       -> IdempotencyKeyReuse
client a                                     -> PENDING 0/50 reserved 20
wait 1us
client a                                     -> OrderNotFound
order #1                                     -> PENDING 0/50 reserved 20
buy Y 25 limit 0.40 id=a body=2              -> PENDING 0/25 reserved 10
// it names the new order now
buy Y 50 limit 0.40 id=a                     -> DuplicateClientOrderId
client a                                     -> PENDING 0/25 reserved 10
cycle                                        -> looked 0 filled 0 closed 0
buy Y 25 limit 0.40 id=a body=2              -> PENDING 0/25 reserved 10 replay available 70 holding nothing fills 0
wait 72h
alive
client a                                     -> PENDING 0/25 reserved 10
wait 1us
client a                                     -> OrderNotFound
orders                                       -> #2 #1 of 2

# a shorter time
rule client_ids 1h
book Y asks 0.42x300
buy Y 50 limit 0.40 id=a                     -> PENDING 0/50 reserved 20
wait 1h
alive
buy Y 50 limit 0.40 id=a                     -> PENDING 0/50 reserved 20 replay available 80 holding nothing fills 0
wait 1us
buy Y 50 limit 0.40 id=a                     -> PENDING 0/50 reserved 20
// a killed order's id, too
buy Y 500 market 0.42 id=k                   -> FokNotFilled 300 < 500 at 0.42 | CANCELLED FokNotFilled 0/500
wait 1h
alive
buy Y 500 market 0.42 id=k                   -> FokNotFilled 300 < 500 at 0.42 | CANCELLED FokNotFilled 0/500 replay available 60 holding nothing fills 0
wait 1us
buy Y 500 market 0.42 id=k                   -> FokNotFilled 300 < 500 at 0.42 | CANCELLED FokNotFilled 0/500

# a write that waited more than two seconds has no effect
book Y asks 0.42x300
late buy Y 50 limit 0.40                     -> WaitedTooLong
records                                      -> 1

# grids: limits are on the tick, worst prices anywhere
market 0 weather 0.01
market 1 weather 0.001
book Y asks 0.42x300
buy Y 50 limit off                           -> OffTick 0.01
buy Y 50 limit 1                             -> OffTick 0.01
buy Y 50 limit 0.005                         -> OffTick 0.01
buy Y 50 limit 0.01                          -> PENDING 0/50 reserved 0.5
buy Y 50 market 0.4242                       -> FILLED 50/50 @0.42 fee 0.609
buy Y 5 market 1                             -> FILLED 5/5 @0.42 fee 0.0609
// a finer tick: limits and minimum follow, resting orders stay
tick 0 0.001
buy Y 1 limit 0.005                          -> PENDING 0/1 reserved 0.005
buy Y1 1 limit 0.0055                        -> OffTick 0.001
buy Y1 0.5 limit 0.005                       -> BelowMinimum 1
order #1                                     -> PENDING 0/50 reserved 0.5

# the minimum applies to SELL too, even for the last remainder
market 0 geopolitics 0.01
book Y asks 0.40x10
buy Y 7 limit 0.40                           -> FILLED 7/7 @0.4 fee 0
book Y bids 0.40x5
sell Y 5 market 0.40                         -> FILLED 5/5 @0.4 fee 0
sell Y 2 market 0.40                         -> BelowMinimum 5

# closed markets
book Y asks 0.40x10
state 0 upcoming
buy Y 5 limit 0.40                           -> MarketClosed
state 0 halted
buy Y 5 limit 0.40                           -> MarketClosed
state 0 closed
buy Y 5 limit 0.40                           -> MarketClosed
state 0 active
buy Y 5 limit 0.30                           -> PENDING 0/5 reserved 1.5
end 0
buy Y 5 limit 0.40                           -> MarketClosed
sell Y 5 limit 0.40                          -> MarketClosed
resolve 0 Y
buy Y 5 limit 0.40                           -> MarketClosed
sell Y 5 market 0.40                         -> MarketClosed

# other wallets
book Y asks 0.42x3000
buy Y 500 market 0.42 from=main              -> FILLED 500/500 @0.42 fee 6.09
money                                        -> 100 of 100
money main                                   -> 783.91 of 783.91
sell Y 5 limit 0.90                          -> InsufficientPosition 0 < 5
sell Y 5 limit 0.90 from=main                -> PENDING 0/5 reserved 5 shares
cancel all                                   -> cancelled released 0 and 0
cancel all main                              -> cancelled #2 released 0 and 5
cancel all foreign                           -> WalletNotFound
orders foreign                               -> WalletNotFound
orders                                       ->  of 0

# a batch: in order, one record each, a failure does not stop the next
book Y bids 0.41x100 asks 0.42x100
batch buy Y 50 market 0.42 | sell Y 900 limit 0.50 | sell Y 20 limit 0.60 | buy Y 200 market 0.42 | buy Y 5 limit 0.30 invalid -> FILLED 50/50 @0.42 fee 0.609 | InsufficientPosition 50 < 900 | PENDING 0/20 reserved 20 shares | FokNotFilled 50 < 200 at 0.42 | InvalidTerms
facts                                        -> OrderPlaced OrderFilled OrderPlaced OrderRested OrderPlaced OrderClosed
records                                      -> 4
quota                                        -> 2

# a batch meets the cap in its middle
rule free_daily_orders 1
book Y asks 0.42x100
batch buy Y 5 limit 0.30 | buy Y 5 limit 0.30 -> PENDING 0/5 reserved 1.5 | DailyLimit 1/1 resets 53100

# no room: placements are refused first, cancels and heartbeats later
book Y asks 0.42x100
buy Y 5 limit 0.30                           -> PENDING 0/5 reserved 1.5
buy Y 5 limit 0.30                           -> PENDING 0/5 reserved 1.5
room reserve
buy Y 5 limit 0.30                           -> NoRoom
batch buy Y 5 limit 0.30                     -> NoRoom
key issue k                                  -> NoRoom
beat a 1000                                  -> lapses in 2000 ms
cancel #1                                    -> CANCELLED UserCancelled 0/5
order #2                                     -> PENDING 0/5 reserved 1.5
room none
cancel #2                                    -> NoRoom
beat b 1000                                  -> NoRoom
order #2                                     -> PENDING 0/5 reserved 1.5
room ample
cancel #2                                    -> CANCELLED UserCancelled 0/5

# a batch ends when the log has no room, even if room returns: later entries are not processed
book Y asks 0.42x100
buy Y 5 limit 0.30                           -> PENDING 0/5 reserved 1.5
// one record has room, the next none, then there is room again
gap 1
batch sell Y 9 limit 0.90 | buy Y 6 limit 0.30 id=a | buy Y 7 limit 0.30 id=b | buy Y 8 limit 0.30 | buy Y 0 limit 0.30 -> InsufficientPosition 0 < 9 | PENDING 0/6 reserved 1.8 | NoRoom | NoRoom | NoRoom
records                                      -> 3
orders                                       -> #2 #1 of 2
money                                        -> 96.7 of 100
quota                                        -> 2
// the next request has room: the placed order is replayed, the refused one is placed
batch buy Y 6 limit 0.30 id=a | buy Y 7 limit 0.30 id=b -> PENDING 0/6 reserved 1.8 replay available 96.7 holding nothing fills 0 | PENDING 0/7 reserved 2.1
records                                      -> 4

# a rounded quantity keeps its text; excessive amounts are refused
book Y asks 0.42x100
buy Y 50.0001 limit 0.30 rounded=50.00015    -> PENDING 0/50.0001 reserved 15.00003
buy Y 1000000 limit 0.99                     -> InsufficientBalance 84.99997 < 989944.218
buy Y 1000001 limit 0.99                     -> AboveShareCap 1000000
buy Y $9000000000000 market 0.42             -> AboveShareCap 1000000
"#;
