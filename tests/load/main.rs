//! The load client as a user runs it: `papertape load` against a real server.
//!
//! Nothing is asserted about speed, with one exception: a server that is stopped for two seconds shows them.

mod figures;
mod lost;
mod model;
mod refused;

use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tests::binary::command;
use tests::eventually;
use tests::json::list;
use tests::server::{Server, ServerDir, User};

/// A place with users, and their keys file.
pub struct Site {
    pub place: ServerDir,
    pub users: Vec<User>,
    pub keys: PathBuf,
}

impl Site {
    pub fn new(users: usize) -> Site {
        let mut place = ServerDir::new();
        place.set("limits", "placements_per_user", "64");
        let users = place.seed(users, "enterprise", "100000");
        let keys = keys_file(&place, "keys.jsonl", users.iter().map(|user| (user.id, user.key.as_str())));
        Site { place, users, keys }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.place.root().join(name)
    }

    /// `papertape load` of these users.
    pub fn load(&self, url: &str, args: &[&str]) -> Command {
        let mut load = command();
        load.arg("load").arg("--url").arg(url).arg("--keys").arg(&self.keys).args(args);
        load.current_dir(self.place.root()).stdout(Stdio::piped()).stderr(Stdio::piped());
        load
    }

    /// Runs it to its end; returns its output and its JSON file.
    #[track_caller]
    pub fn load_well(&self, server: &Server, args: &[&str]) -> (String, Value) {
        let mut load = self.load(&url(server), args);
        let output = load.arg("--json").arg(self.file("run.json")).output().expect("papertape can be run");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", output_text(&output));
        (String::from_utf8_lossy(&output.stdout).into_owned(), self.figures())
    }

    /// The JSON file of the last run.
    pub fn figures(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file("run.json")).expect("the run has written it")).expect("JSON")
    }

    /// Runs `--check` on a JSON file; returns whether all is equal, and the output.
    pub fn check(&self, server: &Server, file: &Path) -> (bool, String) {
        let mut flag = OsString::from("--check=");
        flag.push(file);
        let output = self.load(&url(server), &[]).arg(flag).output().expect("papertape can be run");
        (output.status.success(), output_text(&output))
    }

    /// Waits until the server has that many orders of the first user.
    pub fn wait_for_orders(&self, server: &Server, count: usize) {
        let mut client = server.with_key(&self.users[0].key);
        eventually("the load to place orders", || {
            let page = client.get(&format!("/v1/orders?limit={count}")).expect(200);
            (list(&page, "/orders").len() >= count).then_some(())
        });
    }
}

pub fn url(server: &Server) -> String {
    format!("http://{}", server.address())
}

pub fn keys_file<'a>(place: &ServerDir, name: &str, users: impl Iterator<Item = (i64, &'a str)>) -> PathBuf {
    let path = place.root().join(name);
    let line = |(id, key)| format!("{{\"user_id\":{id},\"api_key\":\"{key}\",\"tier\":\"enterprise\"}}\n");
    fs::write(&path, users.map(line).collect::<String>()).expect("the keys can be written");
    path
}

pub fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A running client; killed when a test fails before its end.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(mut load: Command) -> Running {
        Running(Some(load.spawn().expect("papertape can be run")))
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().expect("it has not ended").id()
    }

    pub fn ended(mut self) -> Output {
        self.0.take().expect("it ends once").wait_with_output().expect("a child can be waited for")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
