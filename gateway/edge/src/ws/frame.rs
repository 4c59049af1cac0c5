//! Outgoing frames, encoded once with their header and shared by all sockets that send them. A server's frames are not
//! masked (RFC 6455 §5.1), so the bytes are the same for every socket.

use super::close::Close;
use crate::http::record::write_record;
use bytes::Bytes;
use serde::Serialize;

/// Longest header of a server's frame.
const HEAD_BYTES_MAX: usize = 10;
/// First byte of a complete message or control frame of each kind: FIN and the opcode.
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// Longest payload of a control frame.
pub const CONTROL_BYTES_MAX: usize = 125;

/// One encoded frame. Clones share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(Bytes);

impl Frame {
    /// A text message of these bytes, which must be UTF-8.
    pub fn text(payload: &[u8]) -> Frame {
        Frame::json(|out| out.extend_from_slice(payload))
    }

    /// A text message with the output of `write`, which must be UTF-8.
    pub fn json(write: impl FnOnce(&mut Vec<u8>)) -> Frame {
        Frame::made(TEXT, write)
    }

    /// A text message that is a JSON record.
    pub fn record(record: &impl Serialize) -> Frame {
        Frame::json(|out| write_record(out, record))
    }

    /// An empty ping. Every conforming peer answers it.
    pub fn ping() -> Frame {
        Frame::made(PING, |_| {})
    }

    /// The answer to a ping with this payload.
    pub fn pong(payload: &[u8]) -> Frame {
        debug_assert!(payload.len() <= CONTROL_BYTES_MAX);
        Frame::made(PONG, |out| out.extend_from_slice(payload))
    }

    pub fn close(close: Close) -> Frame {
        Frame::made(CLOSE, |out| {
            out.extend_from_slice(&close.code.to_be_bytes());
            out.extend_from_slice(close.reason.as_bytes());
        })
    }

    /// Header and payload.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The payload without the header.
    pub fn payload(&self) -> &[u8] {
        let head = match self.0[1] {
            126 => 4,
            127 => 10,
            _ => 2,
        };
        &self.0[head..]
    }

    /// Writes the payload after room for the longest header, then puts the header directly before it.
    fn made(first: u8, write: impl FnOnce(&mut Vec<u8>)) -> Frame {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(&[0; HEAD_BYTES_MAX]);
        write(&mut out);
        let length = out.len() - HEAD_BYTES_MAX;
        let begins = match length {
            0..126 => {
                out[HEAD_BYTES_MAX - 1] = length as u8;
                HEAD_BYTES_MAX - 2
            }
            126..0x1_0000 => {
                out[HEAD_BYTES_MAX - 3] = 126;
                out[HEAD_BYTES_MAX - 2..HEAD_BYTES_MAX].copy_from_slice(&(length as u16).to_be_bytes());
                HEAD_BYTES_MAX - 4
            }
            _ => {
                out[1] = 127;
                out[2..HEAD_BYTES_MAX].copy_from_slice(&(length as u64).to_be_bytes());
                0
            }
        };
        out[begins] = first;
        Frame(Bytes::from(out).slice(begins..))
    }
}

/// Consecutive frames in one buffer. Clones share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    bytes: Bytes,
    count: usize,
}

impl From<&Frame> for Frames {
    fn from(frame: &Frame) -> Frames {
        Frames { bytes: frame.0.clone(), count: 1 }
    }
}

impl Frames {
    /// Joins frames in order. A single frame is not copied.
    pub fn join(frames: &[Frame]) -> Frames {
        if let [frame] = frames {
            return frame.into();
        }
        let mut out = Vec::with_capacity(frames.iter().map(|frame| frame.0.len()).sum());
        frames.iter().for_each(|frame| out.extend_from_slice(&frame.0));
        Frames { bytes: Bytes::from(out), count: frames.len() }
    }

    /// Headers and payloads.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Splits after the first `left_bytes` bytes, which are written and fewer than all. Returns the rest of the partly
    /// written frame, empty at a frame boundary, and the frames after it.
    pub fn split(&self, left_bytes: usize) -> (Bytes, Option<Frames>) {
        debug_assert!(left_bytes < self.bytes.len());
        let (mut ends, mut count) = (0, self.count);
        while ends < left_bytes {
            ends += whole_bytes(&self.bytes[ends..]);
            count -= 1;
        }
        let rest = (count > 0).then(|| Frames { bytes: self.bytes.slice(ends..), count });
        (self.bytes.slice(left_bytes..ends), rest)
    }
}

/// Length of the frame at the start of these bytes, which this server made: it has no mask.
fn whole_bytes(bytes: &[u8]) -> usize {
    let long = |head: usize| bytes[2..head].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    match bytes[1] {
        126 => 4 + long(4),
        127 => 10 + long(10),
        short => 2 + usize::from(short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_frames_part_where_one_ends() {
        let frames = [0, 3, 125, 126, 300, 65_536].map(|length| Frame::text(&vec![b'x'; length]));
        let all = Frames::join(&frames);
        let ends: Vec<usize> = frames
            .iter()
            .scan(0, |end, frame| {
                *end += frame.bytes().len();
                Some(*end)
            })
            .collect();
        assert_eq!((all.bytes().len(), all.count()), (ends[5], 6));
        let places = (0..1_000).chain(ends[4] - 3..ends[4] + 20).chain(ends[5] - 3..ends[5]);
        let mut cases = 0;
        for left in places.filter(|left| *left < ends[5]) {
            let (half, rest) = all.split(left);
            let end = ends.iter().copied().find(|end| *end >= left).filter(|_| left > 0).unwrap_or(0);
            let count = 6 - ends.iter().filter(|other| **other <= end).count();
            assert_eq!(half, all.bytes()[left..end], "{left}");
            let rest = rest.map_or((0, Bytes::new()), |rest| (rest.count(), rest.bytes().clone()));
            assert_eq!(rest, (count, all.bytes().slice(end..)), "{left}");
            cases += 1;
        }
        assert_eq!(Frames::join(&frames[..1]).bytes(), frames[0].bytes());
        println!("joined frames: {cases} cases");
    }

    #[test]
    fn lengths_are_minimal_at_every_edge() {
        let mut cases = 0;
        for (length, head) in [
            (0, vec![0x81, 0]),
            (125, vec![0x81, 125]),
            (126, vec![0x81, 126, 0, 126]),
            (65_535, vec![0x81, 126, 0xff, 0xff]),
            (65_536, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let frame = Frame::text(&vec![b'x'; length]);
            assert_eq!(frame.bytes()[..head.len()], head);
            assert_eq!((frame.bytes().len(), frame.payload().len()), (head.len() + length, length));
            cases += 1;
        }
        assert_eq!(Frame::close(Close::IDLE).bytes()[..4], [0x88, 14, 0x0f, 0xaa]);
        assert_eq!(Frame::ping().bytes()[..], [0x89, 0]);
        assert_eq!(Frame::pong(b"ab").bytes()[..], [0x8a, 2, b'a', b'b']);
        println!("frame heads: {} cases", cases + 3);
    }
}
