//! Packet lines and the advertisement of refs in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pronto_hash::Kind;

fuzz_target!(|data: &[u8]| {
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
});
