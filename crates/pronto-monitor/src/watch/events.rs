//! A parser for the events of `fanotify(7)` with `FAN_REPORT_DFID_NAME`. An event is a header and
//! records, one of which contains the handle of a directory and a name in it. Numbers are in native
//! byte order.

use bstr::ByteSlice;
use pronto_io::fanotify::{CREATED, IS_DIRECTORY, LOST, MOVED_FROM, MOVED_TO};

/// The size of `struct fanotify_event_metadata`.
const HEAD_BYTES: usize = 24;
/// The size of `struct fanotify_event_info_header`.
const RECORD_HEAD_BYTES: usize = 4;
const FILE_SYSTEM_BYTES: usize = 8;
/// The size of `struct file_handle` without the handle itself.
const HANDLE_HEAD_BYTES: usize = 8;
/// The type of a record with a directory and a name: `FAN_EVENT_INFO_TYPE_DFID_NAME`.
const DIRECTORY_AND_NAME: u8 = 2;
/// The version of the event format: `FANOTIFY_METADATA_VERSION`.
const VERSION: u8 = 3;

/// The identity of a directory: the id of its file system, followed by its file handle.
pub type DirectoryId = [u8];

/// An event for a name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    mask: u64,
    /// The identity of the directory.
    pub place: &'a DirectoryId,
    /// The name, or `.` for the directory itself.
    pub name: &'a [u8],
}

impl Event<'_> {
    /// Returns whether the event concerns a directory.
    pub fn is_directory(&self) -> bool {
        self.mask & IS_DIRECTORY != 0
    }

    /// Returns whether a directory was renamed, which changes the paths of all entries below it.
    pub fn moves_directory(&self) -> bool {
        self.is_directory() && self.mask & (MOVED_FROM | MOVED_TO) != 0
    }

    /// Returns whether a file or directory with this name was created or moved here.
    pub fn appears(&self) -> bool {
        self.mask & (CREATED | MOVED_TO) != 0
    }
}

/// The reason for which there is no next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventError {
    /// Events were lost because the queue was full.
    Lost,
    /// The bytes are not a valid event of the requested format.
    Malformed,
}

/// An iterator over the events in a buffer. It ends after an error.
#[derive(Clone, Debug)]
pub struct EventIter<'a> {
    rest: &'a [u8],
}

impl<'a> EventIter<'a> {
    /// Creates an iterator over `bytes`, which must contain whole events. Copies nothing.
    pub fn new(bytes: &'a [u8]) -> EventIter<'a> {
        EventIter { rest: bytes }
    }

    /// Returns the next event, or `None` for an event without a directory: for an unnamed file, or
    /// a file that was opened by handle. inotify does not report such events either.
    fn take(&mut self) -> Result<Option<Event<'a>>, EventError> {
        let head = self.rest.get(..HEAD_BYTES).ok_or(EventError::Malformed)?;
        let len = number(head, 0).ok_or(EventError::Malformed)?;
        let head_len = usize::from(u16::from_ne_bytes([head[6], head[7]]));
        let event = self.rest.get(..len).ok_or(EventError::Malformed)?;
        if head[4] != VERSION || len < HEAD_BYTES || head_len < HEAD_BYTES {
            return Err(EventError::Malformed);
        }
        self.rest = &self.rest[len..];
        let mask = head[8..16].try_into().map_or(0, u64::from_ne_bytes);
        if mask & LOST != 0 {
            return Err(EventError::Lost);
        }
        let mut records = event.get(head_len..).ok_or(EventError::Malformed)?;
        while let Some(record_head) = records.get(..RECORD_HEAD_BYTES) {
            let len = usize::from(u16::from_ne_bytes([record_head[2], record_head[3]]));
            let record = records.get(RECORD_HEAD_BYTES..len);
            let record = record.ok_or(EventError::Malformed)?;
            if record_head[0] == DIRECTORY_AND_NAME {
                let (place, name) = directory_and_name(record).ok_or(EventError::Malformed)?;
                return Ok(Some(Event { mask, place, name }));
            }
            records = &records[len..];
        }
        match records.is_empty() {
            true => Ok(None),
            false => Err(EventError::Malformed),
        }
    }
}

impl<'a> Iterator for EventIter<'a> {
    type Item = Result<Event<'a>, EventError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match self.take() {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(broken) => {
                    self.rest = &[];
                    return Some(Err(broken));
                }
            }
        }
        None
    }
}

