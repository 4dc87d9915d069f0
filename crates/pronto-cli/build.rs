//! Compresses the manual pages for `help`, and reduces the costs of a process start, as far as linker
//! and libraries support that. Otherwise the build uses the defaults.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ORDER}");
    println!("cargo::rerun-if-env-changed={LINKAGE}");
    println!("cargo::rustc-check-cfg=cfg(static_start)");
    println!("cargo::rerun-if-changed={PAGES}");
    println!("cargo::rerun-if-changed={SETTINGS}");
    compress_manual().expect("the manual pages and the table of settings can be read");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" {
        return;
    }
    // Relocations are packed, which costs the loader one or two instructions for each.
    println!("cargo::rustc-link-arg-bins={PACKED}");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && let Some(arguments) = arguments_of_lld()
    {
        for argument in arguments {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
    if env::var("HOST") != env::var("TARGET") {
        return;
    }
    if let Err(error) = link_unwinder_statically() {
        println!("cargo::warning=the unwinder stays a shared library: {error}");
    }
    if env::var(LINKAGE).is_ok_and(|linkage| linkage == "dynamic") {
        return;
    }
    match arguments_for_static() {
        Ok(arguments) => {
            for argument in arguments {
                println!("cargo::rustc-link-arg-bins={argument}");
            }
            if target("ARCH") == "x86_64" {
                println!("cargo::rustc-cfg=static_start");
                println!("cargo::rustc-link-arg-bin=pronto=-Wl,-e,pronto_start");
            }
        }
        Err(error) => println!("cargo::warning=the C library stays a shared library: {error}"),
    }
}

/// The directory of the manual pages, which `cargo xtask docs` writes: a link to `docs/man`. A package
/// for a registry contains the pages in its place.
const PAGES: &str = "man";

/// The table of Git's settings: a link to `docs/settings.tsv`.
const SETTINGS: &str = "settings.tsv";

/// The level of the compression; ten is the highest.
const COMPRESSION_LEVEL: u8 = 9;

/// Compresses the manual pages, and the names of the configuration variables, into the archive that
/// `src/manual.rs` contains: for each part its name, its length in bytes and its text.
fn compress_manual() -> io::Result<()> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(PAGES)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        pages.push((name.into_owned(), fs::read_to_string(&path)?));
    }
    pages.sort();
    let settings = fs::read_to_string(SETTINGS)?;
    let keys = settings.lines().filter_map(|line| {
        let (kind, rest) = line.split_once('\t')?;
        let key = rest.split('\t').next()?;
        kind.starts_with("config").then(|| format!("{key}\n"))
    });
    pages.push(("settings".to_owned(), keys.collect()));
    let mut whole = String::new();
    for (name, text) in pages {
        whole.push_str(&format!("{name}\n{}\n{text}", text.len()));
    }
    let archive = miniz_oxide::deflate::compress_to_vec(whole.as_bytes(), COMPRESSION_LEVEL);
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&folder).join("manual.bin"), archive)
}

/// The environment variable that selects the linkage. The value `dynamic` keeps the C library a
/// shared library, for tools that replace its functions (`LD_PRELOAD`).
const LINKAGE: &str = "PRONTO_LINKAGE";

const PACKED: &str = "-Wl,-z,pack-relative-relocs";

/// Returns the linker arguments that link the C library statically into the programs, at a random
/// address like all other code (`-static-pie`). Then a start needs no search and no mapping of
/// libraries, and no lookup of symbols; and the programs run on systems with an older C library.
///
/// The compiler names shared libraries to the linker. As in [`link_unwinder_statically`], linker
/// scripts with their names refer to the static libraries.
fn arguments_for_static() -> io::Result<[String; 2]> {
    const LIBRARIES: [&str; 6] = ["c", "m", "dl", "pthread", "rt", "util"];
    let unwinder = path_of_library("libgcc_eh.a")?;
    let helpers = path_of_library("libgcc.a")?;
    let basis = path_of_library("libc.a")?;
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    let folder = PathBuf::from(folder);
    let scripts = folder.join("static");
    fs::create_dir_all(&scripts)?;
    for name in LIBRARIES {
        let library = path_of_library(&format!("lib{name}.a"))?;
        let script = format!("GROUP({library} {unwinder} {helpers} {basis})\n");
        fs::write(scripts.join(format!("lib{name}.so")), script)?;
    }
    let script = format!("GROUP({unwinder} {helpers} {basis})\n");
    fs::write(scripts.join("libgcc_s.so"), script)?;
    let arguments = ["-static-pie".to_owned(), format!("-L{}", scripts.display())];
    let probe = Probe {
        folder,
        name: "static",
        source: THREADS_AND_PANICS,
    };
    let packed = [
        arguments[0].clone(),
        arguments[1].clone(),
        PACKED.to_owned(),
    ];
    // An old C library does not support packed relocations, and the program would crash.
    match probe.links(&packed) && probe.runs() {
        true => Ok(arguments),
        false => Err(io::Error::other("a static program does not run")),
    }
}

