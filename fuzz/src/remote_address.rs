//! Fuzzes URLs and scp-like addresses, as users and configuration give them.

use bstr::ByteSlice;

pub(crate) fn run(data: &[u8]) {
    let _ = pronto_wire::address::RemoteAddress::parse(data.as_bstr());
    let _ = pronto_wire::address::without_credentials(data.as_bstr());
}
