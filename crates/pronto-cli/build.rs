//! Keeps the start of the process cheap, where linkers and libraries allow it; else it stays as
//! it is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ORDER}");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        // Addresses that the loader has to mend are packed: an instruction or two each.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        if env::var("PROFILE").is_ok_and(|profile| profile == "release")
            && let Some(arguments) = arguments_of_lld()
        {
            for argument in arguments {
                println!("cargo::rustc-link-arg-bins={argument}");
            }
        }
        if env::var("HOST") == env::var("TARGET")
            && let Err(error) = link_unwinder_statically()
        {
            println!("cargo::warning=the unwinder stays a shared library: {error}");
        }
    }
}

/// Merges functions with the same instructions, and constants with the same content: the tables of methods and the
/// places of panics that each use of a generic type brings again. Nothing compares the addresses of either: those of
/// `static`s that are compared have different content.
const MERGE_IDENTICAL: &str = "-Wl,--icf=all,--ignore-data-address-equality";

/// The functions that small calls run.
const ORDER: &str = "start-order.txt";

/// Returns the arguments for LLVM's linker, which is the usual one since Rust 1.90; `None` for another.
fn arguments_of_lld() -> Option<[String; 2]> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let script = folder.join("start-order.ld");
    fs::write(
        &script,
        order_of_functions(&fs::read_to_string(ORDER).ok()?),
    )
    .ok()?;
    let arguments = [
        MERGE_IDENTICAL.to_owned(),
        format!("-Wl,-T,{}", script.display()),
    ];
    links(&folder, &arguments).then_some(arguments)
}

/// Returns a script of the linker that puts the functions of `list` before all others, in their order. The kernel maps
/// 16 pages of code at a time, so that a call that needs 80 functions takes few page faults if they lie together.
fn order_of_functions(list: &str) -> String {
    let mut script = "SECTIONS {\n  .text.start : {\n".to_owned();
    for name in list.lines().filter(|line| !line.starts_with('#')) {
        script.push_str("    *(.text.");
        script.push_str(name);
        script.push_str(")\n");
    }
    script.push_str("  }\n} INSERT BEFORE .text;\n");
    script
}

/// Returns whether the linker takes these arguments.
fn links(folder: &Path, arguments: &[String]) -> bool {
    let source = folder.join("probe.rs");
    if fs::write(&source, "fn main() {}\n").is_err() {
        return false;
    }
    let mut compiler = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler.arg("--edition=2024");
    for argument in arguments {
        compiler.args(["-C", &format!("link-arg={argument}")]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.args(["-C", &format!("linker={linker}")]);
    }
    if let Ok(target) = env::var("TARGET") {
        compiler.args(["--target", &target]);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    compiler.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    let probed = compiler
        .arg("-o")
        .arg(folder.join("probe"))
        .arg(&source)
        .output();
    probed.is_ok_and(|probed| probed.status.success())
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
