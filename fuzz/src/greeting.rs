//! Fuzzes the first message of a server, line by line. An empty line stands for a flush packet.

use bstr::ByteSlice;
use pronto_wire::advertisement::{GreetingParser, ProtocolVersion};
use pronto_wire::pktline::Packet;

pub(crate) fn run(data: &[u8]) {
    let mut parser = GreetingParser::default();
    let mut lines = 0;
    for line in data.split_str("\n") {
        lines += 1;
        let packet = match line {
            b"" => Packet::Flush,
            b"0001" => Packet::Delimiter,
            line => Packet::Data(line),
        };
        match parser.push(packet) {
            Ok(None) => {}
            Ok(Some(greeting)) => {
                assert!(greeting.refs.len() + greeting.shallow.len() < lines);
                assert!(greeting.version != ProtocolVersion::V2 || greeting.refs.is_empty());
                assert!(greeting.refs.iter().all(|found| found.id.is_some()));
                return;
            }
            Err(_) => return,
        }
    }
}
