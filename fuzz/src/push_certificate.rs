//! Fuzzes the certificate of a signed push: alone, and as part of a client's request.

use pronto_hash::Kind;
use pronto_wire::certificate::{Certificate, check_nonce};
use pronto_wire::pktline::Packet;
use pronto_wire::receive::{RequestParser, ServerFeatures};

pub(crate) fn run(data: &[u8]) {
    // A certificate contains an empty line, which most inputs lack.
    let data = match data.windows(2).any(|pair| pair == b"\n\n") {
        true => data.to_vec(),
        false => [b"certificate version 0.1\n", data, b"\n\n", data].concat(),
    };
    let Ok(certificate) = Certificate::parse(data.clone().into()) else {
        return;
    };
    let (signed, signature) = (certificate.signed(), certificate.signature());
    assert_eq!([signed, signature].concat(), data);
    for change in certificate.changes() {
        assert!(!change.contains(&b'\n'));
    }
    for option in certificate.push_options() {
        assert!(!option.contains(&b'\n'));
    }
    if let Some(nonce) = certificate.nonce() {
        let _ = check_nonce(nonce);
        let nonces = pronto::signing::Nonces::new(b"seed", "service", Kind::Sha1);
        assert!(
            nonces
                .time_of(nonce)
                .is_none_or(|time| nonce == nonces.at(time).as_bytes())
        );
    }
    let mut parser = RequestParser::new(ServerFeatures {
        hash: Kind::Sha1,
        atomic: true,
        push_options: true,
    });
    let lines = data.split_inclusive(|byte| *byte == b'\n');
    let packets = [&b"push-cert\0report-status\n"[..]]
        .into_iter()
        .chain(lines);
    for packet in packets {
        if !matches!(parser.push(Packet::Data(packet)), Ok(None)) {
            return;
        }
    }
    if let Ok(Some(request)) = parser.push(Packet::Flush)
        && let Some(parsed) = &request.certificate
    {
        assert_eq!(request.commands.len(), parsed.changes().count());
    }
}
