//! Fuzzes bundle lists, from files and from responses of servers.

use pronto::bstr::{BStr, BString, ByteSlice};
use pronto::bundle_uri::BundleList;

pub(crate) fn run(data: &[u8]) {
    let (base, text) = data.split_at(data.find_byte(b'\n').unwrap_or(0));
    let lines: Vec<BString> = text.lines().map(BString::from).collect();
    for list in [
        BundleList::parse(text, base.as_bstr()),
        BundleList::parse_lines(&lines, base.as_bstr()),
    ] {
        let Ok(list) = list else {
            continue;
        };
        let mut ids: Vec<&BStr> = list
            .in_order()
            .iter()
            .map(|entry| entry.id.as_bstr())
            .collect();
        assert_eq!(ids.len(), list.entries.len());
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), list.entries.len(), "each bundle comes once");
    }
}
