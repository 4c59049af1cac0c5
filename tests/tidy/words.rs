//! Words that comments, messages and documents do not use: each has a plainer one, or hides the subject of its
//! sentence.
//!
//! Reads the comments and string literals of all Rust sources, and all Markdown documents. Code in backticks or fences,
//! identifiers, placeholders of format strings, and quoted text are skipped. A test of one word may miss a phrase that
//! the table does not have; a reviewer sees more.

use super::{citations, sources};
use std::collections::BTreeMap;
use std::env;

/// A word or phrase, and what to write instead.
const WORDS: [(&str, &str); 41] = [
    ("anew", "again"),
    ("anybody", "any client, any user"),
    ("at once", "immediately, concurrently"),
    ("behind", "after"),
    ("by and by", "gradually"),
    ("by turns", "alternately, in batches"),
    ("each by itself", "one at a time"),
    ("each for itself", "independently"),
    ("end in order", "end cleanly"),
    ("ended in order", "ended cleanly"),
    ("ends in order", "ends cleanly"),
    ("everybody", "all clients, every user"),
    ("for good", "permanently"),
    ("goes its way", "continues"),
    ("he", "it, they"),
    ("heard", "received"),
    ("hears", "receives"),
    ("him", "it, them"),
    ("himself", "itself, themselves"),
    ("his", "its, their"),
    ("holds good", "is valid"),
    ("is no", "is not a"),
    ("is none", "does not count, is not one"),
    ("is said", "is reported"),
    ("lies", "is, is stored"),
    ("nobody", "no client, no user"),
    ("robbed", "files were removed"),
    ("so many", "a number, this many"),
    ("somebody", "a client, a user"),
    ("stands", "is, is set"),
    ("tells", "reports, sends"),
    ("the like", "similar ones"),
    ("thereby", "so"),
    ("therein", "in it"),
    ("told", "reported, sent"),
    ("was said", "was reported"),
    ("weather of", "conditions of"),
    ("whatever", "any"),
    ("what there is", "the existing ones"),
    ("whichever", "any"),
    ("whoever", "a client that, a thread that"),
];

/// Phrases that are right after or before some words: (phrase, words before it, words after it).
const RIGHT: [(&str, &[&str], &[&str]); 6] = [
    ("behind", &[], &["a", "an", "one"]),
    ("is no", &["there"], &["earlier", "higher", "larger", "later", "less", "longer", "lower", "more", "smaller"]),
    ("is none", &["there"], &["of"]),
    ("so many", &[], &["that"]),
    ("stands", &[], &["for"]),
    ("told", &[], &["to"]),
];

/// Folders that may have some of them: the most that each may have; `WRITE_WORDS=1` prints the present ones. A question
/// of the synthetic venue has one, and its text is data.
const LEFT: [(&str, usize); 1] = [("gateway/venue", 1)];

/// A line of prose; `follows`: it continues the sentence of the one before it.
struct Line {
    number: usize,
    text: String,
    follows: bool,
}

/// A word in lower case with its line. A break between sentences is empty; code, quotes and identifiers are [`CODE`].
struct Word {
    line: usize,
    text: String,
}

const CODE: &str = "`";

/// The comments and string literals of a Rust source.
fn prose_of_source(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut number = 1;
    let mut at = 0;
    // Number of the last line that is a comment and nothing else, and whether it is inside a fence.
    let (mut last_comment, mut is_fenced) = (0, false);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let before = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        let raw_hashes = raw_string(before, rest);
        let len = if rest.starts_with("//") {
            let len = rest.find('\n').unwrap_or(rest.len());
            let line = rest[..len].trim_start_matches(['/', '!']).trim();
            let follows = last_comment + 1 == number && before.trim().is_empty();
            is_fenced &= follows;
            if line.starts_with("```") {
                is_fenced = !is_fenced;
            } else if !is_fenced {
                let follows = follows && !begins_item(line);
                found.push(Line { number, text: line.to_owned(), follows });
            }
            if before.trim().is_empty() {
                last_comment = number;
            }
            len
        } else if let Some(hashes) = raw_hashes {
            let begin = 2 + hashes;
            let end = format!("\"{}", "#".repeat(hashes));
            let len = rest[begin..].find(&end).unwrap_or(rest.len() - begin);
            push_string(&mut found, number, &rest[begin..begin + len]);
            (begin + len + end.len()).min(rest.len())
        } else if let Some(literal) = rest.strip_prefix('"') {
            let mut escaped = false;
            let is_end = |c: char| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            };
            let len = literal.find(is_end).unwrap_or(literal.len());
            push_string(&mut found, number, &without_escapes(&literal[..len]));
            (len + 2).min(rest.len())
        } else if rest.starts_with('\'') {
            character(rest)
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        number += rest[..len].matches('\n').count();
        at += len;
    }
    found
}

/// The hashes of a raw string that begins here, if one does.
fn raw_string(before: &str, rest: &str) -> Option<usize> {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let prefix = before.strip_suffix(['b', 'c']).unwrap_or(before);
    let hashes = rest.strip_prefix('r')?.bytes().take_while(|byte| *byte == b'#').count();
    (rest[1 + hashes..].starts_with('"') && !prefix.ends_with(in_name)).then_some(hashes)
}

