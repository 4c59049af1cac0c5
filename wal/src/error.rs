//! Why the log refused or stopped. Each variant is something that a caller or an operator can act on.

use std::fmt;
use std::io;

use crate::Lsn;

/// There is no room for the record: the open segment is full and no spare is ready. Nothing was written.
///
/// The only way in which an append can fail. A caller that checks [`crate::Log::room`] first does not see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log is full: no prepared segment")
    }
}

impl std::error::Error for Full {}

/// Errors of everything but an append.
#[derive(Debug)]
pub enum Error {
    /// A call to the file system failed.
    Io {
        /// The operation, for a person.
        doing: &'static str,
        /// Name inside the log's directory, or the directory itself.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// No room to start: the disk is full.
    Full,
    /// Another process owns the directory.
    Locked {
        /// Its id from the lock file; 0 when it has not written it yet.
        pid: u32,
    },
    /// Records that were covered by a successful sync are damaged or gone. Starting would break a promise.
    Lost(Loss),
    /// The files are not a log of this program: a file in the wrong place, of an unknown version, missing, or one too
    /// many.
    Format {
        /// Name inside the log's directory.
        file: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The directory cannot be trusted or cannot keep the log's promises.
    Place {
        /// The directory or the name inside it.
        file: String,
        /// What is wrong with it.
        fault: PlaceFault,
    },
    /// A sync failed earlier in this process. The log takes nothing until the process is started again.
    Poisoned,
}

/// Where promised records end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The first LSN that is damaged or missing.
    pub lsn: Lsn,
    /// The file that should hold it.
    pub file: String,
    /// Its offset in that file, bytes.
    pub offset: u64,
    /// The checksum that the file holds for it.
    pub expected_crc: u32,
    /// The checksum of the bytes in the file.
    pub found_crc: u32,
    /// The highest LSN that something else in the directory proves to have been synced.
    pub synced: Lsn,
}

impl Loss {
    /// Bytes of the audit record: lsn, offset, synced, both checksums, file name.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32 + self.file.len());
        bytes.extend_from_slice(&self.lsn.0.to_le_bytes());
        bytes.extend_from_slice(&self.offset.to_le_bytes());
        bytes.extend_from_slice(&self.synced.0.to_le_bytes());
        bytes.extend_from_slice(&self.expected_crc.to_le_bytes());
        bytes.extend_from_slice(&self.found_crc.to_le_bytes());
        bytes.extend_from_slice(self.file.as_bytes());
        bytes
    }

    /// Reads the payload of a [`crate::Kind::LossAccepted`] record; `None` when it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Loss> {
        let (head, file) = bytes.split_at_checked(32)?;
        let u64_at = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        Some(Loss {
            lsn: Lsn(u64_at(0)),
            offset: u64_at(8),
            synced: Lsn(u64_at(16)),
            expected_crc: u32_at(24),
            found_crc: u32_at(28),
            file: String::from_utf8(file.to_vec()).ok()?,
        })
    }
}

/// What is wrong with a file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It does not begin with the bytes that files of this type begin with.
    Magic,
    /// A program with a newer format wrote it. Downgrades are refused.
    Version {
        /// The version in the file.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// Its header or footer is damaged.
    Checksum {
        /// The checksum in the file.
        expected: u32,
        /// The checksum of its bytes.
        found: u32,
    },
    /// It belongs to another directory.
    Foreign,
    /// Its name and its header disagree on the first LSN.
    Name {
        /// Its name and its header disagree about the first LSN.
        header: Lsn,
    },
    /// Its length in bytes is not the one it was made with.
    Length {
        /// Its length in bytes is not the one it was created with.
        expected: u64,
        /// The length it was created with.
        found: u64,
    },
    /// A segment before it is missing, it exists twice, or it is in the wrong place.
    Order {
        /// The LSN that should come next.
        expected: Lsn,
        /// The first LSN of this file.
        found: Lsn,
    },
    /// It follows another history: the checksum of the record before it does not fit.
    Chain {
        /// The checksum of the record before it, by its header.
        expected: u32,
        /// The checksum of the record that is before it.
        found: u32,
    },
    /// There are bytes after the last record of a sealed segment.
    Trailing {
        /// The offset, bytes from the start of the file.
        offset: u64,
    },
    /// A whole record of an unknown kind.
    Kind {
        /// The number of the kind.
        found: u16,
        /// The offset, bytes from the start of the file.
        offset: u64,
    },
    /// A whole record with an unknown field set.
    Reserved {
        /// The offset, bytes from the start of the file.
        offset: u64,
    },
    /// A whole record whose epoch is below that of the record before it, or above every epoch that was ever started.
    Epoch {
        /// Its epoch.
        found: u32,
        /// The offset, bytes from the start of the file.
        offset: u64,
    },
    /// A file with a spare's name that holds the same segment as a properly named file.
    Copy {
        /// That file.
        of: String,
    },
    /// A required file does not exist.
    Missing,
    /// The file's length does not match its parts, or a part has an impossible length.
    Structure,
}

