//! `PUT /v1/admin/addresses/{address}`: what an address is, who its owner is, and what the exchanges may spend of it
//! (gateway/docs/rehearsal.md §4).

use crate::namespace::Reply;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::users::{object, required};
use engine::rehearsal::{AddressKind, DeclaredAddress};
use std::time::Duration;
use wire::fields::Body;
use wire::value::Value;
use wire::write;

/// The route before the address.
pub(crate) const PREFIX: &str = "/v1/admin/addresses/";
/// How long the log may take.
const DONE_WITHIN: Duration = Duration::from_secs(10);
/// Characters of an address: `0x` and 40 digits.
const ADDRESS_CHARS: usize = 42;
const KINDS: [(&str, AddressKind); 4] = [
    ("eoa", AddressKind::Eoa),
    ("proxy", AddressKind::Proxy),
    ("safe", AddressKind::Safe),
    ("deposit", AddressKind::Deposit),
];

/// A declaration of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    address: [u8; 20],
    declared: DeclaredAddress,
}

/// Why nothing is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDeclared {
    /// The log, or the queue to it, has no room.
    Busy,
    /// The log writes a format without declarations.
    NoStore,
    /// There are as many as there can be.
    Full,
}

/// The bytes of an address: `0x` and 40 hexadecimal digits in any case.
fn address(text: &str) -> Option<[u8; 20]> {
    let digits = text.strip_prefix("0x").filter(|_| text.len() == ADDRESS_CHARS)?;
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(bytes)
}

fn shown(address: &[u8; 20]) -> String {
    let digits: String = address.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

impl Declaration {
    /// `named`: the text of the path.
    ///
    /// # Errors
    /// [`Refusal::NoRoute`] if that is not an address; [`Refusal::NotObject`], [`Refusal::Fields`].
    pub(crate) fn read(named: &str, body: &[u8]) -> Result<Declaration, Refusal> {
        let address = address(named).ok_or(Refusal::NoRoute)?;
        let value = object(body)?;
        let mut body = Body::new(&value);
        let kind = required(&mut body, "kind", "is not eoa, proxy, safe or deposit", |text| {
            KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind)
        });
        let owner = match body.get("owner") {
            None => None,
            Some(_) => required(&mut body, "owner", "is not an address of 0x and 40 digits", self::address),
        };
        // An address with a key of its own is its own owner.
        let is_owned = kind.is_none_or(|kind| kind == AddressKind::Eoa) || owner.is_some();
        if body.problems.is_empty() && !is_owned {
            body.missing("owner");
        }
        let (exchange, neg_risk) = match body.get("allow") {
            None => (false, false),
            Some(allow @ Value::Object(_)) => {
                let mut allow = Body::new(allow);
                let [exchange, neg_risk] = ["exchange", "neg_risk"].map(|name| allow.boolean(name).unwrap_or(false));
                if !allow.problems.is_empty() {
                    body.problems.add("body", "allow", "value_error", allow.problems.message());
                }
                (exchange, neg_risk)
            }
            Some(_) => {
                body.problems.add("body", "allow", "model_type", "is not an object");
                (false, false)
            }
        };
        match kind.filter(|_| body.problems.is_empty()) {
            Some(kind) => Ok(Declaration { address, declared: DeclaredAddress { kind, owner, exchange, neg_risk } }),
            None => Err(Refusal::Fields(body.problems)),
        }
    }
}

