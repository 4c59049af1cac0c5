//! The rehearsal of the venue's checks, and the profile of the venue (gateway/docs/rehearsal.md).

/// How signed orders are looked at, and which venue is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    pub mode: Rehearse,
    pub accounts: Accounts,
    pub allowances: Allowances,
    pub profile: Profile,
}

/// Whether signed orders are checked as the venue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehearse {
    Off,
    /// Findings are reported; the order goes on.
    Warn,
    /// What the venue would refuse is refused.
    Enforce,
}

/// The age of the accounts at the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounts {
    /// They may trade with any type of wallet.
    Existing,
    /// They may trade with deposit wallets only.
    New,
}

/// What the exchanges may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowances {
    /// All that an address holds.
    Granted,
    /// What is declared for its address.
    Declared,
}

/// The venue as of a date, or as the contract describes it. Each has what those before it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    Contract,
    /// 2026-03-30: orders of the first generation only.
    FirstGeneration,
    /// 2026-04-28: orders of the second generation only.
    SecondGeneration,
    /// 2026-06-15: at most 1 000 orders in a list of cancels.
    ShortCancels,
    /// 2026-07-10: other fees of sports.
    SportsFees,
    /// 2026-07-24: orders that take immediately are answered with their trades.
    NamedTrades,
    /// 2026-08-17: a shorter hold.
    ShortHold,
}

/// Orders in a list of cancels.
const CANCELS_MAX: usize = 3_000;
const SHORT_CANCELS_MAX: usize = 1_000;

impl Profile {
    /// Every profile with its name in the configuration.
    pub const ALL: [(&'static str, Profile); 7] = [
        ("contract", Profile::Contract),
        ("2026-03-30", Profile::FirstGeneration),
        ("2026-04-28", Profile::SecondGeneration),
        ("2026-06-15", Profile::ShortCancels),
        ("2026-07-10", Profile::SportsFees),
        ("2026-07-24", Profile::NamedTrades),
        ("2026-08-17", Profile::ShortHold),
    ];

    /// The generation of orders that clients are to build; `None`: the setting decides.
    pub fn order_version(self) -> Option<u64> {
        match self {
            Profile::Contract => None,
            Profile::FirstGeneration => Some(1),
            _ => Some(2),
        }
    }

    /// Orders that one call may cancel.
    pub fn cancels_max(self) -> usize {
        if self >= Profile::ShortCancels { SHORT_CANCELS_MAX } else { CANCELS_MAX }
    }

    /// Whether orders that take immediately are answered with the names of their trades. Trades then say that they are
    /// confirmed, because clients wait for that.
    pub fn names_trades(self) -> bool {
        self >= Profile::NamedTrades
    }
}

impl Rehearsal {
    /// Orders that one call may cancel. A profile refuses only where the rehearsal does.
    pub fn cancels_max(&self) -> usize {
        match self.mode {
            Rehearse::Enforce => self.profile.cancels_max(),
            Rehearse::Off | Rehearse::Warn => CANCELS_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_has_what_those_before_it_have() {
        // (version, cancels where refusals are enforced, trades are named)
        let expected = [
            (None, 3_000, false),
            (Some(1), 3_000, false),
            (Some(2), 3_000, false),
            (Some(2), 1_000, false),
            (Some(2), 1_000, false),
            (Some(2), 1_000, true),
            (Some(2), 1_000, true),
        ];
        let mut cases = 0;
        for ((name, profile), (version, cancels, named)) in Profile::ALL.into_iter().zip(expected) {
            assert_eq!((profile.order_version(), profile.names_trades()), (version, named), "{name}");
            for (mode, cancels) in [(Rehearse::Off, 3_000), (Rehearse::Warn, 3_000), (Rehearse::Enforce, cancels)] {
                let (accounts, allowances) = (Accounts::Existing, Allowances::Granted);
                let rehearsal = Rehearsal { mode, accounts, allowances, profile };
                assert_eq!(rehearsal.cancels_max(), cancels, "{name} {mode:?}");
                cases += 1;
            }
        }
        assert!(Profile::ALL.is_sorted_by_key(|(_, profile)| *profile));
        println!("profiles: {cases} cases");
    }
}
