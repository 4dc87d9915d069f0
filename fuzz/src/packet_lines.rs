//! Fuzzes packet lines and the ref advertisement in them.

use pronto_hash::Kind;

pub(crate) fn run(data: &[u8]) {
    let _ = pronto_wire::pktline::parse(data);
    let _ = pronto_wire::advertisement::parse_ref_line(data, Kind::Sha1);
    let mut reader = pronto_wire::reader::PacketReader::new(data);
    let mut greeting = pronto_wire::advertisement::GreetingParser::default();
    while let Ok(packet) = reader.next_packet() {
        match greeting.push(packet) {
            Ok(None) => {}
            _ => break,
        }
    }
}
