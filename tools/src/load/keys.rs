//! The keys file: one JSON line per user, as `papertape seed` writes it.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A user of the load.
#[derive(Deserialize)]
pub struct User {
    pub user_id: u64,
    pub api_key: String,
    #[serde(default)]
    pub tier: Option<String>,
}

/// All users of a file, at least one.
#[derive(Clone)]
pub struct Keys {
    pub file: PathBuf,
    pub users: Arc<[User]>,
}

impl Keys {
    pub fn read(file: &str) -> Result<Keys, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("the file cannot be read: {error}"))?;
        let users = parse(&text)?;
        Ok(Keys { file: Path::new(file).to_owned(), users: users.into() })
    }

    /// The distinct tiers, in the order of their first line in the file.
    pub fn tiers(&self) -> Vec<&str> {
        let mut tiers: Vec<&str> = Vec::new();
        for tier in self.users.iter().filter_map(|user| user.tier.as_deref()) {
            if !tiers.contains(&tier) {
                tiers.push(tier);
            }
        }
        tiers
    }
}

fn parse(text: &str) -> Result<Vec<User>, String> {
    const SHAPE: &str = r#"{"user_id":1,"api_key":"…","tier":"…"}"#;
    let mut users = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        // An error names the line and never quotes it: it may contain part of a key.
        let user: User = serde_json::from_str(line).map_err(|_| format!("line {} is not {SHAPE}", number + 1))?;
        let key = user.api_key.as_bytes();
        if key.is_empty() || !key.iter().all(u8::is_ascii_graphic) {
            return Err(format!("the key in line {} has characters that a header cannot carry", number + 1));
        }
        users.push(user);
    }
    if users.is_empty() {
        return Err(format!("it is empty; `papertape seed --out FILE` writes lines of {SHAPE}"));
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_named_by_its_number() {
        let good = r#"{"user_id":7,"api_key":"svc_live_1","tier":"pro"}"#;
        let cases = [
            (good.to_owned(), Ok(1)),
            (format!("{good}\n\n{good}\n"), Ok(2)),
            (r#"{"user_id":7,"api_key":"k"}"#.to_owned(), Ok(1)),
            (String::new(), Err("it is empty")),
            ("\n \n".to_owned(), Err("it is empty")),
            ("svc_live_1".to_owned(), Err("line 1 is not")),
            (format!("{good}\n{{\"user_id\":8}}"), Err("line 2 is not")),
            (format!("{good}\n\n[]"), Err("line 3 is not")),
            (r#"{"user_id":"7","api_key":"k"}"#.to_owned(), Err("line 1 is not")),
            (r#"{"user_id":7,"api_key":""}"#.to_owned(), Err("key in line 1")),
            (r#"{"user_id":7,"api_key":"a\r\nb: c"}"#.to_owned(), Err("key in line 1")),
            (r#"{"user_id":7,"api_key":"ké"}"#.to_owned(), Err("key in line 1")),
        ];
        for (text, expected) in &cases {
            match (parse(text), expected) {
                (Ok(users), Ok(count)) => assert_eq!(users.len(), *count, "{text}"),
                (Err(error), Err(expected)) => {
                    assert!(error.contains(expected), "{text}: {error}");
                    assert!(!error.contains("svc_live"), "a key is shown: {error}");
                }
                (parsed, expected) => panic!("{text}: {:?}, not {expected:?}", parsed.map(|users| users.len())),
            }
        }
        println!("keys files: {} cases", cases.len());
    }

    #[test]
    fn tiers_are_named_once() {
        let user = |tier: Option<&str>| User { user_id: 1, api_key: "k".into(), tier: tier.map(str::to_owned) };
        let users = [user(Some("pro")), user(None), user(Some("free")), user(Some("pro"))];
        let keys = Keys { file: "f".into(), users: users.into() };
        assert_eq!(keys.tiers(), ["pro", "free"]);
        println!("tiers: 1 case");
    }
}
