//! Fuzzes messages of a file system monitor, and the responses in them.

use bstr::ByteSlice;
use pronto_monitor::{Journal, MonitorResponse, protocol};

pub(crate) fn run(data: &[u8]) {
    let mut journal = Journal::new("name");
    let _ = journal.since(data.as_bstr());
    journal.add(data.into());
    let _ = journal.since(data.as_bstr());
    if let Some(answer) = MonitorResponse::parse(data) {
        let again = MonitorResponse::parse(&answer.encode());
        assert_eq!(
            again.as_ref().map(MonitorResponse::token),
            Some(answer.token())
        );
    }
    if let Ok(message) = protocol::read_message(data, 1 << 20) {
        let mut bytes = Vec::new();
        protocol::write_message(&mut bytes, &message).expect("memory takes it");
        assert_eq!(
            protocol::read_message(&bytes[..], 1 << 20).expect("sound"),
            message
        );
    }
}
