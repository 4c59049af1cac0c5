//! The client's half of WebSocket frames, as far as a load needs it.

pub const TEXT: u8 = 0x81;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;

/// A frame from the server.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The first byte: flags and opcode.
    pub first: u8,
    pub payload: &'a [u8],
    /// Size on the wire.
    pub bytes: usize,
}

/// Writes a text frame whose payload `write` appends.
pub fn text(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    masked(out, TEXT, write);
}

/// Writes the pong of a ping.
pub fn pong(out: &mut Vec<u8>, payload: &[u8]) {
    masked(out, PONG, |out| out.extend_from_slice(payload));
}

/// The mask is zero: it protects browsers' proxies, and the server does the same work for any mask.
fn masked(out: &mut Vec<u8>, first: u8, write: impl FnOnce(&mut Vec<u8>)) {
    // Room for the head of most texts; other lengths move the payload.
    const HEAD_BYTES: usize = 8;
    let begin = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    write(out);
    let length = out.len() - begin - HEAD_BYTES;
    match length {
        0..126 => drop(out.splice(begin..begin + HEAD_BYTES, [first, 0x80 | length as u8, 0, 0, 0, 0])),
        126..0x1_0000 => {
            let [high, low] = (length as u16).to_be_bytes();
            out[begin..begin + 4].copy_from_slice(&[first, 0xfe, high, low]);
        }
        _ => {
            let length = (length as u64).to_be_bytes();
            let head = [first, 0xff].into_iter().chain(length).chain([0; 4]);
            drop(out.splice(begin..begin + HEAD_BYTES, head));
        }
    }
}

/// The first frame of these bytes; `None` while it is incomplete.
pub fn read(bytes: &[u8]) -> Option<Frame<'_>> {
    let (head, length) = match *bytes.get(1)? {
        126 => (4, u64::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        short => (2, u64::from(short)),
    };
    let end = usize::try_from(length).ok()?.checked_add(head)?;
    Some(Frame { first: bytes[0], payload: bytes.get(head..end)?, bytes: end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_whole_when_its_length_says_so() {
        let mut cases = 0;
        for length in [0, 1, 125, 126, 300, 0xffff, 0x1_0000] {
            let payload = vec![b'x'; length];
            let mut masked = vec![b'?'];
            text(&mut masked, |out| out.extend_from_slice(&payload));
            // The server's frame is the same without the mask.
            let head = masked.len() - length - 4;
            assert_eq!(masked[head..head + 4], [0; 4], "{length}");
            let mut bytes = masked[1..head].to_vec();
            assert_eq!(bytes[1] & 0x80, 0x80, "a client masks: {length}");
            bytes[1] &= 0x7f;
            bytes.extend_from_slice(&payload);
            assert_eq!(read(&bytes), Some(Frame { first: TEXT, payload: &payload, bytes: bytes.len() }));
            for cut in [0, 1, bytes.len() - 1] {
                assert_eq!(read(&bytes[..cut]), None, "{length} cut at {cut}");
                cases += 1;
            }
        }
        assert_eq!(read(&[TEXT, 127, 255, 255, 255, 255, 255, 255, 255, 255, 0]), None);
        println!("frames: {} cases", cases + 1);
    }
}
