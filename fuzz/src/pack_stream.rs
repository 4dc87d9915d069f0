//! Fuzzes a whole pack as it is received. The trailer is corrected, so that the fuzzer reaches the
//! code after its check.

use pronto_hash::{Kind, TrailerDigester};
use pronto_pack::indexer::{IndexContext, Options, index_stream};

pub(crate) fn run(data: &[u8]) {
    let mut pack = b"PACK\0\0\0\x02\0\0\0".to_vec();
    pack.extend_from_slice(data);
    let mut digester = TrailerDigester::new(Kind::Sha1);
    digester.update(&pack);
    pack.extend_from_slice(digester.finish().as_slice());
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = Options::default();
    options.threads = 1;
    options.sync = pronto_io::sync::SyncMethod::No;
    let _ = index_stream(
        &mut &pack[..],
        directory.path(),
        &options,
        &IndexContext::default(),
    );
}
