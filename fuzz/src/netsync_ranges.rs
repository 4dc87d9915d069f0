//! Fuzzes ranges of netsync, from a peer with arbitrary responses.

use pronto_netsync::reconcile::{
    Fingerprinter, LEAST_MESSAGE_BYTES, Options, Reconciler, SetBuilder,
};

pub(crate) fn run(data: &[u8]) {
    let key = Fingerprinter::new([0; 32]);
    let mut builder = SetBuilder::default();
    for at in 0..100u8 {
        builder.push(&[b'a' + at % 7, at], &[at; 20]);
    }
    let Ok(set) = builder.finish(&key) else {
        return;
    };
    let mut options = Options::default();
    options.message_bytes = LEAST_MESSAGE_BYTES;
    options.turns = 16;
    options.learned_bytes = 1 << 20;
    let mut side = Reconciler::new(&set, &key, options);
    for message in data.split(|&byte| byte == 0xfe) {
        match side.receive(message) {
            Ok(Some(answer)) => assert!(answer.len() <= LEAST_MESSAGE_BYTES),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    assert!(side.lacking().iter().all(|&at| at < set.len()));
}
