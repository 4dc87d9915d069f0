//! Fuzzes the list of untracked files that is stored beside an index, with a matching checksum.

use pronto_hash::Kind;
use pronto_index::UntrackedList;

pub(crate) fn run(data: &[u8]) {
    let mut bytes = b"PIUL\0\0\0\x01".to_vec();
    bytes.extend_from_slice(data);
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_be_bytes());
    let Some(list) = UntrackedList::parse(&bytes, Kind::Sha1) else {
        return;
    };
    assert_eq!(list.tracked.len(), list.cache.len());
    let mut encoded = Vec::new();
    list.encode(&mut encoded);
    let again = UntrackedList::parse(&encoded, Kind::Sha1).expect("it was encoded");
    let mut encoded_again = Vec::new();
    again.encode(&mut encoded_again);
    assert_eq!(encoded, encoded_again);
}
