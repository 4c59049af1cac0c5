//! What `papertape help` shows besides the names of options: default and environment variable of each option that is a
//! setting, and an example of each verb.

use clap::Command;
use gateway::config::{self, Setting};

/// Options that are settings: the verb (none: every verb that has the option), the option's name, the setting's key.
const SETTINGS: &[(Option<&str>, &str, &str)] = &[
    (None, "data_dir", "data.dir"),
    (Some("serve"), "listen", "server.listen"),
    (Some("serve"), "venue", "venue.kind"),
    (Some("serve"), "tape", "venue.tape"),
    (Some("serve"), "markets", "venue.markets"),
    (Some("serve"), "from", "venue.from"),
    (Some("serve"), "to", "venue.to"),
    (Some("serve"), "speed", "venue.speed"),
    (Some("serve"), "follow", "venue.follow"),
    (Some("serve"), "record", "venue.record"),
    (Some("serve"), "mix_venues", "venue.mix"),
    (Some("serve"), "durability", "journal.durability"),
    (Some("serve"), "busy_poll", "server.busy_poll"),
    (Some("serve"), "log_level", "log.level"),
    (Some("serve"), "log_format", "log.format"),
];

const EXAMPLES: &[(&str, &str)] = &[
    ("serve", "papertape serve --venue replay --tape recordings/ --speed 10 --log-level debug"),
    ("record", "papertape record --venue polymarket --out recordings/ --duration 3600"),
    ("doctor", "papertape doctor --venue polymarket,kalshi"),
    ("seed", "papertape seed --users 1000 --tier enterprise --balance 10000 --out users.jsonl"),
    ("load", "papertape load --keys users.jsonl --rate 5000 --duration 30 --report load.html"),
    ("grant", "papertape grant --user demo --plan pro --until 2027-01-01T00:00:00Z"),
    ("refund", "papertape refund --user demo --purchase pi_3PxyzABC"),
    ("notice", "papertape notice --all --text 'Maintenance today from 22:00 to 22:30 UTC.'"),
    ("wallet", "papertape wallet --user demo --kind competition --balance 5000 --label cup"),
    ("key", "papertape key --sub demo"),
    ("token", "papertape token --sub alice --email alice@example.org"),
    ("settings", "papertape settings --config papertape.toml"),
    ("openapi", "papertape openapi > openapi.json"),
    ("asyncapi", "papertape asyncapi > asyncapi.json"),
    ("archive", "papertape archive import recordings/ --from 2026-09-30T17 --to 2026-09-30T20"),
    (
        "simulate",
        "papertape simulate coverage --condition-id \
         0x5151515151515151515151515151515151515151515151515151515151515151",
    ),
    ("backtest", "papertape backtest strategy.json --seeds 16 --json - --trades trades.csv"),
    (
        "calibrate",
        "papertape calibrate live-orders.csv --tape recordings/ --models touch,queue_prob --html calibration.html",
    ),
    ("football", "papertape football check facts/"),
    ("incident", "papertape incident open --title Delay --service market_data"),
    ("log", "papertape log verify papertape-data"),
    ("history", "papertape history verify papertape-data"),
    ("clock", "papertape clock set-back papertape-data"),
    (
        "backup",
        "papertape backup --admin http://127.0.0.1:9464 --token-file papertape-data/admin_token --out monday.tar",
    ),
    ("restore", "papertape restore monday.tar --out papertape-data"),
    ("snapshot", "papertape snapshot list papertape-data"),
];

/// The command line, with defaults, environment variables and examples in its help.
pub fn explained(mut command: Command) -> Command {
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in verbs {
        command = command.mut_subcommand(&name, |mut verb| {
            for (of, option, key) in SETTINGS {
                let has_it = verb.get_arguments().any(|known| known.get_id() == *option);
                if has_it && of.is_none_or(|of| of == name) {
                    verb = verb.mut_arg(option, |known| {
                        let help = known.get_help().map(ToString::to_string).unwrap_or_default();
                        let setting = config::settings().iter().find(|setting| setting.key() == *key);
                        known.help(format!("{help}{}", setting.map(source).unwrap_or_default()))
                    });
                }
            }
            match EXAMPLES.iter().find(|(verb, _)| *verb == name) {
                Some((_, example)) => verb.after_help(format!("Example:\n  {example}")),
                None => verb,
            }
        });
    }
    command
}

/// Source of a setting whose option is absent.
fn source(setting: &Setting) -> String {
    let default = match setting.default_text() {
        // The default when neither this setting nor RUST_LOG is set.
        _ if setting.key() == "log.level" => "info".to_owned(),
        text if text.is_empty() => "none".to_owned(),
        text => text,
    };
    format!(" [default: {default}] [env: {}]", setting.variable())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLine;
    use clap::CommandFactory as _;

    #[test]
    fn every_verb_has_an_example_that_parses_and_every_setting_its_variable() {
        let mut command = explained(CommandLine::command());
        command.build();
        let mut cases = 0;
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            let (name, mut verb) = (verb.get_name().to_owned(), verb.clone());
            let help = verb.render_help().to_string();
            assert!(help.contains("Example:\n  papertape "), "{name}: {help}");
            for (of, option, key) in SETTINGS {
                let has_it = verb.get_arguments().any(|known| known.get_id() == *option);
                assert!(has_it || of.is_none_or(|of| of != name), "{name} has no {option}");
                if has_it && of.is_none_or(|of| of == name) {
                    let setting = config::settings().iter().find(|setting| setting.key() == *key);
                    let variable = setting.unwrap_or_else(|| panic!("{key} is not a setting")).variable();
                    assert!(help.contains(&variable), "{name}: {key} is not in {help}");
                    cases += 1;
                }
            }
            cases += 1;
        }
        let serve = command.find_subcommand("serve").expect("the verb").clone().render_help().to_string();
        for shown in
            ["[default: 127.0.0.1:8080]", "[env: PAPERTAPE_SERVER_LISTEN]", "[default: info]", "[default: process]"]
        {
            assert!(serve.contains(shown), "{shown} is not in {serve}");
        }
        println!("help: {cases} cases");
    }

    /// The words of a command line, as a shell reads it: what is between two quotes is one.
    fn words(line: &str) -> Vec<&str> {
        let (mut words, mut rest) = (Vec::new(), line);
        while let Some((plain, quoted)) = rest.split_once('\'') {
            words.extend(plain.split_whitespace());
            let (text, after) = quoted.split_once('\'').expect("a quote ends");
            words.push(text);
            rest = after;
        }
        words.extend(rest.split_whitespace());
        words
    }

    #[test]
    fn the_examples_are_command_lines() {
        for (name, example) in EXAMPLES.iter().filter(|(name, _)| *name != "load") {
            let words = words(example).into_iter().take_while(|word| *word != ">");
            let parsed = CommandLine::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{name}: {:?}", parsed.err().map(|error| error.to_string()));
        }
    }
}
