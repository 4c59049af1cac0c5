//! `papertape backup` and `papertape restore`: the same state is restored, a damaged backup leaves nothing, and a
//! killed process leaves an intact source and no partial directory that starts.

use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant, SystemTime};
use tests::binary::{command, run, run_well};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::json::{int, text};
use tests::server::{ServerDir, User, digest_of, log_of};
use tests::world::{World, limit, market};

use crate::kills::copy_dir;
use crate::verbs::fingerprint_of;

/// A stopped directory with a snapshot, and records after it.
struct Stopped {
    place: ServerDir,
    user: User,
    balance: Value,
}

fn stopped() -> Stopped {
    let World { place, mut server, users, markets, .. } = World::start(1);
    let user = users.into_iter().next().expect("one user");
    let mut client = server.with_key(&user.key);
    for _ in 0..5 {
        client.post("/v1/orders", &market(&markets.vote, "BUY", "0.65", "5")).expect(200);
    }
    server.kill();
    run_well([OsString::from("snapshot"), "create".into(), place.data().into()]);
    let mut server = place.start();
    let mut client = server.with_key(&user.key);
    for _ in 0..20 {
        client.post("/v1/orders", &limit(&markets.rain, "BUY", "0.01", "5")).expect(200);
    }
    let balance = client.get("/v1/account/balance").expect(200);
    server.kill();
    Stopped { place, user, balance }
}

fn backup(data: &Path, out: &Path, more: &[&str]) -> Output {
    let mut args: Vec<OsString> = vec!["backup".into(), data.into(), "--out".into(), out.into()];
    args.extend(more.iter().map(OsString::from));
    run(args)
}