/// What is wrong with the place of the log's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceFault {
    /// A symbolic link where a file or the directory should be.
    SymbolicLink,
    /// Not a directory.
    Type,
    /// A directory, a pipe, a socket or a device in place of a file of the log.
    NotPlain,
    /// It belongs to another user of the machine.
    Owner,
    /// Users other than the owner may read or write it.
    Mode(u32),
    /// The file was removed while the log was open.
    Removed,
    /// The whole directory was removed while the log was open.
    DirectoryRemoved,
    /// A network file system, whose locks and syncs cannot be relied on. The number is the system's type.
    Network(u64),
}

impl Error {
    pub(crate) fn io(doing: &'static str, file: &str) -> impl FnOnce(io::Error) -> Error {
        move |source| match source.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(fault) => Error::Place { file: file.to_owned(), fault: *fault },
            None => Error::Io { doing, file: file.to_owned(), source },
        }
    }

    pub(crate) fn format(file: &str, fault: Fault) -> Error {
        Error::Format { file: file.to_owned(), fault }
    }

    /// Whether the disk (or its quota) is full. That is temporary and no damage.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Full => true,
            Error::Io { source, .. } => is_full(source),
            _ => false,
        }
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

impl From<Full> for Error {
    fn from(_: Full) -> Error {
        Error::Full
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { doing, file, source } => write!(f, "{doing} {file}: {source}"),
            Error::Full => f.write_str("the disk is full: no room for a segment"),
            Error::Locked { pid: 0 } => f.write_str("another process owns the log directory"),
            Error::Locked { pid } => write!(f, "process {pid} owns the log directory"),
            Error::Lost(loss) => loss.fmt(f),
            Error::Format { file, fault } => write!(f, "{file}: {fault}"),
            Error::Place { file, fault } => write!(f, "{file}: {fault}"),
            Error::Poisoned => f.write_str("a sync failed earlier; the log takes nothing more in this process"),
        }
    }
}