/// Returns the number in the four bytes at `at`.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_ne_bytes(bytes)).ok()
}

fn directory_and_name(record: &[u8]) -> Option<(&DirectoryId, &[u8])> {
    let handle_len = number(record, FILE_SYSTEM_BYTES)?;
    let end = handle_len.checked_add(FILE_SYSTEM_BYTES + HANDLE_HEAD_BYTES)?;
    let (place, rest) = record.split_at_checked(end)?;
    let name = &rest[..rest.find_byte(0)?];
    (!name.is_empty()).then_some((place, name))
}

/// The parts of a [`DirectoryId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryIdParts<'a> {
    /// The id of the file system.
    pub file_system: u64,
    /// The file handle of the directory.
    pub handle: &'a [u8],
}

/// Splits a [`DirectoryId`] into its parts.
pub fn split(place: &DirectoryId) -> Option<DirectoryIdParts<'_>> {
    let (file_system, handle) = place.split_at_checked(FILE_SYSTEM_BYTES)?;
    let low = number(file_system, 0)? as u64;
    let high = number(file_system, 4)? as u64;
    Some(DirectoryIdParts {
        file_system: high << 32 | low,
        handle,
    })
}

/// Creates a [`DirectoryId`] from the id of a file system and the file handle of a directory.
pub fn join(file_system: u64, handle: &[u8]) -> Vec<u8> {
    let (low, high) = (file_system as u32, (file_system >> 32) as u32);
    [&low.to_ne_bytes()[..], &high.to_ne_bytes(), handle].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLE: &[u8] = b"handle!!";

    fn event(mask: u64, name: &[u8]) -> Vec<u8> {
        let mut record = vec![DIRECTORY_AND_NAME, 0, 0, 0];
        record.extend(7_u32.to_ne_bytes());
        record.extend(9_u32.to_ne_bytes());
        record.extend((HANDLE.len() as u32).to_ne_bytes());
        record.extend(1_u32.to_ne_bytes());
        record.extend(HANDLE);
        record.extend(name);
        record.push(0);
        record.resize(record.len().next_multiple_of(4), 0);
        let len = record.len() as u16;
        record[2..4].copy_from_slice(&len.to_ne_bytes());
        let mut event = Vec::new();
        event.extend((HEAD_BYTES as u32 + u32::from(len)).to_ne_bytes());
        event.extend([VERSION, 0]);
        event.extend((HEAD_BYTES as u16).to_ne_bytes());
        event.extend(mask.to_ne_bytes());
        event.extend([0xff; 8]);
        event.extend(record);
        event
    }

    #[test]
    fn events_are_taken_apart() {
        let mut bytes = event(CREATED, b"file");
        bytes.extend(event(MOVED_FROM | IS_DIRECTORY, b"."));
        let events: Vec<_> = EventIter::new(&bytes)
            .map(|event| event.expect("sound"))
            .collect();
        assert_eq!(events.len(), 2);
        let (first, second) = (events[0], events[1]);
        assert_eq!((first.name, second.name), (&b"file"[..], &b"."[..]));
        assert!(first.appears() && !first.is_directory() && !first.moves_directory());
        assert!(!second.appears() && second.moves_directory());
        let DirectoryIdParts {
            file_system,
            handle,
        } = split(first.place).expect("a place");
        assert_eq!(file_system, 9 << 32 | 7);
        assert!(handle.ends_with(HANDLE) && handle.len() == HANDLE.len() + HANDLE_HEAD_BYTES);
        assert_eq!(first.place, second.place);
        assert_eq!(join(file_system, handle), first.place);
    }

    #[test]
    fn lost_events_and_broken_ones_are_told() {
        let sound = event(CREATED, b"file");
        let mut lost = event(LOST, b"file");
        assert_eq!(EventIter::new(&lost).next(), Some(Err(EventError::Lost)));
        lost.splice(..0, sound.clone());
        assert_eq!(EventIter::new(&lost).filter(Result::is_err).count(), 1);
        for len in 1..sound.len() {
            let mut events = EventIter::new(&sound[..len]);
            assert_eq!(events.next(), Some(Err(EventError::Malformed)), "{len}");
            assert_eq!(events.next(), None);
        }
        // Change any byte of the event header, the record header or the handle.
        for at in 0..HEAD_BYTES + 24 {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] = byte;
                let _ = EventIter::new(&bytes).count();
            }
        }
    }
}
