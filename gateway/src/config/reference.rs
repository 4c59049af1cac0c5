//! The reference of settings, made from the table.

use super::setting::Setting;
use super::table::{SECTIONS, settings};

/// `gateway/docs/settings.md`, which `papertape settings --markdown` prints.
pub fn markdown() -> String {
    let mut out = String::from(
        "<!-- Made by `papertape settings --markdown`; a test compares the two. -->\n\n# Settings\n\n\
         Settings come from a TOML file (`--config FILE`), environment variables and, for those that\n\
         `papertape help serve` lists, options of the command line; the later one wins. `server.listen` is the key\n\
         `listen` in section `[server]` of the file, and the variable `PAPERTAPE_SERVER_LISTEN`. A list in a variable\n\
         is separated by commas. An unknown key and a value that is not allowed end the start with a line that names\n\
         the key, its origin and the allowed values; all errors are reported together. The banner of a start lists\n\
         what is set, `papertape settings` every setting with its value and origin.\n",
    );
    for (number, (section, about)) in SECTIONS.iter().enumerate() {
        let inside = format!("{section}.");
        out += &format!(
            "\n## {}. [{section}]\n\n{about}\n\n| Key and variable | Type | Default | Allowed | Meaning |\n\
             |---|---|---|---|---|\n",
            number + 1
        );
        for setting in settings().iter().filter(|setting| setting.key().starts_with(&inside)) {
            out += &format!(
                "| `{}`<br>`{}` | {} | {} | {} | {} |\n",
                setting.key(),
                setting.variable(),
                setting.what(),
                cell(&absent(setting)),
                cell(&setting.allowed()),
                cell(setting.meaning()),
            );
        }
    }
    out
}

/// What applies without the setting: words, or the default as code.
fn absent(setting: &Setting) -> String {
    match (setting.unset_words(), setting.default_text()) {
        (Some(words), _) => words.to_owned(),
        (None, text) if text.is_empty() => "none".to_owned(),
        (None, text) => format!("`{text}`"),
    }
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
