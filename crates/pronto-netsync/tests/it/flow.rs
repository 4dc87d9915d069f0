//! Tests of credits and order: a receiver that stops reading stops the sender.

use std::sync::Arc;

use pronto_netsync::ErrorKind;
use pronto_netsync::frame::{Channel, FrameReader, FrameType, FrameWriter, MAX_BODY_BYTES};

const WINDOW: u64 = 1024 * 1024;

fn drain(writer: &mut FrameWriter) -> Vec<u8> {
    let mut wire = Vec::new();
    while writer.write_to(&mut wire).expect("a vector takes") > 0 {}
    wire
}

#[test]
fn frames_come_out_as_they_went_in_whatever_the_pieces() {
    let mut writer = FrameWriter::default();
    let bytes: Arc<Vec<u8>> = Arc::new((0..=255).collect());
    assert!(writer.send(FrameType::Hello, b"hi").expect("short"));
    assert!(
        writer
            .send_shared(FrameType::Data, bytes, 10..20)
            .expect("short")
    );
    assert!(writer.send(FrameType::Done, b"").expect("short"));
    assert!(
        writer
            .send(FrameType::Data, &vec![0; MAX_BODY_BYTES + 1])
            .is_err()
    );
    let wire = drain(&mut writer);
    for step in 1..=wire.len() {
        let (mut reader, mut seen) = (FrameReader::default(), Vec::new());
        for piece in wire.chunks(step) {
            assert_eq!(reader.accept(piece), piece.len());
            while let Some(frame) = reader.peek().expect("sound") {
                seen.push((frame.kind, frame.body.to_vec()));
                reader.consume();
            }
        }
        assert_eq!(seen.len(), 3, "{step}");
        assert_eq!(seen[0], (FrameType::Hello, b"hi".to_vec()));
        assert_eq!(seen[1], (FrameType::Data, (10..20).collect()));
        assert_eq!(seen[2], (FrameType::Done, Vec::new()));
    }
}

#[test]
fn a_sender_stops_at_the_window_and_goes_on_with_credit() {
    let mut writer = FrameWriter::new(8 * WINDOW as usize, WINDOW);
    let mut reader = FrameReader::new(WINDOW);
    let body = vec![1; 100_000];
    let (mut sent, mut consumed) = (0u64, 0u64);
    for _ in 0..200 {
        while writer.send(FrameType::Data, &body).expect("short") {
            sent += 1;
        }
        assert!((sent - consumed) * 100_006 <= WINDOW);
        assert!(
            writer.send(FrameType::Credit, b"x").expect("short"),
            "control passes"
        );
        let wire = drain(&mut writer);
        let mut wire = &wire[..];
        while !wire.is_empty() {
            let count = reader.accept(wire);
            wire = &wire[count..];
            while let Some(frame) = reader.peek().expect("sound") {
                consumed += u64::from(frame.kind == FrameType::Data);
                reader.consume();
            }
        }
        if let Some(bytes) = reader.take_grant(Channel::Transfer) {
            writer.grant(Channel::Transfer, bytes).expect("few");
        }
    }
    assert!(sent > 1000, "{sent}");
    // Pieces are copied once here. The queue moves less than that in addition.
    assert!(reader.queue().moved_bytes() <= sent * 100_006 + 200 * 7);
}

#[test]
fn a_frame_that_is_not_consumed_stops_the_reading() {
    let mut writer = FrameWriter::default();
    let mut reader = FrameReader::default();
    let body = vec![1; MAX_BODY_BYTES];
    while writer.send(FrameType::Data, &body).expect("short") {}
    let wire = drain(&mut writer);
    let mut taken = 0;
    loop {
        let count = reader.accept(&wire[taken..]);
        reader.peek().expect("sound").expect("a whole frame");
        taken += count;
        if count == 0 {
            break;
        }
    }
    assert!(taken <= 2 * (MAX_BODY_BYTES + 8), "{taken}");
    assert_eq!(reader.take_grant(Channel::Transfer), None);
}

#[test]
fn more_than_the_credit_is_an_error() {
    // A sender that assumes a larger window than was granted.
    let mut writer = FrameWriter::new(8 * WINDOW as usize, 4 * WINDOW);
    let mut reader = FrameReader::new(WINDOW);
    let body = vec![1; 100_000];
    let mut failed = None;
    'sending: while writer.send(FrameType::Data, &body).expect("short") {
        let wire = drain(&mut writer);
        assert_eq!(reader.accept(&wire), wire.len());
        match reader.peek() {
            Ok(Some(_)) => reader.consume(),
            Ok(None) => {}
            Err(error) => {
                failed = Some(error);
                break 'sending;
            }
        }
    }
    let error = failed.expect("it was noticed");
    assert_eq!(error.kind(), ErrorKind::Exceeded);
    assert_eq!(
        error.to_string(),
        "netsync protocol error: a frame of 100006 bytes on channel 3 exceeds the credit of 48516 \
         bytes at offset 1000060"
    );
}

#[test]
fn the_least_window_does_not_stop_for_ever() {
    let (mut writer, mut reader) = (FrameWriter::new(0, 0), FrameReader::new(0));
    for length in [100_000, MAX_BODY_BYTES, 1, MAX_BODY_BYTES] {
        let sent = writer.send(FrameType::RefRange, &vec![0; length]);
        assert!(sent.expect("short enough"));
        let wire = drain(&mut writer);
        assert_eq!(reader.accept(&wire), wire.len());
        reader.peek().expect("sound").expect("whole");
        reader.consume();
        let grant = reader.take_grant(Channel::Refs).expect("due");
        writer.grant(Channel::Refs, grant).expect("few");
    }
}

/// Skipped frames are limited; otherwise a peer could send them without end.
#[test]
fn frames_of_unknown_types_are_passed_over_to_a_limit() {
    let mut reader = FrameReader::new(WINDOW);
    // On the control channel, which needs no credit.
    let mut frame = vec![0x02, 0x80, 0, 0, 0x80, 0];
    frame.resize(6 + 0x8000, 7);
    let mut skipped = 0;
    let error = loop {
        assert_eq!(reader.accept(&frame), frame.len());
        match reader.peek() {
            Ok(None) => skipped += frame.len(),
            Ok(Some(frame)) => panic!("{:?}", frame.kind),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Exceeded);
    assert!((900_000..=1 << 20).contains(&skipped), "{skipped}");
}
