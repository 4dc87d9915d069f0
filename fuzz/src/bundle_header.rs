//! Fuzzes the header of a bundle: parses it, writes it, and parses the result.

use pronto_pack::bundle::BundleHeader;

pub(crate) fn run(data: &[u8]) {
    let mut source = data;
    let Ok(header) = BundleHeader::read(&mut source) else {
        return;
    };
    let mut written = Vec::new();
    header.write(&mut written);
    let again = BundleHeader::read(&mut &written[..]).expect("it was read before");
    assert_eq!(again, header);
}