/// What is lost, where, and what an operator can do. No command continues without the records: only a caller of
/// [`crate::Dir::recover`] may accept the loss.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { lsn, file, offset, expected_crc, found_crc, synced } = self;
        write!(f, "synced records are gone from LSN {lsn} on: {file} at byte {offset}, ")?;
        write!(f, "checksum {expected_crc:08x} expected, {found_crc:08x} found; synced up to LSN {synced}. ")?;
        let gone = synced.0.saturating_sub(lsn.0) + 1;
        let records = if gone == 1 { "record" } else { "records" };
        write!(f, "{gone} {records} (LSN {lsn} to {synced}) cannot be replayed, and nothing was changed. ")?;
        write!(f, "If {file} or a later file of the log was moved or changed, put it back; ")?;
        f.write_str(
            "else put the whole directory back from one copy of it (not single files out of several copies), ",
        )?;
        f.write_str("or set it aside and begin with an empty one, without the data of this one")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Magic => f.write_str("not a file of this log"),
            Fault::Version { found, known } => {
                write!(f, "written in format {found} by a newer program; this one reads up to {known}")
            }
            Fault::Checksum { expected, found } => {
                write!(f, "damaged: checksum {expected:08x} expected, {found:08x} found")
            }
            Fault::Foreign => f.write_str("belongs to another log directory"),
            Fault::Name { header } => write!(f, "the name does not match the first LSN of the header, {header}"),
            Fault::Length { expected, found } => {
                write!(f, "has {found} bytes, was created with {expected}")
            }
            Fault::Order { expected, found } => {
                write!(
                    f,
                    "LSN {expected} should come next, this file starts at {found}: a segment is missing or was added"
                )
            }
            Fault::Chain { expected, found } => {
                write!(f, "continues another log: checksum {expected:08x} expected before it, {found:08x} found")
            }
            Fault::Trailing { offset } => {
                write!(f, "there are bytes after the last record of a sealed segment, from byte {offset} on")
            }
            Fault::Kind { found, offset } => {
                write!(f, "the record at byte {offset} has the unknown kind {found}")
            }
            Fault::Reserved { offset } => {
                write!(f, "the record at byte {offset} has an unknown field")
            }
            Fault::Epoch { found, offset } => write!(f, "the record at byte {offset} has the impossible epoch {found}"),
            Fault::Copy { of } => write!(
                f,
                "has the name of a spare and holds a copy of {of}, which is intact; \
                 move the copy out of the log's directory"
            ),
            Fault::Missing => f.write_str("is missing"),
            Fault::Structure => f.write_str("its length does not match its parts"),
        }
    }
}

/// Inside an [`io::Error`] it becomes [`Error::Place`].
impl std::error::Error for PlaceFault {}

impl fmt::Display for PlaceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceFault::SymbolicLink => f.write_str("is a symbolic link; replace it by what it points to"),
            PlaceFault::Type => f.write_str("is not a directory; name another path, or move it away"),
            PlaceFault::NotPlain => f.write_str(
                "is a directory, a pipe or something else that is not a plain file; the log did not create it: \
                 move it out of the log's directory",
            ),
            PlaceFault::Owner => {
                f.write_str("belongs to another user; run the program as that user, or change the owner (chown)")
            }
            PlaceFault::Mode(mode) => {
                write!(f, "is open to others (mode {mode:o}); only its owner may have access (chmod 700)")
            }
            PlaceFault::Removed => {
                f.write_str("was removed while the server ran; its contents are lost when the server ends")
            }
            PlaceFault::DirectoryRemoved => f.write_str("the log's directory was removed while the server ran"),
            PlaceFault::Network(kind) => {
                write!(f, "is on a network file system (type {kind:#x}); move it to a local disk")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_survives_its_audit_record() {
        let loss = Loss {
            lsn: Lsn(7),
            file: "00000000000000000001.wal".into(),
            offset: 640,
            expected_crc: 1,
            found_crc: 2,
            synced: Lsn(9),
        };
        assert_eq!(Loss::from_bytes(&loss.to_bytes()), Some(loss));
        assert_eq!(Loss::from_bytes(&[0; 31]), None);
    }

    #[test]
    fn messages_name_file_and_offset() {
        let loss = Loss {
            lsn: Lsn(7),
            file: "x.wal".into(),
            offset: 640,
            expected_crc: 0xab,
            found_crc: 0xcd,
            synced: Lsn(9),
        };
        assert_eq!(
            Error::Lost(loss).to_string(),
            "synced records are gone from LSN 7 on: x.wal at byte 640, checksum 000000ab expected, 000000cd found; \
             synced up to LSN 9. 3 records (LSN 7 to 9) cannot be replayed, and nothing was changed. If x.wal or a \
             later \
             file of the log was moved or changed, put it back; else put the whole directory back from one copy of it \
             (not single \
             files out of several copies), or set it aside and begin with an empty one, without the data of this one"
        );
        assert_eq!(Error::Locked { pid: 12 }.to_string(), "process 12 owns the log directory");
        assert!(Error::from(Full).is_full());
    }
}
