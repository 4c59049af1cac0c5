//! Users and keys (gateway/docs/keys.md §2 to §5): the decisions of the engine.

pub const SCENARIOS: &str = r#"
# wallets of a new user
money                                        -> 100 of 100
money main                                   -> 1000 of 1000

# wallets of a new user with a plan, and of one with a given balance
plan pro
money                                        -> 10000 of 10000
balance 777
user 2
money                                        -> 777 of 777

# issuing: tier and permissions by default
key issue a bootstrap                        -> a Free ReadTrade
facts                                        -> KeyIssued
key issue b bootstrap                        -> BootstrapNotAllowed
key issue b read                             -> b Free Read
key issue c pro                              -> TierRequiresUpgrade
grant pro                                    -> done
facts                                        -> GrantSet BaselineRaised
money                                        -> 100 of 100
baseline                                     -> 10000
key issue c                                  -> c Pro ReadTrade
key issue d free                             -> d Free ReadTrade
key list                                     -> d Free ReadTrade | c Pro ReadTrade | b Free Read | a Free ReadTrade

# five active keys; the old key of a rotation does not count
key issue a                                  -> a Free ReadTrade
key issue b                                  -> b Free ReadTrade
key issue c                                  -> c Free ReadTrade
key issue d                                  -> d Free ReadTrade
key issue e                                  -> e Free ReadTrade
key issue f                                  -> KeyLimit
key rotate 1                                 -> a Free ReadTrade old ends in 24 h
facts                                        -> KeyIssued KeyExpiring
key issue f                                  -> KeyLimit
key rotate 1                                 -> KeyExpiring
key revoke 2                                 -> done
key issue f                                  -> f Free ReadTrade
key revoke 2                                 -> KeyNotFound
key rotate 2                                 -> KeyNotFound
key rename 2 x                               -> KeyNotFound
key rename 9 x                               -> KeyNotFound
key rename 3 x                               -> x Free ReadTrade
key rename 3                                 -> - Free ReadTrade
key list                                     -> f Free ReadTrade | a Free ReadTrade | e Free ReadTrade | d Free ReadTrade | - Free ReadTrade | a Free ReadTrade ends

# an order admitted before its key was revoked is refused; other keys continue
market 0 weather 0.01
book Y asks 0.42x100
key issue a                                  -> a Free ReadTrade
key issue b                                  -> b Free ReadTrade
buy Y 10 market 0.50 by=1 id=x               -> FILLED 10/10 @0.42 fee 0.1218
key revoke 1                                 -> done
buy Y 10 market 0.50 by=1                    -> KeyRevoked
buy Y 10 market 0.50 by=1 id=x               -> KeyRevoked
facts                                        ->
buy Y 10 market 0.50 by=2                    -> FILLED 10/10 @0.42 fee 0.1218

# the tier gate comes before the limit of keys
key issue a                                  -> a Free ReadTrade
key issue b                                  -> b Free ReadTrade
key issue c                                  -> c Free ReadTrade
key issue d                                  -> d Free ReadTrade
key issue e                                  -> e Free ReadTrade
key issue f pro                              -> TierRequiresUpgrade
key issue f bootstrap                        -> BootstrapNotAllowed

# an expired paid grant: read-only
key issue a                                  -> a Free ReadTrade
grant pro 10s                                -> done
key issue b                                  -> b Pro ReadTrade
wait 10s
key issue c                                  -> c Free Read
key issue d trade                            -> TierRequiresUpgrade
key issue d read                             -> d Free Read
key issue d pro                              -> TierRequiresUpgrade
// the effective permissions are copied, and the stored tier
key rotate 2                                 -> b Pro Read old ends in 24 h

# legacy free keys stay read-only through rotation
rule free_trade_since 1h
key issue a                                  -> a Free ReadTrade
key rotate 1                                 -> a Free Read old ends in 24 h

# beta keys keep their cutoff through rotation
rule beta_until 10s
key issue a                                  -> a Free ReadTrade beta
wait 10s
key issue b                                  -> b Free ReadTrade
key rotate 1                                 -> a Free Read beta old ends in 24 h

# a key that ended after its request was admitted no longer trades and issues no key
book Y asks 0.50x100
key issue a                                  -> a Free ReadTrade
buy Y 10 limit 0.40 by=1                    -> PENDING 0/10 reserved 4
key rotate 1                                 -> a Free ReadTrade old ends in 24 h
wait 86399999ms
alive
buy Y 10 limit 0.40 by=1                    -> PENDING 0/10 reserved 4
wait 1ms
buy Y 10 limit 0.40 by=1                    -> KeyExpired
batch buy Y 10 limit 0.40 by=1 | buy Y 10 limit 0.40 by=1 -> KeyExpired
key issue b by=1                             -> KeyExpired
key rotate 2 by=1                            -> KeyExpired
buy Y 10 limit 0.40 by=2                    -> PENDING 0/10 reserved 4
key revoke 2                                 -> done
buy Y 10 limit 0.40 by=2                    -> KeyRevoked
// before all checks of the order
buy ? 0 limit 0.40 by=2 invalid             -> KeyRevoked
key issue b by=2                             -> KeyRevoked
facts                                        -> 
// a session token names no key
key issue b                                  -> b Free ReadTrade
cancel all                                   -> cancelled #1 #2 #3 released 12 and 0

# last use: at most once a minute
key issue a                                  -> a Free ReadTrade
key used 1                                   -> done
facts                                        -> KeyUsed
wait 59s
key used 1                                   -> done
facts                                        -> 
wait 1s
key used 1                                   -> done
facts                                        -> KeyUsed
key used 7                                   -> KeyNotFound
room none
wait 60s
key used 1                                   -> done
facts                                        -> 

# at most sixteen heartbeats
beat a 1000                                  -> lapses in 2000 ms
beat b 1000                                  -> lapses in 2000 ms
beat c 1000                                  -> lapses in 2000 ms
beat d 1000                                  -> lapses in 2000 ms
beat e 1000                                  -> lapses in 2000 ms
beat f 1000                                  -> lapses in 2000 ms
beat g 1000                                  -> lapses in 2000 ms
beat h 1000                                  -> lapses in 2000 ms
beat i 1000                                  -> lapses in 2000 ms
beat j 1000                                  -> lapses in 2000 ms
beat k 1000                                  -> lapses in 2000 ms
beat l 1000                                  -> lapses in 2000 ms
beat m 1000                                  -> lapses in 2000 ms
beat n 1000                                  -> lapses in 2000 ms
beat o 1000                                  -> lapses in 2000 ms
beat p 1000                                  -> lapses in 2000 ms
beat q 1000                                  -> TooManySafeguards
beat p 1000                                  -> lapses in 2000 ms
"#;
