//! The platform of a package, and what its programs need of it.

/// A platform for which packages are made.
#[derive(Clone, Copy)]
pub(super) struct Platform {
    /// The name of Rust.
    pub(super) triple: &'static str,
    /// The names of Debian, and of images of containers.
    pub(super) debian: &'static str,
    pub(super) image: &'static str,
    /// The compiler of Debian that links for this platform on another one.
    pub(super) linker: &'static str,
    /// The name in a tarball.
    pub(super) name: &'static str,
}

const PLATFORMS: &[Platform] = &[
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        image: "amd64",
        linker: "x86_64-linux-gnu-gcc",
        name: "x86_64-linux",
    },
    Platform {
        triple: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        image: "arm64",
        linker: "aarch64-linux-gnu-gcc",
        name: "aarch64-linux",
    },
];

impl Platform {
    /// Returns the platform with the name of Rust `triple`.
    ///
    /// # Errors
    /// Fails if there are no packages for it.
    pub(super) fn named(triple: &str) -> Result<Self, String> {
        let found = PLATFORMS.iter().find(|platform| platform.triple == triple);
        let known: Vec<&str> = PLATFORMS.iter().map(|platform| platform.triple).collect();
        let unknown = || {
            format!(
                "no packages for '{triple}': use one of {}",
                known.join(", ")
            )
        };
        found.copied().ok_or_else(unknown)
    }

    /// Returns the platform on which this program runs.
    ///
    /// # Errors
    /// Fails if there are no packages for it.
    pub(super) fn own() -> Result<Self, String> {
        let environment = if cfg!(target_env = "gnu") {
            "gnu"
        } else {
            "other"
        };
        let (machine, system) = (std::env::consts::ARCH, std::env::consts::OS);
        Platform::named(&format!("{machine}-unknown-{system}-{environment}"))
    }
}

/// Returns the version of glibc that a program needs, or `None` if the program contains its C
/// library: it names no loader.
pub(super) fn needed_glibc(program: &[u8]) -> Option<String> {
    if !names_loader(program) {
        return None;
    }
    let mut newest = (0, 0);
    for part in program.split(|&byte| byte == 0) {
        let version = std::str::from_utf8(part).ok();
        let version = version.and_then(|name| name.strip_prefix("GLIBC_"));
        // Packed relocations.
        let version = version.map(|version| {
            if version == "ABI_DT_RELR" {
                "2.36"
            } else {
                version
            }
        });
        let Some((major, minor)) = version.and_then(|version| version.split_once('.')) else {
            continue;
        };
        let minor = minor.split('.').next().unwrap_or_default();
        if let (Ok(major), Ok(minor)) = (major.parse::<u32>(), minor.parse::<u32>()) {
            newest = newest.max((major, minor));
        }
    }
    Some(format!("{}.{}", newest.0, newest.1))
}

/// Returns whether the ELF file has the segment `PT_INTERP`.
fn names_loader(program: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, length: usize| {
        let bytes = program.get(at..at + length).unwrap_or_default();
        bytes
            .iter()
            .rev()
            .fold(0, |sum, &byte| (sum << 8) | usize::from(byte))
    };
    let is_elf64 = program.starts_with(b"\x7fELF\x02\x01");
    let (start, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    is_elf64 && (0..count).any(|row| number(start + row * size, 4) == INTERPRETER as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_needs_a_version_of_glibc() {
        assert_eq!(needed_glibc(b"#!/bin/sh\n"), None);
        let mut program = vec![0; 120];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[32] = 64;
        program[54] = 56;
        program[56] = 1;
        assert_eq!(needed_glibc(&program), None);
        program[64] = 3;
        program.extend(b"\0GLIBC_2.4\0GLIBC_2.33\0GLIBC_2.2.5\0GLIBC_PRIVATE\0");
        assert_eq!(needed_glibc(&program).as_deref(), Some("2.33"));
        program.extend(b"GLIBC_ABI_DT_RELR\0");
        assert_eq!(needed_glibc(&program).as_deref(), Some("2.36"));
    }

    #[test]
    fn packages_are_for_known_platforms() {
        let platform = Platform::named("aarch64-unknown-linux-gnu").expect("it is known");
        assert_eq!(platform.debian, "arm64");
        assert!(Platform::named("x86_64-pc-windows-msvc").is_err());
    }
}
