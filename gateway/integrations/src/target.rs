//! Which addresses alerts may go to (gateway/docs/integrations.md §4): the scheme, the host, and every IP address that
//! the host has at the moment of a connection.

use crate::settings::Settings;
use ahash::AHashMap;
use edge::api::integrations::port::Waiting;
use engine::id::UserId;
use engine::user::alerts::Channel;
use parking_lot::Mutex;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Look-ups of the system at the same time: each has a thread.
const LOOK_UPS_MAX: usize = 64;
/// Those of one user: hosts whose look-ups hang leave places for other users.
const LOOK_UPS_OF_USER_MAX: usize = 2;
/// Longest wait for the addresses of a host when a target is added.
const RESOLVES_WITHIN: Duration = Duration::from_secs(5);

/// The addresses of a host, for a user.
pub type LookUp = Arc<dyn Fn(UserId, String) -> Waiting<io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The addresses that the system gives.
pub fn system() -> LookUp {
    bounded(|host| Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
}

/// Look-ups that block, each on a thread. One cannot be ended, so it keeps its place until the system answers, also if
/// no delivery waits for it any more.
fn bounded(look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> LookUp {
    let (places, look_up) = (Arc::new(LookUpPlaces::default()), Arc::new(look_up));
    Arc::new(move |user, host| {
        let (places, look_up) = (places.clone(), look_up.clone());
        Box::pin(async move {
            let place = places.take(user).await?;
            let found = tokio::task::spawn_blocking(move || {
                let found = look_up(&host);
                drop(place);
                found
            });
            found.await.map_err(io::Error::other)?
        })
    })
}

/// Places of look-ups: among those of a user, and among all.
struct LookUpPlaces {
    all: Arc<Semaphore>,
    /// Of users that hold one or wait for one.
    users: Mutex<AHashMap<UserId, Arc<Semaphore>>>,
}

impl Default for LookUpPlaces {
    fn default() -> LookUpPlaces {
        LookUpPlaces { all: Arc::new(Semaphore::new(LOOK_UPS_MAX)), users: Mutex::default() }
    }
}

impl LookUpPlaces {
    /// First the user's own: one that waits for it takes no place of others.
    async fn take(&self, user: UserId) -> io::Result<[OwnedSemaphorePermit; 2]> {
        let own = {
            let mut users = self.users.lock();
            users.retain(|_, places| Arc::strong_count(places) > 1);
            users.entry(user).or_insert_with(|| Arc::new(Semaphore::new(LOOK_UPS_OF_USER_MAX))).clone()
        };
        let own = own.acquire_owned().await.map_err(io::Error::other)?;
        Ok([own, self.all.clone().acquire_owned().await.map_err(io::Error::other)?])
    }
}

/// A host has an address that alerts do not go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPublic;

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its address is not public")
    }
}

impl Error for NotPublic {}

/// The rules for addresses.
#[derive(Clone)]
pub struct Rules {
    chat_hosts: Arc<[String]>,
    allow_private: bool,
    look_up: LookUp,
    found: Arc<Found>,
}

/// Checked addresses of the hosts to which requests are in flight.
#[derive(Default)]
struct Found(Mutex<AHashMap<String, Vec<Arc<[IpAddr]>>>>);

/// The addresses of a host, for one request. Its connections go to these.
pub struct Held {
    found: Arc<Found>,
    host: String,
    addresses: Arc<[IpAddr]>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut all = self.found.0.lock();
        if let Some(of_host) = all.get_mut(&self.host) {
            of_host.retain(|held| !Arc::ptr_eq(held, &self.addresses));
            if of_host.is_empty() {
                all.remove(&self.host);
            }
        }
    }
}

impl Rules {
    pub fn new(settings: &Settings, look_up: LookUp) -> Rules {
        Rules {
            chat_hosts: settings.chat_hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            allow_private: settings.allow_private_targets,
            look_up,
            found: Arc::default(),
        }
    }

