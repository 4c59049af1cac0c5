//! What `papertape help` shows beside the names of options: the default and the environment variable of each option that is
//! a setting, and an example for each verb.

use clap::Command;
use gateway::config::Config;

/// Options that are settings: of which verb (none: of every one that has it), its name here, its key.
const SETTINGS: &[(Option<&str>, &str, &str)] = &[
    (None, "data_dir", "data.dir"),
    (Some("serve"), "listen", "server.listen"),
    (Some("serve"), "venue", "venue.kind"),
    (Some("serve"), "tape", "venue.tape"),
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
    ("key", "papertape key --sub demo"),
    ("token", "papertape token --sub alice --email alice@example.org"),
    ("openapi", "papertape openapi > openapi.json"),
    ("asyncapi", "papertape asyncapi > asyncapi.json"),
    ("log", "papertape log verify papertape-data"),
    ("clock", "papertape clock set-back papertape-data"),
    (
        "backup",
        "papertape backup --admin http://127.0.0.1:9464 --token-file papertape-data/admin_token --out monday.tar",
    ),
    ("restore", "papertape restore monday.tar --out papertape-data"),
    ("snapshot", "papertape snapshot list papertape-data"),
];

/// The command line with defaults, environment variables and examples in its help.
pub fn explained(mut command: Command) -> Command {
    let lines = Config::defaults().lines;
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in verbs {
        command = command.mut_subcommand(&name, |mut verb| {
            for (of, option, key) in SETTINGS {
                let has_it = verb.get_arguments().any(|known| known.get_id() == *option);
                if has_it && of.is_none_or(|of| of == name) {
                    verb = verb.mut_arg(option, |known| {
                        let help = known.get_help().map(ToString::to_string).unwrap_or_default();
                        known.help(format!("{help}{}", source(key, &lines)))
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

/// Where a setting comes from when the option is absent.
fn source(key: &str, lines: &[String]) -> String {
    let default = lines.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = ")?.strip_suffix(" (default)"));
    let default = match (key, default) {
        // Chosen where neither this setting nor RUST_LOG is.
        ("log.level", _) => "info",
        (_, None) => "none",
        // Texts stand in quotes there.
        (_, Some(value)) => match value.trim_matches('"') {
            "" => "none",
            value => value,
        },
    };
    format!(" [default: {default}] [env: {}]", variable(key))
}

/// The environment variable of a setting.
fn variable(key: &str) -> String {
    format!("PAPERTAPE_{}", key.replace('.', "_").to_uppercase())
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
                    assert!(help.contains(&variable(key)), "{name}: {key} is not in {help}");
                    let defaults = Config::defaults().lines;
                    let is_known = defaults.iter().any(|line| line.starts_with(&format!("{key} = ")));
                    assert!(is_known, "{key} is no setting");
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

    #[test]
    fn the_examples_are_command_lines() {
        for (name, example) in EXAMPLES.iter().filter(|(name, _)| *name != "load") {
            let words = example.split(' ').take_while(|word| *word != ">");
            let parsed = CommandLine::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{name}: {:?}", parsed.err().map(|error| error.to_string()));
        }
    }
}
