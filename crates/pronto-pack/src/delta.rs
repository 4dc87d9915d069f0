//! Deltas: instructions that build an object from a base by copying and inserting. Format:
//! `gitformat-pack(5)`.

pub mod make;

use std::io;

use crate::error::{Error, ErrorKind};

/// The number of bytes that one step of a fast copy moves.
const CHUNK: usize = 32;

/// The two sizes in the header of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The size of the base in bytes.
    pub base_bytes: u64,
    /// The size in bytes of the result.
    pub result_bytes: u64,
    /// The length of the two sizes in the delta. The instructions follow.
    pub header_len: usize,
}

/// Parses the sizes at the start of `delta`, which take at most 20 bytes.
///
/// # Errors
/// Fails with `ErrorKind::Corrupt` if the delta ends within the sizes or a size exceeds 64 bits.
#[inline]
pub fn sizes(delta: &[u8]) -> Result<Sizes, Error> {
    let mut at = 0;
    let base_bytes = parse_size(delta, &mut at)?;
    let result_bytes = parse_size(delta, &mut at)?;
    Ok(Sizes {
        base_bytes,
        result_bytes,
        header_len: at,
    })
}

/// Applies `delta` to `base` and writes the result to `out`, replacing its content. If the declared
/// size is out of proportion, the sizes of all instructions are added up before memory is
/// allocated.
///
/// # Errors
/// Fails with `ErrorKind::Corrupt` if the delta is for a base of another size, copies from outside
/// the base, or does not build exactly the declared size; `out` is then unspecified.
pub fn apply(base: &[u8], delta: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let sizes = sizes(delta)?;
    let size = checked_result_len(base.len(), delta, &sizes)?;
    make_room(out, size);
    apply_into(base, delta, &sizes, out)
}

/// Sets the length of `out` to `size`, with unspecified content. Large allocations are already
/// zeroed by the system, so they are not written twice.
pub(crate) fn make_room(out: &mut Vec<u8>, size: usize) {
    const MUCH: usize = 128 << 10;
    const HUGE: usize = 4 << 20;
    if out.capacity() < size && size >= MUCH {
        *out = Vec::new();
        *out = vec![0; size];
        if size >= HUGE {
            pronto_io::memory::use_large_pages(out);
        }
    } else if out.len() < size {
        out.resize(size, 0);
    }
    out.truncate(size);
}

/// Returns the size of the result of `delta` for a base of `base_len` bytes, as a number that is
/// safe to allocate: a size that is out of proportion is checked against the instructions.
///
/// # Errors
/// Fails with `ErrorKind::Corrupt` if the base has another size or the instructions do not build
/// the declared size, and with `ErrorKind::Limit` if the result does not fit in memory.
#[inline]
pub fn checked_result_len(base_len: usize, delta: &[u8], sizes: &Sizes) -> Result<usize, Error> {
    if sizes.base_bytes != base_len as u64 {
        return Err(base_size());
    }
    let ordinary = 2 * (base_len as u64 + delta.len() as u64) + (1 << 20);
    if sizes.result_bytes > ordinary && sum_of(&delta[sizes.header_len..]) != sizes.result_bytes {
        return Err(corrupt(
            "corrupt delta: the result has another size than recorded",
        ));
    }
    usize::try_from(sizes.result_bytes).map_err(|_| {
        Error::new(
            ErrorKind::Limit,
            "object is too large for the memory of this machine",
        )
    })
}

/// Applies `delta` to `base` and fills `out`, whose length must be the [checked
/// size](checked_result_len).
///
/// # Errors
/// Fails with `ErrorKind::Corrupt` as [`apply`] does.
pub fn apply_into(base: &[u8], delta: &[u8], sizes: &Sizes, out: &mut [u8]) -> Result<(), Error> {
    let mut from = sizes.header_len;
    let mut to = 0;
    while let Some(&instruction) = delta.get(from) {
        from += 1;
        if instruction & 0x80 != 0 {
            let (start, len) = parse_copy(instruction, delta, &mut from).ok_or_else(cut_short)?;
            copy(base, start, out, to, len).ok_or_else(out_of_bounds)?;
            to += len;
        } else if instruction != 0 {
            let len = usize::from(instruction);
            copy(delta, from, out, to, len).ok_or_else(out_of_bounds)?;
            from += len;
            to += len;
        } else {
            return Err(opcode());
        }
    }
    if to != out.len() {
        return Err(corrupt(
            "corrupt delta: the result has another size than recorded",
        ));
    }
    Ok(())
}

