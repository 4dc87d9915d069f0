//! Fuzzes the deflater: contents that one deflater compresses one after another are inflated by
//! zlib-rs. The first byte gives the number and the lengths of the contents.

use pronto_pack::deflate::Deflater;
use zlib_rs::{Inflate, InflateFlush, Status};

pub(crate) fn run(data: &[u8]) {
    let Some((&parts, rest)) = data.split_first() else {
        return;
    };
    let mut deflater = Deflater::default();
    for (at, part) in rest
        .chunks(1 + rest.len() / (1 + usize::from(parts & 7)))
        .enumerate()
    {
        // Repetition makes several blocks, and matches across them.
        let content = part.repeat(1 + usize::from(parts >> 3) * at);
        let deflated = deflater.deflate(1, b"", &content);
        let mut out = vec![0; content.len() + 1];
        let mut inflate = Inflate::new(true, 15);
        let status = inflate.decompress(deflated, &mut out, InflateFlush::Finish);
        assert_eq!(status, Ok(Status::StreamEnd));
        assert_eq!(inflate.total_in(), deflated.len() as u64);
        assert!(out[..inflate.total_out() as usize] == content);
    }
}
