//! Tests that inflate the output with zlib-rs.

use zlib_rs::{Inflate, InflateFlush, Status};

use super::super::tables::{DISTANCES, LITERALS};
use super::super::text::{TEXT_DISTANCES, TEXT_LITERALS};
use super::*;

fn inflated(deflated: &[u8], len: usize) -> Vec<u8> {
    let mut inflate = Inflate::new(false, 15);
    let mut out = vec![0; len + 1];
    let status = inflate.decompress(deflated, &mut out, InflateFlush::Finish);
    assert_eq!(status, Ok(Status::StreamEnd));
    assert_eq!(
        inflate.total_in(),
        deflated.len() as u64,
        "all of it is read"
    );
    out.truncate(inflate.total_out() as usize);
    out
}

/// Deflates `content`, checks that inflating restores it, and returns the deflated size.
fn checked(fast: &mut Fast, content: &[u8]) -> usize {
    let mut out = vec![0xee; Fast::room_for(content)];
    let len = fast.deflate(content, &mut out);
    assert!(inflated(&out[..len], content.len()) == content);
    len
}

/// Bytes without any pattern.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Lines that look like a program.
fn program(len: usize) -> Vec<u8> {
    let line = |at: usize| {
        let (a, b) = (at * 7919 % 613, at * 104_729 % 97);
        format!("    let value_{a} = compute({b}, \"{}\");\n", a ^ b)
    };
    let mut text: Vec<u8> = (0..)
        .flat_map(|at| line(at).into_bytes())
        .take(len)
        .collect();
    text.truncate(len);
    text
}

#[test]
fn every_short_content_comes_back() {
    let mut fast = Fast::new();
    for len in 1..700 {
        checked(&mut fast, &program(len));
        checked(&mut fast, &noise(len as u64, len));
        checked(&mut fast, &vec![b'a'; len]);
    }
}

#[test]
fn blocks_end_anywhere() {
    let mut fast = Fast::new();
    let edges = [
        FIRST_BLOCK,
        FIRST_BLOCK + LAST_BLOCK,
        FIRST_BLOCK + BLOCK,
        FIRST_BLOCK + BLOCK + LAST_BLOCK,
    ];
    for len in edges.into_iter().flat_map(|edge| edge - 3..edge + 4) {
        checked(&mut fast, &program(len));
        checked(&mut fast, &noise(9, len));
        // Matches lead across the ends of blocks.
        checked(&mut fast, &vec![0; len]);
    }
}

#[test]
fn matches_reach_a_window_back_and_no_farther() {
    let mut fast = Fast::new();
    for far in WINDOW - 2..WINDOW + 3 {
        let mut content = noise(3, 300);
        content.resize(far, b'.');
        content.extend(noise(3, 300));
        checked(&mut fast, &content);
    }
}

#[test]
fn what_cannot_become_smaller_hardly_grows() {
    let mut fast = Fast::new();
    for len in [600, 5000, 70_000, 300_000] {
        let took = checked(&mut fast, &noise(5, len));
        assert!(
            took <= len + 5 * len.div_ceil(BLOCK / 2) + 5,
            "{len} became {took}"
        );
    }
}

#[test]
fn texts_and_others_become_small() {
    let mut fast = Fast::new();
    let text = program(100_000);
    assert!(checked(&mut fast, &text) < text.len() / 4);
    assert!(checked(&mut fast, &text[..4000]) < 1200);
    // Two kinds of bytes only, which have long codes where text is expected.
    let odd: Vec<u8> = noise(8, 40_000)
        .iter()
        .map(|byte| 0xf0 | byte & 1)
        .collect();
    let took = (checked(&mut fast, &odd), checked(&mut fast, &odd[..4000]));
    assert!(took.0 < 40_000 / 4 && took.1 < 4000 / 4, "{took:?}");
    assert!(checked(&mut fast, &vec![7; 1_000_000]) < 6000);
}

#[test]
fn contents_change_within() {
    let mut fast = Fast::new();
    let parts = [
        program(50_000),
        noise(1, 90_000),
        vec![b' '; 40_000],
        program(120_000),
    ];
    let took = checked(&mut fast, &parts.concat());
    assert!(took < 90_000 + 60_000, "{took}");
}

#[test]
fn the_count_of_bytes_starts_anew() {
    let mut fast = Fast::new();
    fast.base = u32::MAX - 150_000;
    for _ in 0..4 {
        checked(&mut fast, &program(60_000));
    }
    assert!(fast.base < 1_000_000);
}

#[test]
fn codes_of_text_are_whole() {
    let space = |lengths: &[u8]| lengths.iter().map(|len| 1 << (15 - len)).sum::<u32>();
    assert_eq!(TEXT_LITERALS.len(), LITERALS);
    assert_eq!(space(&TEXT_LITERALS), 1 << 15);
    assert_eq!(TEXT_DISTANCES.len(), DISTANCES);
    assert_eq!(space(&TEXT_DISTANCES), 1 << 15);
}