/// Applies `delta` to `base` and writes the result to `out`, without holding the result in memory.
///
/// # Errors
/// Fails with `ErrorKind::Corrupt` as [`apply`] does, and with `ErrorKind::Io` if writing fails.
pub fn apply_to(base: &[u8], delta: &[u8], out: &mut dyn io::Write) -> Result<(), Error> {
    let sizes = sizes(delta)?;
    if sizes.base_bytes != base.len() as u64 {
        return Err(base_size());
    }
    let (mut from, mut left) = (sizes.header_len, sizes.result_bytes);
    while let Some(&instruction) = delta.get(from) {
        from += 1;
        let run = if instruction & 0x80 != 0 {
            let (start, len) = parse_copy(instruction, delta, &mut from).ok_or_else(cut_short)?;
            start.checked_add(len).and_then(|end| base.get(start..end))
        } else if instruction != 0 {
            let end = from + usize::from(instruction);
            let run = delta.get(from..end);
            from = end;
            run
        } else {
            return Err(opcode());
        };
        let run = run.ok_or_else(out_of_bounds)?;
        left = left
            .checked_sub(run.len() as u64)
            .ok_or_else(out_of_bounds)?;
        out.write_all(run)
            .map_err(|error| Error::new(ErrorKind::Io, "unable to write").because(error))?;
    }
    if left != 0 {
        return Err(corrupt(
            "corrupt delta: the result has another size than recorded",
        ));
    }
    Ok(())
}

/// Copies `len` bytes. Most runs are short; they are copied in chunks of a fixed size if there is
/// space after them. The next run overwrites the excess bytes.
#[inline(always)]
fn copy(source: &[u8], start: usize, out: &mut [u8], to: usize, len: usize) -> Option<()> {
    if len <= CHUNK {
        let room_in = source
            .get(start..)
            .and_then(|rest| rest.first_chunk::<CHUNK>());
        let room_out = out
            .get_mut(to..)
            .and_then(|rest| rest.first_chunk_mut::<CHUNK>());
        if let (Some(source), Some(out)) = (room_in, room_out) {
            *out = *source;
            return Some(());
        }
    }
    let source = source.get(start..start.checked_add(len)?)?;
    out.get_mut(to..to.checked_add(len)?)?
        .copy_from_slice(source);
    Some(())
}

/// Parses the offset and the length of a copy instruction. The bits of its first byte select the
/// bytes that follow.
#[inline(always)]
pub(crate) fn parse_copy(
    instruction: u8,
    delta: &[u8],
    from: &mut usize,
) -> Option<(usize, usize)> {
    let mask = usize::from(instruction & 0x7f);
    let used = mask.count_ones() as usize;
    let fields = if let Some(bytes) = delta.get(*from..).and_then(|rest| rest.first_chunk::<8>()) {
        u64::from_le_bytes(*bytes)
    } else {
        let rest = delta.get(*from..*from + used)?;
        let mut bytes = [0; 8];
        bytes[..used].copy_from_slice(rest);
        u64::from_le_bytes(bytes)
    };
    *from += used;
    let mut fields = fields;
    let mut value = 0u64;
    let mut bit = 0;
    while bit < 7 {
        if mask >> bit & 1 != 0 {
            value |= (fields & 0xff) << (8 * bit);
            fields >>= 8;
        }
        bit += 1;
    }
    let start = (value & 0xffff_ffff) as usize;
    let len = (value >> 32) as usize;
    Some((start, if len == 0 { 0x10000 } else { len }))
}

/// Returns the size of the result, computed from the instructions without a base. Saturates; a
/// malformed instruction ends the sum.
fn sum_of(instructions: &[u8]) -> u64 {
    let mut sum = 0u64;
    let mut from = 0;
    while let Some(&instruction) = instructions.get(from) {
        from += 1;
        if instruction & 0x80 != 0 {
            let Some((_, len)) = parse_copy(instruction, instructions, &mut from) else {
                break;
            };
            sum = sum.saturating_add(len as u64);
        } else {
            sum = sum.saturating_add(u64::from(instruction));
            from += usize::from(instruction);
        }
    }
    sum
}

/// Parses a size with seven bits in each byte, least significant first.
#[inline]
fn parse_size(delta: &[u8], at: &mut usize) -> Result<u64, Error> {
    let mut size = 0u64;
    let mut shift = 0;
    loop {
        let byte = *delta.get(*at).ok_or_else(cut_short)?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if shift > 63 || (bits << shift) >> shift != bits {
            return Err(corrupt("corrupt delta: a size exceeds 64 bits"));
        }
        size |= bits << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Ok(size);
        }
    }
}

#[cold]
fn cut_short() -> Error {
    corrupt("corrupt delta: truncated instruction")
}

#[cold]
fn out_of_bounds() -> Error {
    corrupt("corrupt delta: an instruction exceeds the base or the result")
}

#[cold]
fn base_size() -> Error {
    let message = "corrupt delta: the base has another size than recorded";
    Error::new(ErrorKind::BaseSize, message)
}

#[cold]
fn opcode() -> Error {
    Error::new(ErrorKind::DeltaOpcode, "unexpected delta opcode 0")
}