fn restore(from: &Path, out: &Path) -> Output {
    run([OsString::from("restore"), from.into(), "--out".into(), out.into()])
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The files of a directory that are compared: all but the text of its lock.
fn evidence(dir: &Path) -> impl PartialEq + std::fmt::Debug {
    fingerprint_of(dir, |path| !path.ends_with("lock"))
        .into_iter()
        .map(|(path, (bytes, _))| (path, bytes.len(), digest(&bytes)))
        .collect::<Vec<_>>()
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The manifest of an earlier program: format 1, which names no encoding of the digest.
#[test]
fn backups_of_earlier_programs_are_restored() {
    let cases = Cases::of("manifests");
    let Stopped { place, .. } = stopped();
    let (data, root) = (place.data(), place.root().to_owned());
    let taken = backup(&data, &root.join("backup"), &[]);
    assert!(taken.status.success(), "{}", output_text(&taken));
    let path = root.join("backup/manifest.json");
    let whole: Value = serde_json::from_slice(&fs::read(&path).expect("a manifest")).expect("JSON");
    let digest = |encoding: &str| {
        let words = [OsString::from("log"), "digest".into(), "--encoding".into(), encoding.into(), data.clone().into()];
        run_well(words).split_once("  ").expect("a digest and more").0.to_owned()
    };
    let (first, second) = (digest("1"), digest("2"));
    assert!(first != second && second == digest_of(&data));
    // (format, encoding if it is named, digest, whether it is restored)
    let rows = [
        (1, None, &first, true),
        (1, None, &second, false),
        (1, Some(1), &first, true),
        (2, Some(2), &second, true),
        (2, Some(2), &first, false),
        (2, Some(1), &second, false),
        (2, Some(3), &second, false),
        (2, Some(0), &first, false),
        (3, Some(2), &second, false),
        (0, None, &first, false),
    ];
    for (number, (format, encoding, digest, is_restored)) in rows.into_iter().enumerate() {
        let mut manifest = whole.clone();
        let fields = manifest.as_object_mut().expect("an object");
        fields.insert("format".into(), format.into());
        fields.insert("digest".into(), digest.as_str().into());
        match encoding {
            Some(encoding) => fields.insert("digest_encoding".into(), encoding.into()),
            None => fields.remove("digest_encoding"),
        };
        fs::write(&path, manifest.to_string()).expect("written");
        let out = root.join(format!("out-{number}"));
        let restored = restore(&root.join("backup"), &out);
        assert_eq!(restored.status.success(), is_restored, "{format} {encoding:?}: {}", output_text(&restored));
        if is_restored {
            let printed = String::from_utf8_lossy(&restored.stdout);
            assert!(printed.contains(&second) && printed.contains("encoding 2"), "{printed}");
            assert_eq!(digest_of(&out), second);
        }
        cases.one();
    }
}

#[test]
fn a_backup_is_restored_unchanged() {
    let cases = Cases::of("backups restored");
    let Stopped { place, user, balance } = stopped();
    let (data, root) = (place.data(), place.root().to_owned());
    let (before, expected) = (evidence(&data), digest_of(&data));
    let secrets = ["server_secret", "jwt_secret"];
    let known = fs::read(data.join("venue_kinds")).expect("the server noted its venue");
    let folder = root.join("folder");
    let tar = root.join("file.tar");
    for (out, more) in [(&folder, &[][..]), (&tar, &[][..]), (&root.join("secret"), &["--with-secrets"][..])] {
        let taken = backup(&data, out, more);
        assert!(taken.status.success(), "{}", output_text(&taken));
        assert!(String::from_utf8_lossy(&taken.stdout).contains(&expected), "the digest is printed");
        cases.one();
    }
    assert_eq!(evidence(&data), before, "a backup does not change its source");
    let manifest: Value =
        serde_json::from_slice(&fs::read(folder.join("manifest.json")).expect("a manifest")).expect("JSON");
    assert_eq!(text(&manifest, "/digest"), expected);
    // A backup without secrets contains no secret, in any form.
    let kept = fs::read(data.join("server_secret")).expect("the server created one");
    let plain = fs::read(&tar).expect("a tar file");
    assert!(!plain.windows(kept.len()).any(|bytes| bytes == kept), "the secret is in a plain backup");
    assert_eq!((int(&manifest, "/format"), int(&manifest, "/digest_encoding")), (2, 2));
    for name in secrets.iter().filter(|name| data.join(name).exists()) {
        assert!(!folder.join(name).exists() && root.join("secret").join(name).exists(), "{name}");
        cases.one();
    }
    // Standard output and input carry the same stream.
    let streamed = backup(&data, Path::new("-"), &[]);
    assert!(streamed.status.success() && streamed.stdout.len() == plain.len(), "{}", output_text(&streamed));
    fs::write(root.join("stream.tar"), &streamed.stdout).expect("written");
    for (number, from) in [folder.clone(), tar.clone(), root.join("stream.tar"), root.join("secret")].iter().enumerate()
    {
        let out = root.join(format!("restored-{number}"));
        if number == 1 {
            fs::create_dir(&out).expect("an empty folder is a target, too");
            fs::set_permissions(&out, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("a mode");
        }
        let restored = restore(from, &out);
        assert!(restored.status.success(), "{}", output_text(&restored));
        assert!(String::from_utf8_lossy(&restored.stdout).contains(&expected), "the digest is printed");
        assert!(log_of(&out, "verify").status.success());
        assert_eq!(digest_of(&out), expected, "facts about the directory are not state");
        let inspected = String::from_utf8_lossy(&log_of(&out, "inspect").stdout).into_owned();
        assert!(inspected.contains("Restored"), "the restore is a fact");
        assert_eq!(out.join("server_secret").exists(), number == 3);
        assert_eq!(fs::read(out.join("venue_kinds")).expect("it was restored"), known);
        assert!(!out.join("clock_doubted").exists(), "the clock was not doubted");
        // It serves the acknowledged state, and a backup of it can be taken.
        let args: Vec<OsString> = place.serve_command().get_args().map(OsString::from).collect();
        let at = args.iter().position(|arg| arg == "--data-dir").expect("the harness names it");
        let mut serve = command();
        serve.args(&args[..=at]).arg(&out).args(&args[at + 2..]).current_dir(place.root());
        let server = tests::server::Starting::spawn(serve).ready().unwrap_or_else(|output| panic!("{output}"));
        let now = server.with_key(&user.key).get("/v1/account/balance").expect(200);
        assert_eq!(text(&now, "/balance"), text(&balance, "/balance"));
        let instance = text(&server.client().get("/v1/health").expect(200), "/instance").to_owned();
        let stdout = String::from_utf8_lossy(&restored.stdout).into_owned();
        assert!(stdout.contains(&format!("instance {instance}")), "{instance} in {stdout}");
        server.stop();
        let again = backup(&out, &root.join(format!("again-{number}.tar")), &[]);
        assert!(again.status.success(), "{}", output_text(&again));
        cases.one();
    }
}

/// A restored directory belongs to the venue of before, and keeps a doubt about the clock.
#[test]
fn files_that_a_start_checks_are_in_a_backup() {
    let cases = Cases::of("files that a start checks");
    let Stopped { place, .. } = stopped();
    let (data, root) = (place.data(), place.root().to_owned());
    let hours_ago = |hours: u64| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
        (now - Duration::from_secs(hours * 3_600)).as_micros().to_string()
    };
    // (venues, the known time, the finding of the restored directory's start; `None`: another venue)
    for (number, (venues, known, found)) in [
        ("replay\n", Some(hours_ago(200)), Some("ahead")),
        ("replay\n", Some(hours_ago(2)), Some("ok")),
        ("replay,synthetic\n", None, Some("ok")),
        ("synthetic\n", None, None),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(data.join("venue_kinds"), venues).expect("written");
        if let Some(known) = &known {
            fs::write(data.join("clock_doubted"), known).expect("written");
        }
        let (tar, out) = (root.join(format!("kept-{number}.tar")), root.join(format!("kept-{number}")));
        assert!(backup(&data, &tar, &[]).status.success());
        assert!(restore(&tar, &out).status.success());
        assert_eq!(fs::read(out.join("venue_kinds")).expect("it was restored"), venues.as_bytes());
        let args: Vec<OsString> = place.serve_command().get_args().map(OsString::from).collect();
        let at = args.iter().position(|arg| arg == "--data-dir").expect("the harness names it");
        let mut serve = command();
        serve.args(&args[..=at]).arg(&out).args(&args[at + 2..]).current_dir(place.root());
        match (tests::server::Starting::spawn(serve).ready(), found) {
            (Ok(mut server), Some(found)) => {
                let status = server.client().get("/v1/status").expect(200);
                assert_eq!(text(&status, "/clock/start"), found, "{venues:?} {known:?}");
                server.kill();
            }
            (Err(output), None) => assert!(output.contains("was used with venue synthetic"), "{output}"),
            (started, found) => panic!("{found:?} expected: {:?}", started.map(drop)),
        }
        let _ = fs::remove_file(data.join("clock_doubted"));
        cases.one();
    }
    // A directory that no start accepts cannot be backed up.
    for (name, wrong) in [("venue_kinds", "elsewhere\n"), ("clock_doubted", "yesterday\n")] {
        let before = fs::read(data.join(name)).ok();
        let whole = root.join("whole.tar");
        fs::write(data.join(name), wrong).expect("written");
        let refused = backup(&data, &whole, &[]);
        assert!(!refused.status.success() && output_text(&refused).contains(name), "{}", output_text(&refused));
        match before {
            Some(before) => fs::write(data.join(name), before).expect("written"),
            None => fs::remove_file(data.join(name)).expect("removed"),
        }
        cases.one();
    }
}

#[test]
fn a_directory_in_use_is_not_copied() {
    let world = World::start(1);
    let out = world.place.root().join("never.tar");
    let refused = backup(&world.place.data(), &out, &[]);
    assert!(
        !refused.status.success() && output_text(&refused).contains("owns the log directory"),
        "{}",
        output_text(&refused)
    );
    assert!(!out.exists() && !out.with_file_name("never.tar.making").exists());
    world.user(0).get("/v1/account/balance").expect(200);
}

/// A backup inside the directory that it copies would be lost with it, and its files would look like files of the log.
#[test]
fn a_backup_inside_its_source_is_refused() {
    let cases = Cases::of("places of backups");
    let Stopped { place, .. } = stopped();
    let (data, root) = (place.data(), place.root().to_owned());
    let before = evidence(&data);
    let link = root.join("link");
    std::os::unix::fs::symlink(&data, &link).expect("a link");
    fs::create_dir(root.join("beside")).expect("a folder");
    for (from, out, is_apart) in [
        (&data, data.join("backup"), false),
        (&data, data.join("backup.tar"), false),
        (&data, data.join("history").join("x.tar"), false),
        (&data, data.join("..").join("data").join("x"), false),
        (&data, link.join("x.tar"), false),
        (&data, data.clone(), false),
        (&data, root.clone(), false),
        (&data, root.join("data-too"), true),
        (&data, root.join("beside").join("data.tar"), true),
        (&data, data.join("..").join("apart"), true),
    ] {
        let taken = backup(from, &out, &[]);
        let expected = if is_apart { 0 } else { 2 };
        assert_eq!(taken.status.code(), Some(expected), "{}: {}", out.display(), output_text(&taken));
        assert!(
            is_apart || output_text(&taken).contains("write the backup elsewhere"),
            "{}: {}",
            out.display(),
            output_text(&taken)
        );
        assert_eq!(evidence(&data), before, "{}: nothing is written there", out.display());
        cases.one();
    }
    // Relative paths of the current folder are resolved.
    for (out, is_apart) in [("inside", false), ("inside.tar", false), ("../outside", true)] {
        let taken = command().args(["backup", ".", "--out", out]).current_dir(&data).output().expect("it runs");
        assert_eq!(taken.status.success(), is_apart, "{out}: {}", output_text(&taken));
        assert_eq!(evidence(&data), before, "{out}: nothing is written there");
        cases.one();
    }
}

#[test]
fn a_damaged_backup_leaves_nothing() {
    let cases = Cases::of("damaged backups");
    let Stopped { place, .. } = stopped();
    let root = place.root().to_owned();
    let (whole, copy, out) = (root.join("whole"), root.join("copy"), root.join("out"));
    assert!(backup(&place.data(), &whole, &[]).status.success());
    let manifest =
        || -> Value { serde_json::from_slice(&fs::read(copy.join("manifest.json")).expect("read")).expect("JSON") };
    let names: Vec<String> = {
        copy_dir(&whole, &copy);
        let listed = manifest();
        fs::remove_dir_all(&copy).expect("removed");
        listed["files"].as_array().expect("files").iter().map(|file| text(file, "/name").to_owned()).collect()
    };
    assert!(names.iter().any(|name| name.ends_with(".snapshot")) && names.iter().any(|name| name.ends_with(".wal")));
    let change = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(copy.join(name)).expect("read");
        change(&mut bytes);
        fs::write(copy.join(name), bytes).expect("written");
    };
    let tell = |field: &str, value: Value| {
        let mut manifest = manifest();
        manifest[field] = value;
        fs::write(copy.join("manifest.json"), manifest.to_string()).expect("written");
    };
    type Row<'a> = (String, Box<dyn Fn() + 'a>);
    let mut rows: Vec<Row<'_>> = Vec::new();
    let (change, folder) = (&change, &copy);
    let flip = |bytes: &mut Vec<u8>| match bytes.last_mut() {
        Some(byte) => *byte ^= 1,
        None => bytes.push(1),
    };
    for name in &names {
        rows.push((format!("a byte of {name}"), Box::new(move || change(name, &flip))));
        rows.push((format!("{name} is longer"), Box::new(move || change(name, &|bytes| bytes.push(0)))));
        rows.push((format!("{name} is gone"), Box::new(move || fs::remove_file(folder.join(name)).expect("removed"))));
    }
    rows.push(("manifest.json".into(), Box::new(|| fs::remove_file(copy.join("manifest.json")).expect("removed"))));
    rows.push(("manifest.json".into(), Box::new(|| fs::write(copy.join("manifest.json"), "{}").expect("written"))));
    rows.push(("digest".into(), Box::new(|| tell("digest", "0".repeat(64).into()))));
    rows.push(("LSN".into(), Box::new(|| tell("lsn", (int(&manifest(), "/lsn") + 1).into()))));
    rows.push(("LSN".into(), Box::new(|| tell("lsn", (int(&manifest(), "/lsn") - 1).into()))));
    rows.push(("epoch".into(), Box::new(|| tell("epoch", 0.into()))));
    rows.push(("".into(), Box::new(|| tell("directory", "0".repeat(32).into()))));
    rows.push(("identity".into(), Box::new(|| tell("instance", "x".into()))));
    rows.push(("format 3".into(), Box::new(|| tell("format", 3.into()))));
    rows.push(("stranger".into(), Box::new(|| fs::write(copy.join("stranger"), "x").expect("written"))));
    rows.push((
        "not in the manifest".into(),
        Box::new(|| fs::write(copy.join("00000000000099999999.wal"), "x").expect("written")),
    ));
    for (word, damage) in &rows {
        copy_dir(&whole, &copy);
        damage();
        let refused = restore(&copy, &out);
        assert_eq!(refused.status.code(), Some(1), "{word}: {}", output_text(&refused));
        let named = word.split(' ').find(|word| names.iter().any(|name| name == word)).unwrap_or(word);
        assert!(
            output_text(&refused).contains(named) && !output_text(&refused).contains("panicked"),
            "{word}: {}",
            output_text(&refused)
        );
        assert!(!out.exists(), "{word}: something is left");
        fs::remove_dir_all(&copy).expect("removed");
        cases.one();
    }
    // A stream that ends early, at any position.
    let tar = root.join("whole.tar");
    assert!(backup(&place.data(), &tar, &[]).status.success());
    let bytes = fs::read(&tar).expect("read");
    let mut chance = Chance::from_env("BACKUP_SEED");
    for _ in 0..12 {
        let cut = chance.below(bytes.len() - 2_048);
        fs::write(root.join("cut.tar"), &bytes[..cut]).expect("written");
        let refused = restore(&root.join("cut.tar"), &out);
        assert_eq!(refused.status.code(), Some(1), "{cut} bytes of {}: {}", bytes.len(), output_text(&refused));
        assert!(!out.exists(), "{cut}: something is left");
        cases.one();
    }
    // Wrong commands, not damage.
    fs::create_dir(&out).expect("made");
    fs::write(out.join("mine"), "x").expect("written");
    for (from, out) in [(&tar, &out), (&root.join("nowhere"), &root.join("out-2"))] {
        let refused = restore(from, out);
        assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
        cases.one();
    }
    assert_eq!(fs::read(out.join("mine")).expect("it still exists"), b"x");
}

