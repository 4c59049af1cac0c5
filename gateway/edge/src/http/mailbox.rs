//! Which texts are addresses that mail goes to (gateway/docs/integrations.md §2): a subset of RFC 5321 that every mailer
//! takes, `name@domain`. Quoted names, addresses of machines in brackets, comments and lists are none of it.

/// Bounds of RFC 5321 §4.5.3.1 and RFC 1035 §2.3.4, in bytes.
const NAME_MAX: usize = 64;
const DOMAIN_MAX: usize = 254;
const LABEL_MAX: usize = 63;

/// What a name has besides letters and digits (RFC 5322 §3.2.3).
const NAME_SIGNS: &str = "!#$%&'*+-/=?^_`{|}~";

/// Whether mail can go to this text.
pub fn is_mailbox(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(name, domain)| is_name(name) && is_domain(domain))
}

fn is_name(name: &str) -> bool {
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(|c| c.is_alphanumeric() || NAME_SIGNS.contains(c));
    name.len() <= NAME_MAX && name.split('.').all(is_atom)
}

fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        let is_inside = label.chars().all(|c| c.is_alphanumeric() || c == '-');
        !label.is_empty() && label.len() <= LABEL_MAX && is_inside && !label.starts_with('-') && !label.ends_with('-')
    };
    domain.len() <= DOMAIN_MAX && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_mailboxes() {
        let long = |name: usize, domain: usize| format!("{}@{}", "n".repeat(name), "d".repeat(domain));
        let deep = |labels: usize| format!("a@{}", vec!["bcdefgh"; labels].join("."));
        let (name, too_long_name, label) = (long(64, 1), long(65, 1), long(1, 63));
        let (too_long_label, domain, too_long_domain) = (long(1, 64), deep(31), deep(32));
        let rows = [
            ("trader@example.net", true),
            ("a@b", true),
            ("first.last+tag@mail.example.net", true),
            ("!#$%&'*+-/=?^_`{|}~@example.net", true),
            ("dörte@sörensen.example", true),
            ("7@7.example", true),
            (name.as_str(), true),
            (label.as_str(), true),
            (domain.as_str(), true),
            ("", false),
            ("@", false),
            ("trader", false),
            ("@example.net", false),
            ("trader@", false),
            ("\"<x>\"@y.z", false),
            ("\"tra der\"@example.net", false),
            ("a@[127.0.0.1]", false),
            ("a@[IPv6:::1]", false),
            ("a@b\r\nBcc: c@d.example", false),
            ("a@b\nBcc: c", false),
            ("a\r\nBcc: c@d.example", false),
            ("a@b.example\u{0}", false),
            (" a@b.example", false),
            ("a@b.example ", false),
            ("a@b .example", false),
            ("a,c@b.example", false),
            ("a@b.example,c@d.example", false),
            ("a@b@c.example", false),
            ("<a@b.example>", false),
            ("Trader <a@b.example>", false),
            ("a(comment)@b.example", false),
            (".a@b.example", false),
            ("a.@b.example", false),
            ("a..c@b.example", false),
            ("a@.b.example", false),
            ("a@b.example.", false),
            ("a@b..example", false),
            ("a@-b.example", false),
            ("a@b-.example", false),
            ("a@b_c.example", false),
            ("a\u{200b}@b.example", false),
            ("a@b\u{2028}.example", false),
            (too_long_name.as_str(), false),
            (too_long_label.as_str(), false),
            (too_long_domain.as_str(), false),
        ];
        for (text, expected) in rows {
            assert_eq!(is_mailbox(text), expected, "{text:?}");
        }
        println!("mailboxes: {} cases", rows.len());
    }
}