/// Declares it.
///
/// # Errors
/// [`Refusal::Unavailable`], [`Refusal::Impossible`], [`Refusal::Unknown`], [`Refusal::Lost`].
pub(crate) async fn declare(node: &impl Node, declaration: Declaration) -> Result<Reply, Refusal> {
    let Declaration { address, declared } = declaration;
    let refused = |why| match why {
        NotDeclared::Busy => Refusal::Unavailable("the log has no room now".to_owned()),
        NotDeclared::NoStore => Refusal::Unavailable("the server writes the previous format".to_owned()),
        NotDeclared::Full => Refusal::Impossible("There are as many declared addresses as there can be."),
    };
    let declaring = node.declare(address, declared).map_err(refused)?;
    let done = tokio::time::timeout(DONE_WITHIN, declaring).await.map_err(|_| Refusal::Unknown)?;
    done.map_err(|_| Refusal::Lost)?.map_err(refused)?;
    tracing::info!(address = shown(&address), ?declared, "an administrator declared an address");
    let mut json = Vec::with_capacity(256);
    let DeclaredAddress { kind, owner, exchange, neg_risk } = declared;
    write::object(&mut json, |o| {
        o.text("address", &shown(&address));
        o.word("kind", KINDS[kind as usize].0);
        o.text_or_null("owner", owner.map(|owner| shown(&owner)).as_deref());
        o.object("allow", |o| {
            o.boolean("exchange", exchange);
            o.boolean("neg_risk", neg_risk);
        });
    });
    Ok(Reply::Json(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_names_an_address_and_what_it_is() {
        let (named, owner) =
            ("0x00000000000000000000000000000000000000Aa", "0x000000000000000000000000000000000000000b");
        let mut own = [0; 20];
        own[19] = 0xaa;
        let mut other = [0; 20];
        other[19] = 0x0b;
        let of = |kind, owner: Option<[u8; 20]>, exchange, neg_risk| {
            Ok((own, DeclaredAddress { kind, owner, exchange, neg_risk }))
        };
        let read = |named: &str, body: &str| match Declaration::read(named, body.as_bytes()) {
            Ok(Declaration { address, declared }) => Ok((address, declared)),
            Err(Refusal::Fields(problems)) => Err(problems.message().split(':').next().unwrap_or_default().to_owned()),
            Err(Refusal::NotObject) => Err("not an object".to_owned()),
            Err(Refusal::NoRoute) => Err("no route".to_owned()),
            Err(other) => panic!("{other:?}"),
        };
        let fails = |field: &str| Err(field.to_owned());
        let rows = [
            (named, r#"{"kind":"eoa"}"#.to_owned(), of(AddressKind::Eoa, None, false, false)),
            (
                named,
                r#"{"kind":"eoa","owner":null,"allow":{"exchange":true}}"#.to_owned(),
                of(AddressKind::Eoa, None, true, false),
            ),
            (
                named,
                format!(r#"{{"kind":"proxy","owner":"{owner}","allow":{{"exchange":true,"neg_risk":true}}}}"#),
                of(AddressKind::Proxy, Some(other), true, true),
            ),
            (
                named,
                format!(r#"{{"kind":"safe","owner":"{owner}","allow":null}}"#),
                of(AddressKind::Safe, Some(other), false, false),
            ),
            (
                named,
                format!(r#"{{"kind":"deposit","owner":"{owner}","allow":{{"neg_risk":true}}}}"#),
                of(AddressKind::Deposit, Some(other), false, true),
            ),
            (named, r#"{"kind":"proxy"}"#.to_owned(), fails("owner")),
            (named, r#"{"kind":"deposit","owner":null}"#.to_owned(), fails("owner")),
            (named, r#"{"kind":"contract"}"#.to_owned(), fails("kind")),
            (named, r#"{"owner":null}"#.to_owned(), fails("kind")),
            (named, r#"{"kind":"eoa","owner":"0xb"}"#.to_owned(), fails("owner")),
            (named, r#"{"kind":"eoa","owner":7}"#.to_owned(), fails("owner")),
            (named, r#"{"kind":"eoa","allow":true}"#.to_owned(), fails("allow")),
            (named, r#"{"kind":"eoa","allow":{"exchange":"yes"}}"#.to_owned(), fails("allow")),
            (named, "[]".to_owned(), fails("not an object")),
            (named, String::new(), fails("not an object")),
            (&named[..41], r#"{"kind":"eoa"}"#.to_owned(), fails("no route")),
            (&named[2..], r#"{"kind":"eoa"}"#.to_owned(), fails("no route")),
            ("0x00000000000000000000000000000000000000Ag", r#"{"kind":"eoa"}"#.to_owned(), fails("no route")),
            ("0x0000000000000000000000000000000000000é", r#"{"kind":"eoa"}"#.to_owned(), fails("no route")),
            ("", r#"{"kind":"eoa"}"#.to_owned(), fails("no route")),
        ];
        for (named, body, expected) in &rows {
            assert_eq!(read(named, body), *expected, "{named} {body}");
        }
        for (number, (_, kind)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, number);
        }
        assert_eq!(shown(&own), named.to_lowercase());
        println!("declarations: {} cases", rows.len() + KINDS.len());
    }
}
