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
