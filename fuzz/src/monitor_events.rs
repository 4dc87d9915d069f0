//! Fuzzes file system events, as a monitor reads them.

use pronto_monitor::watch::events::{EventIter, join, split};

pub(crate) fn run(data: &[u8]) {
    let mut events = EventIter::new(data);
    for event in events.by_ref().take_while(Result::is_ok).flatten() {
        assert!(!event.name.is_empty() && !event.name.contains(&0));
        let parts = split(event.place).expect("a place has both");
        let (file_system, handle) = (parts.file_system, parts.handle);
        assert_eq!(join(file_system, handle), event.place);
    }
}