    /// The address of a target as far as its text decides. A host that is an IP address is checked here: it is never
    /// resolved.
    ///
    /// # Errors
    /// The reason, as a sentence.
    pub fn read(&self, channel: Channel, text: &str) -> Result<Url, &'static str> {
        // The parser would take them away, or encode them.
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("url must not hold blanks or control characters.");
        }
        let url = Url::parse(text).map_err(|_| "url is not an address.")?;
        let host = url.host_str().unwrap_or_default();
        if host.is_empty() {
            return Err("url names no host.");
        }
        if url.port() == Some(0) {
            return Err("url must not name port 0.");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("url must not hold a user or a password.");
        }
        let is_literal = literal(host);
        match channel {
            Channel::Chat => {
                // A relay on the own machine has no certificate.
                let is_relay = self.allow_private && url.scheme() == "http";
                if url.scheme() != "https" && !is_relay {
                    return Err("url must begin with https.");
                }
                if !self.chat_hosts.iter().any(|known| known == host) {
                    return Err("url is not on a host that this server allows for chats.");
                }
            }
            Channel::Webhook if !matches!(url.scheme(), "http" | "https") => {
                return Err("url must begin with http or https.");
            }
            Channel::Webhook => {}
        }
        match is_literal {
            Some(ip) if !self.allows(ip) => Err("url has an address that is not public."),
            _ => Ok(url),
        }
    }

    /// As [`Rules::read`], and every address that the host has now.
    ///
    /// # Errors
    /// The reason, as a sentence.
    pub async fn check(&self, user: UserId, channel: Channel, text: &str) -> Result<Url, &'static str> {
        let url = self.read(channel, text)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        // Hosts of chats are named by the operator; each connection is checked nevertheless.
        if channel == Channel::Chat || literal(&host).is_some() {
            return Ok(url);
        }
        match tokio::time::timeout(RESOLVES_WITHIN, self.resolve(user, host)).await {
            Ok(Ok(_)) => Ok(url),
            Ok(Err(error)) if error.downcast_ref::<NotPublic>().is_some() => {
                Err("url has an address that is not public.")
            }
            _ => Err("The host of url cannot be resolved."),
        }
    }

    fn allows(&self, ip: IpAddr) -> bool {
        self.allow_private || is_public(ip)
    }

    /// All addresses of a host; none of them if one is not allowed.
    async fn resolve(&self, user: UserId, host: String) -> Result<Vec<IpAddr>, Box<dyn Error + Send + Sync>> {
        let found = (self.look_up)(user, host).await?;
        if found.is_empty() {
            return Err("it has no address".into());
        }
        if found.iter().all(|ip| self.allows(*ip)) { Ok(found) } else { Err(NotPublic.into()) }
    }

    /// The addresses for a request of a user to a host; `None` for a host that is an address.
    ///
    /// # Errors
    /// The host has none, or one that is not allowed: [`NotPublic`].
    pub async fn hold(&self, user: UserId, host: &str) -> Result<Option<Held>, Box<dyn Error + Send + Sync>> {
        if literal(host).is_some() {
            return Ok(None);
        }
        let host = host.to_owned();
        let addresses: Arc<[IpAddr]> = self.resolve(user, host.clone()).await?.into();
        self.found.0.lock().entry(host.clone()).or_default().push(addresses.clone());
        Ok(Some(Held { found: self.found.clone(), host, addresses }))
    }
}

/// The client of requests looks up nothing itself: it has no user, and there must be no second resolution after the
/// check.
impl Resolve for Rules {
    fn resolve(&self, name: Name) -> Resolving {
        let held = self.found.0.lock().get(name.as_str()).and_then(|of_host| of_host.last().cloned());
        let found = held.ok_or_else(|| "no request to this host is in flight".into()).map(|held| {
            let addresses: Vec<SocketAddr> = held.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
            Box::new(addresses.into_iter()) as Addrs
        });
        Box::pin(std::future::ready(found))
    }
}

/// The IP address that a host of an address is, if it is one.
fn literal(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    inner.parse().ok()
}

/// Whether an address is one of the public internet: of no special use, and no form of an address of version 4 in one of
/// version 6.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !SPECIAL_V4.iter().any(|(net, bits)| in_v4(ip, *net, *bits)),
        // Only 2000::/3 is global unicast.
        IpAddr::V6(ip) => in_v6(ip, [0x2000, 0], 3) && !SPECIAL_V6.iter().any(|(net, bits)| in_v6(ip, *net, *bits)),
    }
}

/// Networks of special use (RFC 6890 and its registry).
const SPECIAL_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The same in 2000::/3: protocols and tunnels of 2001::/23, documentation, 6to4.
const SPECIAL_V6: [([u16; 2], u32); 4] =
    [([0x2001, 0], 23), ([0x2001, 0x0db8], 32), ([0x2002, 0], 16), ([0x3fff, 0], 20)];

fn in_v4(ip: Ipv4Addr, net: [u8; 4], bits: u32) -> bool {
    let shift = 32 - bits;
    ip.to_bits() >> shift == u32::from_be_bytes(net) >> shift
}