/// The length of a character literal, or 1 for the mark of a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(1, |(end, _)| end + 1)
        }
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(1, |(end, _)| end + 1),
        None => 1,
    }
}

/// The text of a string literal with each escape as one character; the lines stay.
fn without_escapes(literal: &str) -> String {
    let mut text = String::new();
    let mut chars = literal.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => text.push('.'),
                Some(c @ ('"' | '\n')) => text.push(c),
                _ => text.push(' '),
            },
            (c, _) => text.push(c),
        }
    }
    text
}

/// The lines of a string literal, without placeholders. A literal of one word is a name or a value, not prose.
fn push_string(found: &mut Vec<Line>, number: usize, text: &str) {
    if !text.trim().contains(' ') {
        return;
    }
    for (index, line) in text.split('\n').enumerate() {
        let mut plain = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('{') {
            let end = after.find(|c: char| !c.is_alphanumeric() && !"_:?#.<>^*$".contains(c)).unwrap_or(after.len());
            plain.push_str(before);
            match after[end..].strip_prefix('}') {
                Some(after) => (plain, rest) = (plain + CODE + CODE, after),
                None => rest = after,
            }
        }
        plain.push_str(rest);
        found.push(Line { number: number + index, text: plain, follows: index > 0 });
    }
}

/// The text of a Markdown document without fences.
fn prose_of_document(text: &str) -> Vec<Line> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let follows = !begins_item(line.trim_start());
            found.push(Line { number: index + 1, text: line.to_owned(), follows });
        }
    }
    found
}

/// Whether a line begins a paragraph of its own.
fn begins_item(line: &str) -> bool {
    line.is_empty() || line.starts_with(['#', '|', '-', '*', '>'])
}

