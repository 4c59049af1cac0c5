//! Settings of the models on the command line.

use super::*;

#[test]
fn a_set_and_settings_come_one_over_the_other() {
    let rules = Rules::default();
    let base = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
        super::base(&set, &rules)
    };
    let kind = FillTerms::KIND;
    let good: Vec<(&[&str], FillTerms)> = vec![
        (&[], kind),
        (&["kind"], kind),
        (&["thin"], FillTerms { depth_share: Bps(5_000), ..rules.realism.get("thin").expect("built in").fill }),
        (&["n=3", "cancel_share=0.25"], FillTerms { n: 3, cancel_share: Bps(2_500), ..kind }),
        (&["depth_share=0.01", "match_window_ms=0"], FillTerms { depth_share: Bps(100), match_window_ms: 0, ..kind }),
        (
            &["half_life_s=86400", "match_window_ms=10000"],
            FillTerms { half_life_s: 86_400, match_window_ms: 10_000, ..kind },
        ),
        // A set replaces what came before it.
        (&["n=3", "kind"], kind),
    ];
    for (set, expected) in &good {
        assert_eq!(base(set), Ok(*expected), "{set:?}");
    }
    let wrong = [
        ("", "kind, venue, thin, brutal"),
        ("Venue", "kind, venue, thin, brutal"),
        ("n=0", "1 to 3"),
        ("n=4", "1 to 3"),
        ("n=-1", "1 to 3"),
        ("cancel_share=1.0001", "0 to 1"),
        ("cancel_share=0.00001", "0 to 1"),
        ("cancel_share=", "0 to 1"),
        ("depth_share=0", "0.01 to 1"),
        ("match_window_ms=10001", "0 to 10000"),
        ("half_life_s=0", "1 to 86400"),
        ("half_life_s=1e3", "1 to 86400"),
        ("depth=1", "depth_share"),
        ("=1", "depth_share"),
    ];
    for (text, part) in wrong {
        let error = base(&[text]).expect_err(text);
        assert!(error.contains(part), "{part} is not in {error}");
    }
    println!("settings of models: {} cases", good.len() + wrong.len());
}
