//! Keeps the start of the process cheap, where linkers and libraries allow it; else it stays as
//! it is.

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        // Addresses that the loader has to mend are packed: an instruction or two each.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        if env::var("HOST") == env::var("TARGET")
            && let Err(error) = link_unwinder_statically()
        {
            println!("cargo::warning=the unwinder stays a shared library: {error}");
        }
    }
}

/// Has the unwinder linked in, so that the loader has one library less to find, map and relocate.
/// It is asked for by the name of a shared library: this puts a linker script of that name, which
/// names the static one, before the linker's own folders.
fn link_unwinder_statically() -> io::Result<()> {
    const ARCHIVE: &str = "libgcc_eh.a";
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let found = Command::new(compiler)
        .arg(format!("-print-file-name={ARCHIVE}"))
        .output()?;
    // A compiler that does not have it repeats the name.
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    if !Path::new(&path).is_absolute() {
        return Err(io::Error::other(format!("the compiler has no {ARCHIVE}")));
    }
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(
        Path::new(&folder).join("libgcc_s.so"),
        format!("GROUP({path} -lgcc -lc)\n"),
    )?;
    println!("cargo::rustc-link-search=native={folder}");
    Ok(())
}
