//! Mail (gateway/docs/integrations.md §2): by SMTP, or as one file for each message. Headers are made by `lettre` from
//! fixed texts and from addresses that it has parsed, so no text from outside can begin a header.

use crate::settings::{Mail, MailBy, Security};
use edge::api::integrations::message::Message;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message as Letter};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest text of an answer of a mail server in an error, in characters.
const ANSWER_CHARS_MAX: usize = 120;

/// End of the name of a file that is being written.
const PARTIAL: &str = ".partial";

/// Sends mail.
pub struct Mailer {
    by: By,
    from: Mailbox,
    timeout: Duration,
}

enum By {
    Folder(PathBuf),
    Smtp(Box<AsyncSmtpTransport<Tokio1Executor>>),
}

impl Mailer {
    /// # Errors
    /// The address of the sender is not one, the roots of trust cannot be read, or the folder cannot be made.
    pub fn new(mail: &Mail, timeout: Duration) -> Result<Mailer, String> {
        let address: Address = mail.from.parse().map_err(|error| format!("email.from: {error}"))?;
        let by = match &mail.by {
            MailBy::Folder(dir) => {
                prepare(dir).map_err(|error| format!("email.smtp_url: {}: {error}", dir.display()))?;
                By::Folder(dir.clone())
            }
            MailBy::Smtp { host, port, security } => {
                let builder = match security {
                    Security::Plain => Ok(AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host.as_str())),
                    Security::StartTls => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host),
                    Security::Tls => AsyncSmtpTransport::<Tokio1Executor>::relay(host),
                };
                let builder = builder.map_err(|error| format!("email.smtp_url: {error}"))?;
                let mut builder = builder.port(*port).timeout(Some(timeout));
                if let Some((user, password)) = &mail.credentials {
                    builder = builder.credentials(Credentials::new(user.clone(), password.expose().to_owned()));
                }
                By::Smtp(Box::new(builder.build()))
            }
        };
        Ok(Mailer { by, from: Mailbox::new(None, address), timeout })
    }

    /// Sends a message to an address. Returns its `Message-ID` without brackets, which is the same for each attempt.
    ///
    /// # Errors
    /// The reason, in words.
    pub async fn send(&self, to: &str, message: &Message) -> Result<String, String> {
        let id = format!("{}@{}", message.id_text(), self.from.email.domain());
        let letter = self.letter(to, message, &id)?;
        match &self.by {
            By::Folder(dir) => {
                let (dir, name, bytes) = (dir.clone(), message.id_text(), letter.formatted());
                let written = tokio::task::spawn_blocking(move || write_whole(&dir, &name, &bytes)).await;
                // A panic was logged by its hook.
                let written = written.unwrap_or_else(|_| Err(io::Error::other("the write was broken off")));
                written.map_err(|error| format!("the mail cannot be written: {error}"))?;
            }
            By::Smtp(smtp) => match tokio::time::timeout(self.timeout, smtp.send(letter)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(reason(&error)),
                Err(_) => return Err(format!("the mail server did not answer within {} ms", self.timeout.as_millis())),
            },
        }
        Ok(id)
    }

    fn letter(&self, to: &str, message: &Message, id: &str) -> Result<Letter, String> {
        let address: Address = to.parse().map_err(|_| "the address of the account is not valid".to_owned())?;
        // No automatic answers, please (RFC 3834).
        let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
        Letter::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, address))
            .subject(message.subject())
            .message_id(Some(format!("<{id}>")))
            .date_now()
            .raw_header(automatic)
            .header(ContentType::TEXT_PLAIN)
            .body(message.mail())
            .map_err(|error| format!("the mail cannot be made: {error}"))
    }
}

/// Why a mail server did not take a mail; what it said is cut.
fn reason(error: &lettre::transport::smtp::Error) -> String {
    if error.is_timeout() {
        return "the mail server did not answer in time".to_owned();
    }
    let said: String = error.to_string().chars().filter(|c| !c.is_control()).take(ANSWER_CHARS_MAX).collect();
    match error.status() {
        Some(code) => format!("the mail server answered {code}: {said}"),
        None => format!("the mail server did not take it: {said}"),
    }
}

