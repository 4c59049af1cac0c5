//! Wallets of the venue and their owners: the address of each is that of a contract which a factory makes for its owner by
//! CREATE2, so it follows from the owner's.
//!
//! ```text
//! address = last 20 bytes of keccak256(0xff ‖ factory ‖ salt ‖ keccak256(code that makes the contract))
//! ```
//!
//! Factories, implementations and codes are those of the venue's own clients.

use super::super::signature::{Address, hexadecimal, keccak, word};
use std::sync::LazyLock;

/// What wallets of a kind are made of.
struct Makers {
    proxy: [u8; 20],
    proxy_code: [u8; 32],
    safe: [u8; 20],
    safe_code: [u8; 32],
    deposit: [u8; 20],
    deposit_implementation: [u8; 20],
    deposit_beacon: [u8; 20],
}

static MAKERS: LazyLock<Makers> = LazyLock::new(|| {
    let proxy = address(b"0xab45c5a4b0c941a2f231c04c3f49182e1a254052");
    let implementation = address(b"0x44e999d5c2f66ef0861317f9a4805ac2e90aeb4f");
    let proxy_code = keccak(&[
        &bytes::<13>(b"0x3d3d606380380380913d393d73"),
        &proxy,
        &bytes::<31>(b"0x5af4602a57600080fd5b602d8060366000396000f3363d3d373d3d3d363d73"),
        &implementation,
        &bytes::<19>(b"0x5af43d82803e903d91602b57fd5bf352e831dd"),
        &word(&[0x20]),
        &[0; 32],
    ]);
    Makers {
        proxy,
        proxy_code,
        safe: address(b"0xaacfeea03eb1561c4e67d661e40682bd20e3541b"),
        safe_code: bytes(b"0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf"),
        deposit: address(b"0x00000000000fb5c9adea0298d729a0cb3823cc07"),
        deposit_implementation: address(b"0x58ca52ebe0dadfdf531cde7062e76746de4db1eb"),
        deposit_beacon: address(b"0x7a18edfe055488a3128f01f563e5b479d92ffc3a"),
    }
});

/// The proxy wallet of an owner.
pub fn proxy(owner: &Address) -> Address {
    create2(&MAKERS.proxy, &keccak(&[&owner.0]), &MAKERS.proxy_code)
}

/// The Safe of an owner.
pub fn safe(owner: &Address) -> Address {
    create2(&MAKERS.safe, &keccak(&[&word(&owner.0)]), &MAKERS.safe_code)
}

/// The deposit wallets of an owner: the factory has made them in two ways.
pub fn deposits(owner: &Address) -> [Address; 2] {
    let arguments = [word(&MAKERS.deposit), word(&owner.0)].concat();
    // The second byte after the first is the length of the code with its arguments.
    let upgradable = keccak(&[
        &bytes::<10>(b"0x61007d3d8160233d3973"),
        &MAKERS.deposit_implementation,
        &bytes::<2>(b"0x6009"),
        &bytes::<32>(b"0x5155f3363d3d373d3d363d7f360894a13ba1a3210667c828492db98dca3e2076"),
        &bytes::<32>(b"0xcc3735a920a3ca505d382bbc545af43d6000803e6038573d6000fd5b3d6000f3"),
        &arguments,
    ]);
    let by_beacon = keccak(&[
        &bytes::<10>(b"0x6100923d8160233d3973"),
        &MAKERS.deposit_beacon,
        &bytes::<23>(b"0x60195155f3363d3d373d3d363d602036600436635c60da"),
        &bytes::<32>(b"0x1b60e01b36527fa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6c"),
        &bytes::<32>(b"0xb3582b35133d50545afa5036515af43d6000803e604d573d6000fd5b3d6000f3"),
        &arguments,
    ]);
    [by_beacon, upgradable].map(|code| create2(&MAKERS.deposit, &keccak(&[&arguments]), &code))
}

fn create2(factory: &[u8; 20], salt: &[u8; 32], code: &[u8; 32]) -> Address {
    let hash = keccak(&[&[0xff], factory, salt, code]);
    Address(hash[12..].try_into().expect("20 of 32 bytes"))
}

fn address(text: &[u8]) -> [u8; 20] {
    bytes(text)
}

fn bytes<const N: usize>(text: &[u8]) -> [u8; N] {
    hexadecimal(text).expect("digits of our own")
}
