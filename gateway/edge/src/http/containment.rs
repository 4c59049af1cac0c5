//! What a read-only key may do to keys and balances if such keys are contained (`keys.readonly_contained`). The rule is
//! the same on every route. Without the setting any active key may do everything.
//!
//! | Deed | Allowed to a contained key |
//! |---|---|
//! | create a key | without `trade`, of at most its own tier, and only while it has no end itself |
//! | rename, replace or revoke a key | itself |
//! | reset a balance | never |
//!
//! Reading the account's keys is allowed.

use super::call::Caller;
use engine::id::KeyId;
use engine::user::{Permissions, Tier};

/// An action on a key or a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Creates a key with this tier and these permissions, if the request gives them.
    Make { tier: Option<Tier>, permissions: Option<Permissions> },
    /// Renames, replaces or revokes this key.
    Change(KeyId),
    /// Resets a balance to its baseline.
    Reset,
}

/// Whether the rule applies to this caller: a read-only key.
pub fn is_for(caller: &Caller) -> bool {
    caller.key.is_some() && caller.permissions == Permissions::Read
}

/// Checks whether a contained key may do that.
///
/// # Errors
/// The reason, as a sentence.
pub fn check(caller: &Caller, deed: Deed) -> Result<(), &'static str> {
    match deed {
        _ if !is_for(caller) => Ok(()),
        // A new key would outlive this one.
        Deed::Make { .. } if caller.expires_at.is_some() => {
            Err("A read-only key that expires cannot create keys here.")
        }
        Deed::Make { tier, permissions } => {
            let is_more = permissions == Some(Permissions::ReadTrade) || tier.is_some_and(|tier| tier > caller.tier);
            if is_more { Err("A read-only key cannot create a key here that may do more than itself.") } else { Ok(()) }
        }
        Deed::Change(key) if caller.key == Some(key) => Ok(()),
        Deed::Change(_) => Err("A read-only key cannot rename, replace or revoke other keys here."),
        Deed::Reset => Err("A read-only key cannot reset a balance here."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::id::UserId;
    use engine::time::Timestamp;

    /// All kinds of callers with all actions.
    #[test]
    fn a_contained_key_creates_no_stronger_key_and_changes_only_itself() {
        use Permissions::{Read, ReadTrade};
        let caller = |key: Option<u64>, permissions, expires_at: Option<u64>| Caller {
            user: UserId(7),
            key: key.map(KeyId),
            tier: Tier::Pro,
            permissions,
            grant: None,
            expires_at: expires_at.map(Timestamp),
        };
        let reader = caller(Some(1), Read, None);
        let ending = caller(Some(1), Read, Some(9));
        let free = [caller(Some(1), ReadTrade, None), caller(Some(1), ReadTrade, Some(9)), caller(None, Read, None)];
        let make = |tier, permissions| Deed::Make { tier, permissions };
        // The action; whether a read-only key may do it, and one that has an end.
        let rows = [
            (make(None, None), true, false),
            (make(None, Some(Read)), true, false),
            (make(Some(Tier::Free), Some(Read)), true, false),
            (make(Some(Tier::Pro), None), true, false),
            (make(Some(Tier::ProPlus), None), false, false),
            (make(Some(Tier::Enterprise), Some(Read)), false, false),
            (make(None, Some(ReadTrade)), false, false),
            (make(Some(Tier::Free), Some(ReadTrade)), false, false),
            (Deed::Change(KeyId(1)), true, true),
            (Deed::Change(KeyId(2)), false, false),
            (Deed::Reset, false, false),
        ];
        for (deed, of_reader, of_ending) in rows {
            assert_eq!(check(&reader, deed).is_ok(), of_reader, "{deed:?}");
            assert_eq!(check(&ending, deed).is_ok(), of_ending, "{deed:?} of a key with an end");
            for caller in &free {
                assert_eq!(check(caller, deed), Ok(()), "{deed:?} of {caller:?}");
            }
        }
        println!("deeds of contained keys: {} cases", rows.len() * (2 + free.len()));
    }
}
