//! Fuzzes the request of a client that pushes, line by line. An empty line stands for a flush
//! packet.

use bstr::ByteSlice;
use pronto_hash::Kind;
use pronto_wire::pktline::Packet;
use pronto_wire::receive::{OptionsParser, RequestParser, ServerFeatures};

pub(crate) fn run(data: &[u8]) {
    let offer = ServerFeatures {
        hash: Kind::Sha1,
        atomic: true,
        push_options: true,
    };
    let mut lines = data.split_str("\n").map(|line| match line {
        b"" => Packet::Flush,
        b"0001" => Packet::Delimiter,
        line => Packet::Data(line),
    });
    let mut parser = RequestParser::new(offer);
    let request = lines
        .by_ref()
        .find_map(|packet| parser.push(packet).transpose());
    let Some(Ok(request)) = request else {
        return;
    };
    for command in &request.commands {
        assert_eq!(
            (command.old.kind(), command.new.kind()),
            (Kind::Sha1, Kind::Sha1)
        );
        assert!(!command.name.contains(&b'\n'));
    }
    let mut parser = OptionsParser::default();
    for packet in lines {
        match parser.push(packet) {
            Ok(None) => {}
            Ok(Some(options)) => {
                assert!(options.len() <= data.len());
                return;
            }
            Err(_) => return,
        }
    }
}
