//! What a read-only key may do to keys and balances if such keys are contained (`keys.readonly_contained`). The rule is
//! the same on every route. Without the setting any active key may do everything.
//!
//! | Action | Allowed to a contained key |
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
pub enum KeyAction {
    /// Creates a key with this tier and these permissions, if the request gives them.
    Create { tier: Option<Tier>, permissions: Option<Permissions> },
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
pub fn check(caller: &Caller, action: KeyAction) -> Result<(), &'static str> {
    match action {
        _ if !is_for(caller) => Ok(()),
        // A new key would outlive this one.
        KeyAction::Create { .. } if caller.expires_at.is_some() => {
            Err("A read-only key that expires cannot create keys here.")
        }
        KeyAction::Create { tier, permissions } => {
            let is_more = permissions == Some(Permissions::ReadTrade) || tier.is_some_and(|tier| tier > caller.tier);
            if is_more { Err("A read-only key cannot create a key here that may do more than itself.") } else { Ok(()) }
        }
        KeyAction::Change(key) if caller.key == Some(key) => Ok(()),
        KeyAction::Change(_) => Err("A read-only key cannot rename, replace or revoke other keys here."),
        KeyAction::Reset => Err("A read-only key cannot reset a balance here."),
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
        let create = |tier, permissions| KeyAction::Create { tier, permissions };
        // The action; whether a read-only key may do it, and one that has an end.
        let rows = [
            (create(None, None), true, false),
            (create(None, Some(Read)), true, false),
            (create(Some(Tier::Free), Some(Read)), true, false),
            (create(Some(Tier::Pro), None), true, false),
            (create(Some(Tier::ProPlus), None), false, false),
            (create(Some(Tier::Enterprise), Some(Read)), false, false),
            (create(None, Some(ReadTrade)), false, false),
            (create(Some(Tier::Free), Some(ReadTrade)), false, false),
            (KeyAction::Change(KeyId(1)), true, true),
            (KeyAction::Change(KeyId(2)), false, false),
            (KeyAction::Reset, false, false),
        ];
        for (action, of_reader, of_ending) in rows {
            assert_eq!(check(&reader, action).is_ok(), of_reader, "{action:?}");
            assert_eq!(check(&ending, action).is_ok(), of_ending, "{action:?} of a key with an end");
            for caller in &free {
                assert_eq!(check(caller, action), Ok(()), "{action:?} of {caller:?}");
            }
        }
        println!("actions of contained keys: {} cases", rows.len() * (2 + free.len()));
    }
}
