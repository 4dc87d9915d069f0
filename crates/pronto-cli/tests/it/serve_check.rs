//! The findings of `serve --check`.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use test_support::authority::{IssuedCertificate, self_signed};
use test_support::skip;

use crate::support::{Scratch, process, pronto, pronto_path, stderr, stdout};

/// Dates that contain today.
const VALID: [&str; 2] = ["20200101000000Z", "20990101000000Z"];

/// A configuration that has nothing to find.
const GOOD: &str = "root = \"root\"\n[http]\nlisten = [\"127.0.0.1:0\"]\n";

fn check(directory: &Path, text: &str) -> Output {
    std::fs::write(directory.join("server.toml"), text).expect("a file");
    let mut command = pronto();
    command.args(["serve", "--config", "server.toml", "--check"]);
    command.current_dir(directory).output().expect("it starts")
}

/// Checks a configuration that is valid. Returns the warnings.
fn warnings(directory: &Path, text: &str) -> String {
    let output = check(directory, text);
    assert!(output.status.success(), "{text}: {}", stderr(&output));
    assert_eq!(stdout(&output), "the configuration is valid\n");
    stderr(&output)
}

/// Checks a configuration that is not valid. Returns the problems.
fn problems(directory: &Path, text: &str) -> String {
    let output = check(directory, text);
    assert_eq!(
        output.status.code(),
        Some(128),
        "{text}: {}",
        stderr(&output)
    );
    assert_eq!(stdout(&output), "");
    stderr(&output)
}

fn site() -> Scratch {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("root")).expect("a directory");
    scratch
}

#[test]
fn unknown_settings_lead_to_similar_ones() {
    let scratch = site();
    for (text, expected) in [
        (
            "rooot = \"root\"",
            "/server.toml:1: unknown setting 'rooot' before the first section; did you mean 'root'?\n",
        ),
        (
            "[http]\nlisten = []\npublic_ulr = \"\"",
            "/server.toml:3: unknown setting 'public_ulr' in [http]; did you mean 'public_url'?\n",
        ),
        (
            "[limit]\nrequests = 3",
            "/server.toml:1: unknown section [limit]; did you mean 'limits'?\n",
        ),
        (
            "[[grant]]\nrepository = \"**\"\nuser = [\"a\"]\nrole = \"read\"",
            "/server.toml:3: unknown setting 'user' in [grant]; did you mean 'users'?\n",
        ),
    ] {
        let found = problems(scratch.path(), text);
        assert!(found.ends_with(expected), "{text}: {found}");
    }
}

#[test]
fn certificates_are_checked_with_their_dates_and_keys() {
    let scratch = site();
    let names = "subjectAltName=DNS:localhost\n";
    let soon = day_after(13);
    let later = day_after(20);
    let tls = format!("{GOOD}tls_certificate = \"c.pem\"\ntls_key = \"k.pem\"\n");
    let write = |made: &IssuedCertificate| {
        std::fs::write(scratch.join("c.pem"), &made.certificate).expect("a file");
        std::fs::write(scratch.join("k.pem"), &made.key).expect("a file");
    };
    let Some(good) = self_signed(names, VALID) else {
        skip!("openssl is not installed");
    };
    let make = |from: &str, to: &str| self_signed(names, [from, to]).expect("openssl is there");
    write(&good);
    assert_eq!(warnings(scratch.path(), &tls), "");
    write(&make(VALID[0], &later));
    assert_eq!(warnings(scratch.path(), &tls), "");
    write(&make(VALID[0], &soon));
    let found = warnings(scratch.path(), &tls);
    assert!(found.starts_with("warning: certificate '"), "{found}");
    assert!(found.contains("/c.pem' expires at 20"), "{found}");
    write(&make(VALID[0], "20200201000000Z"));
    let found = problems(scratch.path(), &tls);
    assert!(
        found.contains("/c.pem' expired at 2020-02-01T00:00:00Z"),
        "{found}"
    );
    write(&make("20980101000000Z", VALID[1]));
    let found = problems(scratch.path(), &tls);
    assert!(
        found.contains("/c.pem' is not valid before 2098-01-01T00:00:00Z"),
        "{found}"
    );
    // The second certificate of a chain.
    let old = make(VALID[0], "20200201000000Z");
    let chain = [good.certificate.as_str(), "\n", &old.certificate].concat();
    std::fs::write(scratch.join("c.pem"), chain).expect("a file");
    std::fs::write(scratch.join("k.pem"), &good.key).expect("a file");
    let found = problems(scratch.path(), &tls);
    assert!(
        found.contains("certificate 2 in '") && found.contains("expired"),
        "{found}"
    );
    // The key of another certificate.
    write(&good);
    std::fs::write(scratch.join("k.pem"), &old.key).expect("a file");
    let found = problems(scratch.path(), &tls);
    assert!(
        found.contains("/c.pem' does not belong to private key '"),
        "{found}"
    );
    assert!(found.contains("/k.pem'"), "{found}");
}

