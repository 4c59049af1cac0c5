//! Rows of alerts: mail, chats and webhooks.

use super::texts;
use crate::config::setting::{Setting, boolean, integer, list, path, text};

pub(super) fn rows() -> Vec<Setting> {
    vec![
        text(
            "email.smtp_url",
            "",
            texts::SMTP_URL,
            "How mail goes out: `smtp://host[:port]` (STARTTLS, required; plain to an address of this machine), \
             `smtps://host[:port]`, or `file:<dir>`, which writes each message as one `.eml` file. Without it no mail goes \
             out, and `POST /v1/integrations/email/test` answers 404 `NOT_FOUND`.",
        ),
        text("email.from", "alerts@localhost", texts::MAIL_ADDRESS, "Address of the sender of mail."),
        text("email.smtp_user", "", texts::PRINTABLE, "User at the mail server; empty: it asks for none."),
        path("email.smtp_password_file", "File with the password of `email.smtp_user`; spaces around it are removed."),
        text(
            "integrations.chat_service",
            "discord",
            texts::CHAT_SERVICE,
            "Name of the chat service in paths: `discord` makes `/v1/integrations/discord`.",
        ),
        list(
            "integrations.chat_hosts",
            &["discord.com", "discordapp.com", "canary.discord.com", "ptb.discord.com"],
            texts::HOST,
            "Hosts that chat webhooks may be on.",
        ),
        boolean(
            "integrations.allow_private_targets",
            false,
            "Alerts may go to private, loopback and link-local addresses, and chats may be on a host with http. For tests, \
             and for servers whose users are trusted with its network.",
        ),
        integer(
            "integrations.first_retry_ms",
            5_000,
            10..=60_000,
            "Pause after the first failed attempt of a delivery; each further pause is four times as long.",
        ),
        integer(
            "integrations.timeout_ms",
            10_000,
            100..=25_000,
            "Longest attempt of a delivery, in milliseconds. A test is one, and ends before `http.request_timeout_ms`.",
        ),
    ]
}