/// The words of some prose. Backticks and quotes may reach over lines, but not over paragraphs.
fn words(lines: &[Line]) -> Vec<Word> {
    let mut found = Vec::new();
    let mut closing: Option<char> = None;
    for Line { number, text, follows } in lines {
        if !follows {
            closing = None;
            found.push(Word { line: *number, text: String::new() });
        }
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            if closing.is_some() {
                closing = closing.filter(|end| *end != c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let is_part = |c: char| c.is_alphanumeric() || "_'’-".contains(c);
            if is_part(c) {
                // A path, a file name or a member continues after `::`, `.` or `/`.
                let mut len = 0;
                loop {
                    len += rest[len..].find(|c| !is_part(c)).unwrap_or(rest.len() - len);
                    let joint = ["::", ".", "/"].into_iter().find(|joint| rest[len..].starts_with(joint));
                    let Some(joint) = joint.map(str::len) else { break };
                    if !rest[len + joint..].starts_with(is_part) {
                        break;
                    }
                    len += joint;
                }
                found.push(Word { line: *number, text: plain_word(&rest[..len]) });
                rest = &rest[len..];
                continue;
            }
            closing = match c {
                '`' | '"' => Some(c),
                '“' => Some('”'),
                '„' => Some('“'),
                '«' => Some('»'),
                _ => None,
            };
            if closing.is_some() {
                found.push(Word { line: *number, text: CODE.to_owned() });
            } else if ".;:!?|".contains(c) {
                found.push(Word { line: *number, text: String::new() });
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    found
}

/// A word in lower case without `'s`; an identifier, a path or a file name is [`CODE`].
fn plain_word(word: &str) -> String {
    let base = word.split(['\'', '’']).next().unwrap_or_default();
    let is_code = |word: &str| {
        word.contains(['_', ':', '.', '/']) || word.chars().any(|c| c.is_ascii_digit()) || {
            let inner = word.chars().skip(1);
            inner.clone().any(char::is_uppercase) && inner.clone().any(char::is_lowercase)
        }
    };
    if is_code(base) { CODE.to_owned() } else { base.to_lowercase() }
}

/// Line, phrase and replacement of each hit.
fn hits(words: &[Word]) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for at in 0..words.len() {
        for (phrase, instead) in WORDS {
            let len = phrase.split(' ').count();
            let is_here = words.len() - at >= len && phrase.split(' ').zip(&words[at..]).all(|(a, b)| a == b.text);
            let is_right = || {
                let Some((_, before, after)) = RIGHT.iter().find(|(right, _, _)| *right == phrase) else {
                    return false;
                };
                let is_in = |list: &[&str], word: Option<&Word>| word.is_some_and(|word| list.contains(&&*word.text));
                is_in(before, at.checked_sub(1).and_then(|at| words.get(at))) || is_in(after, words.get(at + len))
            };
            if is_here && !is_right() {
                found.push((words[at].line, phrase, instead));
            }
        }
    }
    found
}

/// The folder of a file that the table [`LEFT`] may name: a package, a folder of the edge's sources, or the folder of
/// documents in `gateway`.
fn folder(name: &str) -> &str {
    let parts = match name {
        name if name.starts_with("gateway/edge/src/") => 4,
        name if name.starts_with("gateway/") => 2,
        _ => 1,
    };
    let end = name.match_indices('/').nth(parts - 1).map(|(end, _)| end).or(name.rfind('/'));
    &name[..end.unwrap_or(0)]
}

#[test]
fn words_that_do_not_come_back() {
    let of_sources = sources::all().into_iter().map(|source| {
        let lines = prose_of_source(&source.text);
        (source.name, lines)
    });
    let of_documents = citations::documents().into_iter().map(|(name, text)| {
        let lines = prose_of_document(&text);
        (name, lines)
    });
    let (mut files, mut lines_read) = (0, 0);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // This file has them all.
    for (name, lines) in of_sources.chain(of_documents).filter(|(name, _)| name != "tests/tidy/words.rs") {
        (files, lines_read) = (files + 1, lines_read + lines.len());
        let hits = hits(&words(&lines));
        if !hits.is_empty() {
            let hits =
                hits.into_iter().map(|(line, word, instead)| format!("{name}:{line}: \"{word}\"; write: {instead}"));
            found.entry(folder(&name).to_owned()).or_default().extend(hits);
        }
    }
    println!("words: {files} files, {lines_read} lines of prose read");
    assert!(lines_read > 10_000, "{lines_read} lines are too few to be all");
    let writes = env::var_os("WRITE_WORDS").is_some();
    if writes {
        println!("const LEFT: [(&str, usize); {}] = [", found.len());
        found.iter().for_each(|(folder, hits)| println!("    ({folder:?}, {}),", hits.len()));
        println!("];");
        return;
    }
    let bounds = BTreeMap::from(LEFT);
    for (folder, hits) in &found {
        let most = bounds.get(folder.as_str()).copied().unwrap_or_default();
        assert!(
            hits.len() <= most,
            "{folder:?} has {} of these words, at most {most} are left:\n{}",
            hits.len(),
            hits.join("\n")
        );
    }
    for (folder, most) in LEFT {
        let count = found.get(folder).map_or(0, Vec::len);
        if count < most {
            println!("{folder:?} has {count} instead of {most}: lower the number");
        }
    }
}

#[test]
fn a_planted_word_is_found_and_quoted_text_is_not() {
    let found = |lines: Vec<Line>| -> Vec<(usize, &str)> {
        hits(&words(&lines)).into_iter().map(|(line, word, _)| (line, word)).collect()
    };
    let source = |text: &str| found(prose_of_source(text));
    let document = |text: &str| found(prose_of_document(text));
    let cases = [
        ("/// Whoever asks.\nfn a() {}", &[(1, "whoever")][..]),
        ("fn a() {} // nobody's", &[(1, "nobody")]),
        ("//! The page\n//! behind the last one.", &[(2, "behind")]),
        ("//! It is\n//! no order.", &[(1, "is no")]),
        ("let a = \"one\";\nlet b = format!(\"it is \\\n  told {b}\");", &[(3, "told")]),
        ("let a = r#\"a \"b\" c\nstands\"#;", &[(2, "stands")]),
        ("let a = '\"'; // anew", &[(1, "anew")]),
        ("fn a<'a>(b: &'a str) {} // anew", &[(1, "anew")]),
        // Not prose.
        ("let anew = Reply::Nobody; // `nobody`", &[]),
        ("/// As `journal::Reply::Nobody`, Reply::Nobody and started_anew.", &[]),
        ("/// ```\n/// let anew = 1;\n/// ```", &[]),
        ("let a = \"{told} and {heard:?}\";", &[]),
        ("let a = [\"anew\", \"behind\"];", &[]),
        ("/// The venue's own text is \"nobody told\n/// him\".", &[]),
        ("/// In German: „Wer his behind told“, “nobody”, «anew».", &[]),
        // Right in their place.
        ("/// There is no order. It is no longer than that.", &[]),
        ("/// A server behind a proxy is told to stop.", &[]),
        ("/// So many that it stands for all. He-men. It is. No order.", &[]),
        ("let a = \"it is\"; let b = \"no order\";", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(source(text), expected, "{text}");
    }
    let documents = [
        ("# Title\n\nThe page\nbehind it.", &[(4, "behind")][..]),
        ("| a | nobody |", &[(1, "nobody")]),
        ("- it is\n- no order", &[]),
        ("```sh\necho anew\n```\n`anew` [a](docs/anew.md)", &[]),
    ];
    for (text, expected) in documents {
        assert_eq!(document(text), expected, "{text}");
    }
    assert_eq!(
        [
            "README.md",
            "gateway/CHANGES.md",
            "gateway/docs/wire.md",
            "gateway/edge/src/app.rs",
            "gateway/edge/src/ws/live/mod.rs",
            "wal/src/a.rs"
        ]
        .map(folder),
        ["", "gateway", "gateway/docs", "gateway/edge/src", "gateway/edge/src/ws", "wal"]
    );
    println!("words: {} cases", cases.len() + documents.len() + 6);
}
