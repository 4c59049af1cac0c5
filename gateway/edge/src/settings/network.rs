//! Trusted peers: one address, or a network.

use std::net::IpAddr;

/// An address or a network in CIDR form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Parses `10.0.0.1` or `10.0.0.0/8`. `None` for any other form.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        Some(Network { address, bits: bits.unwrap_or(width) }).filter(|network| network.bits <= width)
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |ours: u128, theirs: u128, width: u8| {
            let dropped = u32::from(width - self.bits);
            dropped >= 128 || ours >> dropped == theirs >> dropped
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => same(ours.to_bits().into(), theirs.to_bits().into(), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => same(ours.to_bits(), theirs.to_bits(), 128),
            _ => false,
        }
    }

    /// The text of the configuration file.
    pub fn show(&self) -> String {
        format!("{}/{}", self.address, self.bits)
    }
}