/// Ends a verb with SIGKILL after that time, if it still runs; returns whether it did.
fn killed_after(args: &[OsString], patience: Duration) -> bool {
    let mut child =
        command().args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("papertape can be run");
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if child.try_wait().expect("a child can be waited for").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let _ = child.kill();
    child.wait().expect("a child can be waited for").code().is_none()
}

#[test]
fn a_kill_leaves_a_sound_source_and_no_half_directory() {
    let cases = Cases::of("backups and restores killed");
    let Stopped { place, .. } = stopped();
    let (data, root) = (place.data(), place.root().to_owned());
    let (before, expected) = (evidence(&data), digest_of(&data));
    let mut chance = Chance::from_env("BACKUP_SEED");
    let whole = root.join("whole.tar");
    let begun = Instant::now();
    assert!(backup(&data, &whole, &[]).status.success());
    let took_us = begun.elapsed().as_micros() as usize;
    let (mut killed, mut half) = (0, 0);
    for round in 0..16 {
        let out = root.join(format!("killed-{round}{}", if round % 2 == 0 { "" } else { ".tar" }));
        let args = [OsString::from("backup"), data.clone().into(), "--out".into(), out.clone().into()];
        killed += u32::from(killed_after(&args, Duration::from_micros(chance.below(took_us) as u64)));
        assert_eq!(evidence(&data), before, "the source is unchanged");
        let again: PathBuf = root.join(format!("again-{round}"));
        match out.exists() {
            true => assert!(restore(&out, &again).status.success(), "a backup with its final name is complete"),
            // The next attempt removes the partial files of this one.
            false => assert!(backup(&data, &out, &[]).status.success()),
        }
        cases.one();
    }
    for round in 0..16 {
        let out = root.join(format!("half-{round}"));
        let args = [OsString::from("restore"), whole.clone().into(), "--out".into(), out.clone().into()];
        killed += u32::from(killed_after(&args, Duration::from_micros(chance.below(2 * took_us) as u64)));
        if !out.exists() || fs::read_dir(&out).expect("a folder").next().is_none() {
            cases.one();
            continue;
        }
        let verified = log_of(&out, "verify");
        if verified.status.success() {
            assert_eq!(digest_of(&out), expected, "a directory that starts is complete");
        } else {
            half += 1;
            let mut serve = command();
            serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&out);
            let output = tests::server::Starting::spawn(serve).ready().err().expect("a partial restore does not start");
            assert!(!output.contains("panicked"), "{output}");
        }
        cases.one();
    }
    println!("{killed} processes were killed, {half} partial restores were left");
    assert!(killed > 0, "some were in the middle");
}
