//! Fuzzes two compressed bitmaps: reads them, combines them, and reads the result.

use pronto_io::ewah::{BitmapBuilder, Ewah};

/// The largest number of bits.
const BITS: u64 = 1 << 16;

pub(crate) fn run(data: &[u8]) {
    let mut rest = data;
    let Some(one) = Ewah::parse(&mut rest, BITS) else {
        return;
    };
    let Some(two) = Ewah::parse(&mut rest, BITS) else {
        return;
    };
    let mut words = vec![0; (BITS / 64) as usize];
    one.xor_into(&mut words);
    two.xor_into(&mut words);
    let mut combined = BitmapBuilder::new();
    assert!(one.xor(&two, &mut combined, usize::MAX));
    let mut bytes = Vec::new();
    combined.write((combined.len() * 64) as u32, &mut bytes);
    let read = Ewah::parse(&mut &bytes[..], BITS).expect("what is written is read");
    let mut back = vec![0; words.len()];
    read.or_into(&mut back);
    assert_eq!(back, words);
}
