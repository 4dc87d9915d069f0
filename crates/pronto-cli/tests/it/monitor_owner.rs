//! A monitor serves its owner with any umask, and is trusted only if the right user runs it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use test_support::{Need, lacks};

use crate::monitor::{git, repository};
use crate::support::{Scratch, process, pronto, pronto_path};

/// Runs `arguments` as a user without files here.
fn as_nobody(program: &Path, top: &Path, arguments: &[&str]) -> std::process::Output {
    process("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .args(arguments)
        .current_dir(top)
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .output()
        .expect("setpriv starts")
}

/// Says why another user cannot be tried on `scratch`: the process is not root, or the user cannot go there.
fn other_user_is_hindered(scratch: &Path) -> Option<&'static str> {
    if !Need::OtherUser.is_met() {
        return Some("only root can be another user");
    }
    let is_closed = |directory: &Path| {
        let metadata = directory.metadata().expect("it is there");
        metadata.permissions().mode() & 0o001 == 0
    };
    let mut above = scratch.ancestors().skip(1);
    above
        .any(is_closed)
        .then_some("other users may not enter the directory of temporary files")
}

#[test]
fn the_monitor_answers_its_owner_with_any_umask() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let status = process("sh")
        .args(["-c", "umask 0; exec \"$@\"", "sh"])
        .arg(pronto_path())
        .args(["fsmonitor--daemon", "start"])
        .current_dir(&top)
        .status();
    assert!(status.expect("it starts").success());
    let command = |name: &str| {
        let output = pronto()
            .args(["fsmonitor--daemon", name])
            .current_dir(&top)
            .output();
        output.expect("it starts").status.success()
    };
    let git_dir = top.join(".git");
    let socket = git_dir.join("fsmonitor--daemon.ipc");
    let mode = |path: &Path| {
        let metadata = path.symlink_metadata().expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(&git_dir.join("fsmonitor--daemon")), 0o700);
    assert_eq!(mode(&git_dir.join("fsmonitor--daemon/cookies")), 0o700);
    refuses_others(&scratch, &top, &command);
    assert!(command("stop"));
    assert!(!socket.exists());
}

/// Checks that another user cannot stop the monitor of `top`, whatever the mode of the socket is.
fn refuses_others(scratch: &Scratch, top: &Path, command: &dyn Fn(&str) -> bool) {
    if let Some(reason) = other_user_is_hindered(scratch.path()) {
        lacks!(Need::OtherUser, reason);
    }
    let git_dir = top.join(".git");
    let open = |path: &Path, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).expect("it is ours");
    };
    // The other user can go there, whatever the umask of the tests is.
    for path in [scratch.path(), top, &git_dir] {
        open(path, 0o755);
    }
    let program = scratch.path().join("pronto");
    crate::support::copy_program(pronto_path(), &program).expect("it is copied");
    open(&program, 0o755);
    for mode in [0o600, 0o666] {
        open(&git_dir.join("fsmonitor--daemon.ipc"), mode);
        // If the mode was changed, the monitor checks the user.
        let refused = as_nobody(&program, top, &["fsmonitor--daemon", "stop"]);
        assert!(!refused.status.success(), "{mode:o}: {refused:?}");
        assert!(command("status"), "{mode:o}");
    }
}

#[test]
fn a_monitor_of_another_user_is_not_trusted() {
    // A user with write access to the socket directory could report that nothing has changed.
    let scratch = Scratch::new();
    if let Some(reason) = other_user_is_hindered(scratch.path()) {
        lacks!(Need::OtherUser, reason);
    }
    let top = repository(&scratch);
    git(&top, &["status"]);
    let open = |path: &Path| {
        let permissions = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(path, permissions).expect("it is ours");
    };
    for path in [scratch.path(), &top, &top.join(".git")] {
        open(path);
    }
    let script = "
use IO::Socket::UNIX;
my $listener = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 5) or die $!;
chmod 0666, $ARGV[0];
print \"ready\\n\"; $| = 1; close STDOUT;
while (my $client = $listener->accept) { sysread $client, my $asked, 4096; syswrite $client, \"0009t\\0000\"; close $client; }
";
    let socket = top.join(".git/fsmonitor--daemon.ipc");
    let mut liar = process("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args(["perl", "-e", script])
        .arg(&socket)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("setpriv starts");
    let mut ready = String::new();
    let output = liar.stdout.take().expect("it was asked for");
    std::io::Read::read_to_string(&mut { output }, &mut ready).expect("it is text");
    assert_eq!(ready, "ready\n");
    let status = pronto()
        .args(["fsmonitor--daemon", "status"])
        .current_dir(&top)
        .output()
        .expect("it starts");
    assert!(!status.status.success(), "{status:?}");
    liar.kill().expect("it is ours");
    liar.wait().expect("it is ours");
}
