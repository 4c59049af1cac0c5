//! `gateway/docs/nginx.conf` with a real nginx between client and server, both on loopback.

use serde_json::json;
use std::env;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tests::binary::workspace;
use tests::cases::Cases;
use tests::http::{Client, Request, ask_raw};
use tests::json::text;
use tests::server::ServerDir;
use tests::socket::Socket;
use tests::world::{World, limit};

/// The name of the documented file.
const NAME: &str = "trade.example.com";
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// A running nginx; killed when dropped. It runs as one process in the foreground.
struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    /// Runs the documented file, changed by `change`, in front of `upstream`.
    fn start(folder: &Path, upstream: SocketAddr, change: impl FnOnce(String) -> String) -> Nginx {
        fs::create_dir_all(folder).expect("a folder for nginx");
        let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let documented = fs::read_to_string(workspace().join("gateway/docs/nginx.conf")).expect("the documented file");
        let mut site = documented;
        for (from, to) in
            [("listen 80;", format!("listen {address};")), ("server 127.0.0.1:8080;", format!("server {upstream};"))]
        {
            assert_eq!(site.matches(from).count(), 1, "the documented file has {from} once");
            site = site.replace(from, &to);
        }
        let root = folder.display();
        let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {root}/{name};\n"))
            .concat();
        let whole = format!(
            "daemon off;\nmaster_process off;\npid {root}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{}\n}}\n",
            change(site)
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, whole).expect("the file can be written");
        let child = Command::new("nginx")
            .args(["-e", "stderr", "-p"])
            .arg(folder)
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx can be started");
        let mut nginx = Nginx { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(nginx.child.try_wait().expect("a child").is_none(), "nginx ended; its output is above");
            assert!(begun.elapsed() < STARTS_WITHIN, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether nginx is installed; reports if it is not, and fails where clients are required.
fn nginx_is_there() -> bool {
    let found = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    let required = env::var_os("PAPERTAPE_REQUIRE_CLIENTS").is_some_and(|value| !value.is_empty() && value != "0");
    assert!(found || !required, "nginx is required and not installed");
    if !found {
        eprintln!("SKIPPED: nginx is not installed");
    }
    found
}

fn behind_a_proxy(place: &mut ServerDir) {
    place.set("server", "hosts", &format!("[{NAME:?}]"));
    place.set("http", "trusted_proxies", "[\"127.0.0.1\"]");
}

#[test]
fn the_documented_nginx_passes_orders_keys_and_sockets() {
    if !nginx_is_there() {
        return;
    }
    let cases = Cases::of("nginx in front");
    let world = World::start_with(1, behind_a_proxy);
    let (rain, key) = (world.markets.rain.clone(), world.users[0].key.clone());
    let nginx = Nginx::start(&world.place.root().join("nginx"), world.server.address(), |site| site);

    // The key is in a header with an underscore, as the venue's clients send it.
    let mut client = Client::new(nginx.address).with_header("POLY_API_KEY", &key);
    let placed = client.post("/v1/orders", &limit(&rain, "BUY", "0.05", "10")).expect(200);
    let id = placed["order_id"].as_u64().expect("an order");
    assert_eq!(client.get(&format!("/v1/orders/{id}")).expect(200)["order_id"], json!(id));
    assert_eq!(client.delete(&format!("/v1/orders/{id}")).status, 200);
    cases.add(3);

    // Under the public name: nginx passes it on, and server.hosts has it.
    for (name, status) in [(NAME, 200), ("evil.example.com", 421)] {
        let head = format!("GET /v1/account/balance HTTP/1.1\r\nHost: {name}\r\nMKT_API_KEY: {key}\r\n\r\n");
        let answer = ask_raw(nginx.address, head.as_bytes()).expect("an answer");
        assert_eq!(answer.status, status, "{name}: {}", answer.lossy());
        cases.add(1);
    }

    let mut market = Socket::open(nginx.address, "/v1/ws/market", &[]);
    market.send(&json!({"type": "market", "assets_ids": [rain.yes()]}));
    let first = market.json();
    // A subscription begins with a list of books.
    let book = first.get(0).unwrap_or(&first);
    assert_eq!((text(book, "/event_type"), text(book, "/asset_id")), ("book", rain.yes()), "{first}");
    let mut trade = Socket::open(nginx.address, "/v1/ws/trade", &[("POLY_API_KEY", &key)]);
    trade.send(&json!({"id": 1, "op": "order.place", "params": limit(&rain, "BUY", "0.05", "10")}));
    let answer = loop {
        let frame = trade.json();
        if frame["id"] == json!(1) {
            break frame;
        }
    };
    assert_eq!(answer["status"], json!(200), "{answer}");
    cases.add(2);

    // Each line that the file's comments call necessary is necessary.
    let without = Nginx::start(&world.place.root().join("without"), world.server.address(), |site| {
        site.replace("underscores_in_headers on;", "")
    });
    let answer =
        Client::new(without.address).with_header("POLY_API_KEY", &key).send(&Request::get("/v1/account/balance"));
    answer.refused(401, "MISSING_API_KEY");
    cases.add(1);
}