/// Returns the date of a day after today, as openssl takes it.
fn day_after(days: u32) -> String {
    let output = std::process::Command::new("date")
        .args(["-u", "-d", &format!("{days} days"), "+%Y%m%d%H%M%SZ"])
        .output()
        .expect("date starts");
    stdout(&output).trim().to_owned()
}

#[test]
fn users_and_repositories_that_do_not_exist_are_named() {
    let scratch = site();
    let run = |arguments: &[&str]| {
        let mut command = pronto();
        command
            .args(["serve", "--config", "server.toml"])
            .args(arguments);
        let output = command
            .current_dir(scratch.path())
            .output()
            .expect("it starts");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    };
    let text = format!(
        "{GOOD}[[grant]]\nrepository = \"team/**\"\nusers = [\"alice\", \"bob\", \"*\", \"anonymous\"]\n\
         role = \"read\"\n[[grant]]\nrepository = \"team/a\"\nusers = [\"bob\"]\nrole = \"write\"\n\
         [[rule]]\nrepository = \"team/b\"\nrefs = \"**\"\nusers = [\"carol\"]\n\
         [[quota]]\nrepository = \"team/a.git\"\nbytes = 1\n\
         [[certificate]]\nuser = \"dave\"\nsubject = \"Dave\"\n"
    );
    std::fs::write(scratch.join("server.toml"), &text).expect("a file");
    run(&["user", "add", "alice"]);
    run(&["repository", "create", "team/a"]);
    let expected = "warning: a grant names the user 'bob', who does not exist; 'user add bob' adds the user\n\
                    warning: a rule names the user 'carol', who does not exist; 'user add carol' adds the user\n\
                    warning: a [[certificate]] names the user 'dave', who does not exist; 'user add dave' adds the \
                    user\n\
                    warning: a rule names the repository 'team/b', which does not exist\n\
                    warning: a quota names the repository 'team/a.git', but names end without '.git'; use 'team/a'\n";
    assert_eq!(warnings(scratch.path(), &text), expected);
    for name in ["bob", "carol", "dave"] {
        run(&["user", "add", name]);
    }
    run(&["repository", "create", "team/b"]);
    let text = text.replace("team/a.git", "team/a");
    assert_eq!(warnings(scratch.path(), &text), "");
}

#[test]
fn all_directories_are_checked_at_once() {
    let scratch = site();
    std::fs::write(scratch.join("file"), "").expect("a file");
    let text = GOOD.replace(
        "root = \"root\"",
        "root = \"none\"\nusers = \"no/users.toml\"",
    ) + "[ssh]\nlisten = [\"127.0.0.1:0\"]\nhost_key = \"file/key\"\n\
           [netsync]\nlisten = [\"127.0.0.1:0\"]\nkey = \"gone/key\"\n[cache]\ndirectory = \"file\"\n";
    let found = problems(scratch.path(), &text);
    for part in [
        "directory of the users file '",
        "/no': ",
        "cannot serve '",
        "cache directory '",
        "directory of the netsync key '",
        "fatal: the configuration has ",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(found.lines().count() >= 6, "{found}");
}

#[test]
fn directories_that_cannot_be_written_are_found() {
    let scratch = site();
    std::fs::create_dir(scratch.join("users")).expect("a directory");
    let text = format!(
        "users = \"users/users.toml\"\ncreate_on_push = true\n{GOOD}[[grant]]\nrepository = \"**\"\n\
         users = [\"anonymous\"]\nrole = \"admin\"\n"
    );
    assert_eq!(warnings(scratch.path(), &text), "");
    let set = |mode: u32| {
        for name in ["root", "users"] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(scratch.join(name), mode).expect("it is there");
        }
    };
    set(0o555);
    // Root may write everywhere, unless it lacks these capabilities.
    let mut command = match rustix::process::geteuid().is_root() {
        true => {
            let mut command = process("setpriv");
            command.arg("--bounding-set=-dac_override,-dac_read_search");
            command.arg(pronto_path());
            command
        }
        false => pronto(),
    };
    command.args(["serve", "--config", "server.toml", "--check"]);
    let output = command
        .current_dir(scratch.path())
        .output()
        .expect("it starts");
    set(0o755);
    assert_eq!(output.status.code(), Some(128), "{}", stderr(&output));
    let found = stderr(&output);
    for part in [
        "error: directory of the users file '",
        "/users' is not writable\n",
        "error: directory of repositories '",
        "/root' is not writable\n",
        "fatal: the configuration has 2 problems\n",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn addresses_in_use_are_warnings() {
    let scratch = site();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it is bound");
    let text = GOOD.replace("127.0.0.1:0", &address.to_string());
    let found = warnings(scratch.path(), &text);
    assert!(
        found.starts_with(&format!(
            "warning: 'listen' of [http]: cannot listen on {address}: "
        )),
        "{found}"
    );
    drop(taken);
    let text = format!("{text}[ssh]\nlisten = [\"{address}\"]\n");
    let found = problems(scratch.path(), &text);
    assert!(
        found.contains(&format!("'listen' of [ssh]: {address} is used twice")),
        "{found}"
    );
}
