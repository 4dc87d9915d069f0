//! Fuzzes frames of netsync, which arrive in pieces of any size.

use pronto_netsync::frame::{Channel, FrameReader};

pub(crate) fn run(data: &[u8]) {
    let Some((step, mut rest)) = data.split_first() else {
        return;
    };
    let mut reader = FrameReader::new(0);
    while !rest.is_empty() {
        let count = reader.accept(&rest[..rest.len().min(usize::from(*step) + 1)]);
        rest = &rest[count..];
        loop {
            match reader.peek() {
                Ok(Some(frame)) => assert!(frame.body.len() <= data.len()),
                Ok(None) => break,
                Err(_) => return,
            }
            reader.consume();
        }
        let _ = reader.take_grant(Channel::Transfer);
        if count == 0 {
            return;
        }
    }
}
