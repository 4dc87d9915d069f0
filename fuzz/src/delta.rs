//! Fuzzes a delta that is applied to a base. Both are untrusted, and the first byte gives the
//! length of the first part.

pub(crate) fn run(data: &[u8]) {
    let Some((&cut, rest)) = data.split_first() else {
        return;
    };
    let (base, delta) = rest.split_at(usize::from(cut).min(rest.len()));
    let mut out = Vec::new();
    if pronto_pack::delta::apply(base, delta, &mut out).is_ok() {
        let sizes = pronto_pack::delta::sizes(delta).expect("it was applied");
        assert_eq!(sizes.result_bytes, out.len() as u64);
    }
}
