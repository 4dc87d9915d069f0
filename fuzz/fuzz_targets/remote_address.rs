//! URLs and scp-like addresses, as users and configuration give them.
#![no_main]

use bstr::ByteSlice;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = pronto_wire::address::Address::parse(data.as_bstr());
    let _ = pronto_wire::address::without_credentials(data.as_bstr());
});