fn in_v6(ip: Ipv6Addr, [first, second]: [u16; 2], bits: u32) -> bool {
    let shift = 128 - bits;
    let net = u128::from(first) << 112 | u128::from(second) << 96;
    ip.to_bits() >> shift == net >> shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    const USER: UserId = UserId(1);

    fn settings(allow_private_targets: bool) -> Settings {
        Settings {
            chat_hosts: vec!["discord.com".to_owned(), "127.0.0.1".to_owned()],
            allow_private_targets,
            first_retry: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            signature_header: "X-Svc-Signature".to_owned(),
            mail: None,
        }
    }

    /// A host by its addresses.
    fn names(rows: &[(&str, &[&str])]) -> LookUp {
        let rows: HashMap<String, Vec<IpAddr>> = rows
            .iter()
            .map(|(host, ips)| ((*host).to_owned(), ips.iter().map(|ip| ip.parse().expect("an address")).collect()))
            .collect();
        Arc::new(move |_, host| {
            let found = rows.get(&host).cloned().ok_or_else(|| io::Error::other("unknown"));
            Box::pin(std::future::ready(found))
        })
    }

    #[test]
    fn only_public_addresses_are_public() {
        let rows = [
            ("8.8.8.8", true),
            ("1.1.1.1", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("2606:4700::1111", true),
            ("2a00:1450:4001::1", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.192", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("224.0.0.1", false),
            ("239.255.255.255", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:8.8.8.8", false),
            ("::8.8.8.8", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:0:4136:e378::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::", false),
            ("3fff::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ];
        for (text, expected) in rows {
            assert_eq!(is_public(text.parse().expect("an address")), expected, "{text}");
        }
        println!("addresses: {} cases", rows.len());
    }

    #[test]
    fn texts_of_targets_are_checked() {
        use Channel::{Chat, Webhook};
        let rules = |allow| Rules::new(&settings(allow), names(&[]));
        // (channel, text, allowed, allowed where private targets are)
        let rows = [
            (Chat, "https://discord.com/api/webhooks/1/a", true, true),
            (Chat, "https://DISCORD.com/api", true, true),
            (Chat, "http://discord.com/api", false, true),
            (Chat, "https://discord.com.evil.example/api", false, false),
            (Chat, "https://evil.example/discord.com", false, false),
            (Chat, "https://discord.com@evil.example/", false, false),
            (Chat, "https://user:pass@discord.com/", false, false),
            (Chat, "https://127.0.0.1/api", false, true),
            (Webhook, "https://hooks.example.net/a", true, true),
            (Webhook, "http://hooks.example.net:8080/a?b=c", true, true),
            (Webhook, "ftp://hooks.example.net/a", false, false),
            (Webhook, "file:///etc/passwd", false, false),
            (Webhook, "javascript:alert(1)", false, false),
            (Webhook, "hooks.example.net/a", false, false),
            (Webhook, "https://", false, false),
            (Webhook, "https://user@hooks.example.net/", false, false),
            (Webhook, "http://127.0.0.1/", false, true),
            (Webhook, "http://127.1/", false, true),
            (Webhook, "http://2130706433/", false, true),
            (Webhook, "http://0x7f.0.0.1/", false, true),
            (Webhook, "http://0177.0.0.1/", false, true),
            (Webhook, "http://[::1]/", false, true),
            (Webhook, "http://[::ffff:127.0.0.1]/", false, true),
            (Webhook, "http://169.254.169.254/latest", false, true),
            (Webhook, "http://8.8.8.8/", true, true),
            (Webhook, "http://[2606:4700::1111]/", true, true),
            (Webhook, "https://hooks.example.net:65535/a%20b", true, true),
            (Webhook, "https://hooks.example.net:0/", false, false),
            (Webhook, "https://hooks.example.net:00000/", false, false),
            (Webhook, "http://127.0.0.1:0/", false, false),
            (Chat, "https://discord.com:0/api", false, false),
            (Webhook, " https://hooks.example.net/", false, false),
            (Webhook, "https://hooks.example.net/ ", false, false),
            (Webhook, "https://hooks.example.net/\n", false, false),
            (Webhook, "https://hooks.example.net/a b", false, false),
            (Webhook, "https://hooks.example.net/\r\nX: y", false, false),
            (Webhook, "https://hooks.exa\tmple.net/", false, false),
            (Webhook, "ht\ntps://hooks.example.net/", false, false),
            (Webhook, "https://hooks.example.net/\u{a0}", false, false),
            (Webhook, "https://hooks.example.net/\u{2028}", false, false),
            (Webhook, "https://hooks.example.net/\u{85}", false, false),
            (Webhook, "https://hooks.example.net/\u{0}", false, false),
            (Chat, "\u{1}https://discord.com/api", false, false),
            (Webhook, "", false, false),
            (Webhook, "\u{0}", false, false),
        ];
        for (channel, text, plain, private) in rows {
            assert_eq!(rules(false).read(channel, text).is_ok(), plain, "{text}");
            assert_eq!(rules(true).read(channel, text).is_ok(), private, "{text} with private targets");
        }
        println!("texts of targets: {} cases", 2 * rows.len());
    }

    #[test]
    fn every_address_of_a_host_must_be_public() {
        let rows: [(&str, &[&str]); 6] = [
            ("public.example", &["8.8.8.8", "2606:4700::1111"]),
            ("private.example", &["10.0.0.1"]),
            ("both.example", &["8.8.8.8", "127.0.0.1"]),
            ("mapped.example", &["::ffff:10.0.0.1"]),
            ("nat64.example", &["64:ff9b::a00:1"]),
            ("empty.example", &[]),
        ];
        let runtime = host::runtime::runtime().expect("a runtime");
        let mut cases = 0;
        for (allow, expected) in
            [(false, [true, false, false, false, false, false]), (true, [true, true, true, true, true, false])]
        {
            let rules = Rules::new(&settings(allow), names(&rows));
            for ((host, _), expected) in rows.iter().zip(expected) {
                let url = format!("https://{host}/hook");
                assert_eq!(
                    runtime.block_on(rules.check(USER, Channel::Webhook, &url)).is_ok(),
                    expected,
                    "{host} {allow}"
                );
                assert_eq!(runtime.block_on(rules.hold(USER, host)).is_ok(), expected, "{host} {allow}");
                cases += 2;
            }
            assert!(runtime.block_on(rules.check(USER, Channel::Webhook, "https://unknown.example/")).is_err());
        }
        println!("hosts: {cases} cases");
    }

    /// A name that is public when the target is added, and private when it is connected to.
    #[test]
    fn a_second_answer_is_checked_too() {
        let answers = Mutex::new(vec!["127.0.0.1", "8.8.8.8"]);
        let look_up: LookUp = Arc::new(move |_, _| {
            let next = answers.lock().pop().expect("two answers");
            Box::pin(std::future::ready(Ok(vec![next.parse().expect("an address")])))
        });
        let rules = Rules::new(&settings(false), look_up);
        let runtime = host::runtime::runtime().expect("a runtime");
        assert!(runtime.block_on(rules.check(USER, Channel::Webhook, "https://rebind.example/")).is_ok());
        let second = runtime.block_on(rules.hold(USER, "rebind.example"));
        assert!(second.err().is_some_and(|error| error.downcast_ref::<NotPublic>().is_some()));
    }

    /// A connection goes to the addresses that were checked for its request, and to no others.
    #[test]
    fn connections_go_to_checked_addresses() {
        let answers = Mutex::new(vec!["8.8.4.4", "8.8.8.8"]);
        let look_up: LookUp = Arc::new(move |_, _| {
            let next = answers.lock().pop().expect("two answers");
            Box::pin(std::future::ready(Ok(vec![next.parse().expect("an address")])))
        });
        let rules = Rules::new(&settings(false), look_up);
        let runtime = host::runtime::runtime().expect("a runtime");
        let connects = |host: &str| {
            let name: Name = host.parse().expect("a name");
            let found = runtime.block_on(Resolve::resolve(&rules, name)).ok()?;
            Some(found.map(|address| address.ip().to_string()).collect::<Vec<_>>())
        };
        let hold = |host| runtime.block_on(rules.hold(USER, host)).expect("public");
        assert_eq!(connects("a.example"), None, "no request is in flight");
        let first = hold("a.example");
        assert_eq!(connects("a.example"), Some(vec!["8.8.8.8".to_owned()]));
        assert_eq!(connects("b.example"), None);
        let second = hold("a.example");
        drop(first);
        assert_eq!(connects("a.example"), Some(vec!["8.8.4.4".to_owned()]));
        drop(second);
        assert_eq!((connects("a.example"), rules.found.0.lock().len()), (None, 0));
        for literal in ["8.8.8.8", "[2606:4700::1111]"] {
            assert!(hold(literal).is_none(), "{literal}");
        }
    }

    /// Look-ups that hang: those of a user leave places for others, and a place is free when its look-up ends.
    #[test]
    fn hosts_of_a_user_that_hang_stop_no_other_user() {
        let (end, ends) = mpsc::channel::<()>();
        let ends = Mutex::new(ends);
        let look_up = bounded(move |host| {
            if host == "hangs.example" {
                // Until the sender is dropped.
                let _ = ends.lock().recv();
            }
            Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
        });
        let runtime = host::runtime::runtime().expect("a runtime");
        let ask = |user, host: &str| look_up(UserId(user), host.to_owned());
        runtime.block_on(async {
            let mut waits = tokio::task::JoinSet::new();
            for _ in 0..2 * LOOK_UPS_MAX {
                waits.spawn(ask(1, "hangs.example"));
            }
            tokio::task::yield_now().await;
            for user in [2, 3, 2] {
                assert!(ask(user, "works.example").await.is_ok(), "user {user}");
            }
            // One that is not waited for any more keeps its place.
            waits.abort_all();
            while waits.join_next().await.is_some() {}
            let mut own = ask(1, "works.example");
            assert!(own.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(ask(2, "works.example").await.is_ok());
            drop(end);
            assert!(own.await.is_ok());
        });
        println!("look-ups: {} cases", 6);
    }
}
