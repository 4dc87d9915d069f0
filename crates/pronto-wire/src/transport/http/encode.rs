//! Encodings of request bodies.

/// The length above which requests are compressed, in bytes.
const LARGEST_PLAIN_REQUEST: usize = 1024;

/// Returns the compressed `body`; `None` if it is too short for compression.
pub(super) fn compressed(body: &[u8]) -> Option<Vec<u8>> {
    if body.len() <= LARGEST_PLAIN_REQUEST {
        return None;
    }
    let level = libdeflater::CompressionLvl::fastest();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut out = vec![0; compressor.gzip_compress_bound(body.len())];
    let length = compressor.gzip_compress(body, &mut out).ok()?;
    out.truncate(length);
    Some(out)
}

pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let value = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            if index <= chunk.len() {
                let digit = value >> (18 - 6 * index) & 63;
                out.push(char::from(DIGITS[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(base64(b"abcd"), "YWJjZA==");
        assert_eq!(base64(b"abc"), "YWJj");
    }
}
