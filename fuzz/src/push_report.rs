//! Fuzzes the report of a server after a push, line by line. An empty line stands for a flush
//! packet.

use bstr::ByteSlice;
use pronto_hash::Kind;
use pronto_wire::pktline::Packet;
use pronto_wire::push::ReportParser;

pub(crate) fn run(data: &[u8]) {
    let mut parser = ReportParser::new(Kind::Sha1);
    let mut lines = 0;
    for line in data.split_str("\n") {
        lines += 1;
        let packet = match line {
            b"" => Packet::Flush,
            line => Packet::Data(line),
        };
        match parser.push(packet) {
            Ok(None) => {}
            Ok(Some(report)) => {
                let rewrites = report.replies.iter().map(|reply| reply.rewrites.len());
                assert!(report.replies.len() + rewrites.sum::<usize>() <= lines);
                for error in &report.errors {
                    assert!(!error.contains('\u{1b}') || error.contains("\u{1b}["));
                }
                return;
            }
            Err(_) => return,
        }
    }
}