/// Makes the folder of mails, for its owner alone, and removes what the end of a process has left unfinished.
fn prepare(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(PARTIAL)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Writes a file that is whole whenever it is seen: under another name first. A second one of the same name replaces it.
fn write_whole(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let (partial, path) = (dir.join(format!(".{name}{PARTIAL}")), dir.join(format!("{name}.eml")));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&partial, &path)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use edge::http::mailbox::is_mailbox;
    use engine::id::UserId;
    use engine::time::Timestamp;

    use std::os::unix::fs::PermissionsExt as _;

    const NOW: Timestamp = Timestamp(1_790_932_445_000_000);

    fn mail(dir: &Path) -> Mail {
        Mail { by: MailBy::Folder(dir.to_owned()), from: "alerts@example.net".to_owned(), credentials: None }
    }

    #[test]
    fn a_mail_is_one_whole_file_however_often_it_is_sent() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let out = dir.path().join("out");
        fs::create_dir(&out).expect("a folder");
        fs::write(out.join(".1.partial"), "half").expect("a file");
        let mailer = Mailer::new(&mail(&out), Duration::from_secs(10)).expect("a folder");
        let runtime = host::runtime::runtime().expect("a runtime");
        let message = Message::test(UserId(7), [0x42; 16], NOW);
        for _ in 0..3 {
            let id = runtime.block_on(mailer.send("trader@example.net", &message));
            assert_eq!(id.as_deref(), Ok("42424242-4242-4242-4242-424242424242@example.net"));
        }
        let files: Vec<String> = fs::read_dir(&out)
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(files, ["42424242-4242-4242-4242-424242424242.eml"]);
        let mode = fs::metadata(out.join(&files[0])).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(out.join(&files[0])).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        for line in [
            "From: alerts@example.net",
            "To: trader@example.net",
            "Subject: A notice of the server",
            "Message-ID: <42424242-4242-4242-4242-424242424242@example.net>",
            "Auto-Submitted: auto-generated",
            "Content-Type: text/plain; charset=utf-8",
        ] {
            assert!(head.lines().any(|found| found == line), "{line}\n{head}");
        }
        assert!(body.starts_with("This is a test"), "{body}");
    }

    #[test]
    fn addresses_cannot_begin_a_header() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mailer = Mailer::new(&mail(dir.path()), Duration::from_secs(10)).expect("a folder");
        let runtime = host::runtime::runtime().expect("a runtime");
        let message = Message::test(UserId(7), [1; 16], NOW);
        let rows = [
            "trader@example.net\r\nBcc: other@example.net",
            "trader@example.net\nX: y",
            "trader@example.net, other@example.net",
            "<trader@example.net>",
            "Trader <trader@example.net>",
            "trader",
            "@example.net",
            "trader@",
            "tra der@example.net",
            "",
        ];
        for to in rows {
            assert!(runtime.block_on(mailer.send(to, &message)).is_err(), "{to:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 0);
        println!("addresses: {} cases", rows.len());
    }

    /// What the routes show as an address is one that mail goes to.
    #[test]
    fn mail_goes_to_every_mailbox() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mailer = Mailer::new(&mail(dir.path()), Duration::from_secs(10)).expect("a folder");
        let runtime = host::runtime::runtime().expect("a runtime");
        let message = Message::test(UserId(7), [1; 16], NOW);
        let long = format!("{}@{}.{}", "n".repeat(64), "d".repeat(63), ["e"; 95].join("."));
        // (address, whether it is a mailbox)
        let rows = [
            ("trader@example.net", true),
            ("a@b", true),
            ("7@7.example", true),
            ("a@127.0.0.1", true),
            ("first.last+tag@mail.example.net", true),
            ("!#$%&'*+-/=?^_`{|}~@example.net", true),
            ("dörte@example.net", true),
            ("dörte@sörensen.example", true),
            ("用户@例子.example", true),
            (long.as_str(), true),
            ("\"<x>\"@y.z", false),
            ("a@[127.0.0.1]", false),
            ("a@b\r\nBcc: c@d.example", false),
        ];
        for (to, expected) in rows {
            assert_eq!(is_mailbox(to), expected, "{to:?}");
            let sent = runtime.block_on(mailer.send(to, &message));
            assert_eq!(sent.is_ok(), expected, "{to:?}: {sent:?}");
        }
        println!("mailboxes: {} cases", rows.len());
    }

    #[test]
    fn a_wrong_sender_or_folder_is_an_error_of_the_start() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let from = |from: &str| Mail { from: from.to_owned(), ..mail(dir.path()) };
        assert!(Mailer::new(&from("no-domain"), Duration::from_secs(1)).is_err());
        assert!(Mailer::new(&from("a@b.example\r\nX: y"), Duration::from_secs(1)).is_err());
        fs::write(dir.path().join("file"), "").expect("a file");
        let inside = mail(&dir.path().join("file").join("out"));
        assert!(Mailer::new(&inside, Duration::from_secs(1)).is_err());
    }
}
