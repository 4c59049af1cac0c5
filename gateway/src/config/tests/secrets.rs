//! Secrets that a start makes, keeps and checks.

use super::*;

#[test]
fn a_missing_secret_is_created_once_and_kept() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let mut config = Config::defaults();
        config.data.dir = dir.path().to_owned();
        config.complete_secrets().map(|()| {
            [&config.auth.jwt_secrets[0], &config.auth.server_secret].map(|secret| secret.expose().to_owned())
        })
    };
    let first = start().unwrap();
    assert!(first[0].len() == 64 && first[1].len() == 64 && first[0] != first[1], "two secrets");
    assert_eq!(start().unwrap(), first);
    for name in ["jwt_secret", "server_secret"] {
        let path = dir.path().join(name);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let kept = std::fs::read(&path).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(start().is_err(), "{name}");
        // A file without an end is not waited for, and the path is named; a link is followed.
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        let refused = start().expect_err("a pipe").to_string();
        assert!(made.success() && refused.contains(name) && refused.contains("not a plain file"), "{refused}");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(dir.path().join("elsewhere"), kept).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let secrets = start().unwrap();
        assert!(secrets.contains(&first[usize::from(name == "server_secret")]));
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(dir.path().join("elsewhere"), &path).unwrap();
        assert_eq!(start().unwrap(), first);
    }
}

/// A start reports changed secrets once; other commands that read them do not consume the report.
#[test]
fn a_missing_or_changed_secret_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = || {
        let mut config = Config::defaults();
        config.data.dir = dir.path().to_owned();
        config
    };
    let start = |has_records| config().complete_secrets_of_a_start(has_records).unwrap();
    let (server, jwt) = (dir.path().join("server_secret"), dir.path().join("jwt_secret"));
    let put = |path: &std::path::Path, text: &str| std::fs::write(path, text.repeat(32)).unwrap();
    let remove = |path: &std::path::Path| std::fs::remove_file(path).unwrap();
    // The change, whether the log has records by then, and what the next start reports about which file.
    type Row<'a> = (&'a str, Box<dyn Fn() + 'a>, bool, &'a [(&'a str, &'a str)]);
    let both: &[_] = &[("server_secret", "missing"), ("jwt_secret", "missing")];
    let rows: Vec<Row<'_>> = vec![
        ("a new directory", Box::new(|| {}), false, &[]),
        ("nothing", Box::new(|| {}), true, &[]),
        ("the server's is missing", Box::new(|| remove(&server)), true, &[("server_secret", "missing")]),
        ("nothing again", Box::new(|| {}), true, &[]),
        ("the server's is changed", Box::new(|| put(&server, "a")), true, &[("server_secret", "last start")]),
        ("a command reads them", Box::new(|| config().complete_secrets().unwrap()), true, &[]),
        ("the identity's is changed", Box::new(|| put(&jwt, "b")), true, &[("jwt_secret", "last start")]),
        ("both are missing", Box::new(|| [&server, &jwt].into_iter().for_each(|path| remove(path))), true, both),
        (
            "a command reads the changed file",
            Box::new(|| {
                put(&server, "c");
                config().complete_secrets().unwrap();
            }),
            true,
            &[("server_secret", "last start")],
        ),
        (
            "a directory without fingerprints and without its secret",
            Box::new(|| [&server, &server.with_extension("check")].into_iter().for_each(|path| remove(path))),
            true,
            &[("server_secret", "missing")],
        ),
        (
            "a directory without fingerprints",
            Box::new(|| [&server, &jwt].into_iter().for_each(|path| remove(&path.with_extension("check")))),
            true,
            &[],
        ),
    ];
    for (name, change, has_records, expected) in &rows {
        change();
        let changes = start(*has_records);
        assert_eq!(changes.len(), expected.len(), "{name}: {changes:?}");
        for (line, (file, word)) in changes.iter().zip(*expected) {
            assert!(line.contains(file) && line.contains(word), "{name}: {line}");
            assert!(!line.contains(&std::fs::read_to_string(dir.path().join(file)).unwrap()), "a secret is shown");
        }
    }
    println!("secrets of a start: {} cases", rows.len());
}