/// A test program that uses the same parts of the C library and of the unwinder as other programs.
const THREADS_AND_PANICS: &str = r#"
fn main() {
    let thread = std::thread::spawn(|| std::env::args().count());
    assert_eq!(thread.join().expect("it ends"), 1);
    std::panic::set_hook(Box::new(|_| {}));
    assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
}
"#;

/// Merges functions with the same instructions, and constants with the same content: vtables and
/// panic locations, which each instance of a generic type duplicates. No code compares their
/// addresses. `static`s whose addresses are compared have different contents.
const MERGE_IDENTICAL: &str = "-Wl,--icf=all,--ignore-data-address-equality";

/// The file that lists the functions which small calls run.
const ORDER: &str = "start-order.txt";

/// Returns the arguments for LLVM's linker, which is Rust's default linker; `None` for any other
/// linker.
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
    let probe = Probe {
        folder,
        name: "order",
        source: "fn main() {}\n",
    };
    probe.links(&arguments).then_some(arguments)
}

/// Returns a linker script that places the functions of `list` before all others, in their order.
/// The kernel maps 16 pages of code at a time, so adjacent functions cause fewer page faults.
fn order_of_functions(list: &str) -> String {
    let mut script = "SECTIONS {\n  .text.start : {\n".to_owned();
    for name in list.lines().filter(|line| !line.starts_with('#')) {
        let part = match name.contains(':') {
            // The name is a member of the C library: `libc.a:malloc.o`.
            true => format!("    *{name}(.text .text.*)\n"),
            // Functions that are marked as cold have sections of their own.
            false => format!("    *(.text.{name} .text.unlikely.{name})\n"),
        };
        script.push_str(&part);
    }
    script.push_str("  }\n} INSERT BEFORE .text;\n");
    script
}

/// A test program that shows whether the linker supports arguments.
struct Probe {
    folder: PathBuf,
    name: &'static str,
    source: &'static str,
}

impl Probe {
    /// Returns whether the linker accepts these arguments.
    fn links(&self, arguments: &[String]) -> bool {
        let source = self.folder.join(format!("{}.rs", self.name));
        if fs::write(&source, self.source).is_err() {
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
        let compiler = compiler.arg("-o").arg(self.program()).arg(&source);
        compiler
            .output()
            .is_ok_and(|probed| probed.status.success())
    }

    /// Returns whether the linked program runs.
    fn runs(&self) -> bool {
        let ran = Command::new(self.program()).output();
        ran.is_ok_and(|ran| ran.status.success())
    }

    fn program(&self) -> PathBuf {
        self.folder.join(format!("{}-probe", self.name))
    }
}

/// Links the unwinder statically, so that the loader has one library less to find, map and
/// relocate. The compiler requests it by the name of a shared library, so a linker script of that
/// name refers to the static library. The directory of the script precedes the directories of the
/// linker.
fn link_unwinder_statically() -> io::Result<()> {
    let path = path_of_library("libgcc_eh.a")?;
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(
        Path::new(&folder).join("libgcc_s.so"),
        format!("GROUP({path} -lgcc -lc)\n"),
    )?;
    println!("cargo::rustc-link-search=native={folder}");
    Ok(())
}

/// Returns the path of a static library of the C compiler.
fn path_of_library(archive: &str) -> io::Result<String> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let found = Command::new(compiler)
        .arg(format!("-print-file-name={archive}"))
        .output()?;
    // A compiler that lacks the library prints the name unchanged.
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    match Path::new(&path).is_absolute() {
        true => Ok(path),
        false => Err(io::Error::other(format!("the compiler has no {archive}"))),
    }
}