#[cold]
fn corrupt(message: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes deltas without any optimisation.
    #[derive(Default)]
    struct Maker(Vec<u8>);

    impl Maker {
        fn new(base_len: u64, result_len: u64) -> Self {
            let mut maker = Maker::default();
            maker.size(base_len);
            maker.size(result_len);
            maker
        }

        fn size(&mut self, mut size: u64) {
            while size >= 0x80 {
                self.0.push(size as u8 | 0x80);
                size >>= 7;
            }
            self.0.push(size as u8);
        }

        fn copy(&mut self, start: u32, len: u32) {
            let at = self.0.len();
            self.0.push(0x80);
            for (bit, byte) in start.to_le_bytes().into_iter().enumerate() {
                if byte != 0 {
                    self.0[at] |= 1 << bit;
                    self.0.push(byte);
                }
            }
            let len = if len == 0x10000 { 0 } else { len };
            for (bit, byte) in len.to_le_bytes()[..3].iter().enumerate() {
                if *byte != 0 {
                    self.0[at] |= 0x10 << bit;
                    self.0.push(*byte);
                }
            }
        }

        fn insert(&mut self, bytes: &[u8]) {
            for piece in bytes.chunks(127) {
                self.0.push(piece.len() as u8);
                self.0.extend_from_slice(piece);
            }
        }
    }

    fn random(state: &mut u64, below: usize) -> usize {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((*state >> 33) as usize) % below.max(1)
    }

    #[test]
    fn random_deltas_yield_what_they_describe() {
        let mut state = 7;
        let mut out = Vec::new();
        for round in 0..2000 {
            let base: Vec<u8> = (0..random(&mut state, 200_000 >> (round % 17)))
                .map(|at| (at ^ (at >> 5)) as u8)
                .collect();
            let mut expected = Vec::new();
            let mut body = Maker::default();
            for _ in 0..random(&mut state, 20) {
                if random(&mut state, 2) == 0 && !base.is_empty() {
                    let start = random(&mut state, base.len());
                    let len = 1 + random(&mut state, (base.len() - start).min(0xff_ffff));
                    body.copy(start as u32, len as u32);
                    expected.extend_from_slice(&base[start..start + len]);
                } else {
                    let bytes = vec![random(&mut state, 256) as u8; random(&mut state, 300)];
                    body.insert(&bytes);
                    expected.extend_from_slice(&bytes);
                }
            }
            let mut delta = Maker::new(base.len() as u64, expected.len() as u64);
            delta.0.extend_from_slice(&body.0);
            apply(&base, &delta.0, &mut out).expect("it is sound");
            assert_eq!(out, expected);
            for _ in 0..4 {
                let mut broken = delta.0.clone();
                let at = random(&mut state, broken.len());
                broken[at] ^= 1 << random(&mut state, 8);
                let _ = apply(&base, &broken, &mut out);
                let _ = apply(&base, &broken[..at], &mut out);
            }
        }
    }

    #[test]
    fn broken_deltas_are_refused() {
        let base = b"0123456789";
        let with = |result: u64, body: &dyn Fn(&mut Maker)| {
            let mut maker = Maker::new(10, result);
            body(&mut maker);
            maker.0
        };
        const END: &str = "corrupt delta: truncated instruction";
        const OUTSIDE: &str = "corrupt delta: an instruction exceeds the base or the result";
        const BASE: &str = "corrupt delta: the base has another size than recorded";
        const SIZE: &str = "corrupt delta: the result has another size than recorded";
        let cases: Vec<(&str, Vec<u8>, &str)> = vec![
            ("empty", vec![], END),
            ("one size", vec![10], END),
            ("wrong base", Maker::new(11, 0).0, BASE),
            (
                "opcode 0",
                with(1, &|maker| maker.0.push(0)),
                "unexpected delta opcode 0",
            ),
            (
                "copy past the base",
                with(8, &|maker| maker.copy(3, 8)),
                OUTSIDE,
            ),
            (
                "copy far past the base",
                with(8, &|maker| maker.copy(u32::MAX, 8)),
                OUTSIDE,
            ),
            (
                "insert past the delta",
                with(8, &|maker| maker.0.push(8)),
                OUTSIDE,
            ),
            ("too little", with(9, &|maker| maker.copy(0, 8)), SIZE),
            ("too much", with(7, &|maker| maker.copy(0, 8)), OUTSIDE),
            ("cut copy", with(8, &|maker| maker.0.push(0xff)), END),
            ("absurd", with(u64::MAX, &|maker| maker.copy(0, 8)), SIZE),
            (
                "a size of 70 bits",
                vec![0xff; 10],
                "corrupt delta: a size exceeds 64 bits",
            ),
        ];
        for (name, delta, message) in cases {
            let mut out = Vec::new();
            let error = apply(base, &delta, &mut out).expect_err(name);
            let kind = match name {
                "wrong base" => ErrorKind::BaseSize,
                "opcode 0" => ErrorKind::DeltaOpcode,
                _ => ErrorKind::Corrupt,
            };
            let found = (error.kind(), error.message());
            assert_eq!(found, (kind, message), "{name}");
            assert!(out.capacity() < 4096, "{name}");
        }
    }
}
