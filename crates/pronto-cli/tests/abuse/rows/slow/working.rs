//! Pushes that cost the server much time. Their clients wait and are not slow, so they keep their
//! slots although other clients wait for a slot.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Output;
use std::thread::JoinHandle;

use crate::client::Answer;
use crate::rows::Table;
use crate::server::wait_until;
use crate::site::text_of;
use crate::stage::{Stage, Verdict, listing, refused, require};
use crate::wire::{FETCH, V2, post};

/// A store runs no hook of a repository, and git does not push to it.
const NO_HOOKS: &str = "a store has no hooks of its own";

/// The ref that is pushed.
const PUSHED: &str = "refs/heads/pushed";

/// The protocol of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Http,
    Ssh,
    Git,
}

pub(super) fn rows(table: &mut Table) {
    for (name, way, is_grafted, options) in [
        ("push-over-http", Way::Http, false, &[][..]),
        ("push-over-ssh", Way::Ssh, false, &[]),
        ("push-over-git", Way::Git, false, &[]),
        ("push-that-git-takes-over-http", Way::Http, true, &[]),
        ("push-that-git-takes-over-ssh", Way::Ssh, true, &[]),
        ("push-that-git-takes-over-git", Way::Git, true, &[]),
        (
            "push-with-options-that-git-takes-over-ssh",
            Way::Ssh,
            true,
            &["-o", "some=option"],
        ),
    ] {
        table.row_on_disk(&format!("long-{name}"), NO_HOOKS, move |stage| {
            keeps_its_slot(stage, way, is_grafted, options)
        });
    }
    table.row_on_disk("long-deletion-that-git-takes-over-ssh", NO_HOOKS, |stage| {
        let at = stage.repository("own/m");
        stage.site.git(&at, &["update-ref", PUSHED, "main"]);
        keeps_its_slot(stage, Way::Ssh, true, &["--delete"])
    });
}

/// Pushes with the installed git, while a hook works and another request of the same user waits for the slot.
fn keeps_its_slot(
    stage: &mut Stage,
    way: Way,
    is_grafted: bool,
    options: &'static [&'static str],
) -> Verdict {
    // The wait is longer than a client may be silent while others wait.
    stage.limits("requests = 2\nuser_share = 50\nwait_seconds = 8\nstall_seconds = 60");
    if way == Way::Ssh && !stage.shell() {
        return Ok(());
    }
    if way == Way::Git {
        stage.daemon("push = \"always\"\n");
        stage.set("[[grant]]\nrepository = \"own/m\"\nusers = [\"anonymous\"]\nrole = \"write\"");
    }
    if is_grafted {
        let file = stage.repository("own/m").join("info/grafts");
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(file, format!("{}\n", stage.site.ids.first)).expect("a file");
        stage.own("own/m", "info/grafts");
    }
    stage.configure("own/m", "receive.advertisePushOptions", "true");
    let (begun, go) = (stage.site.path("begun"), stage.site.path("go"));
    let script = format!(
        ": >'{}'; while ! test -e '{}'; do sleep 0.1; done",
        begun.display(),
        go.display()
    );
    stage.hook("own/m", "pre-receive", &script);
    stage.allow("own/m", PUSHED);
    let push = begin_push(stage, way, options);
    let works = wait_until(|| begun.exists() || push.is_finished());
    let answer = ask_for_the_slot(stage, way);
    std::fs::write(go, "").expect("a file");
    let pushed = push.join().expect("no panic");
    require(works && pushed.status.success(), || format!("{pushed:?}"))?;
    refused(&answer?, 429)?;
    let is_there = text_of(
        &stage
            .site
            .try_git(&stage.repository("own/m"), &["for-each-ref", PUSHED]),
    );
    require(is_there.is_empty() == options.contains(&"--delete"), || {
        format!("the ref: {is_there:?}")
    })
}

/// Makes a request whose owner has the slot of the push as its share.
fn ask_for_the_slot(stage: &mut Stage, way: Way) -> Result<Answer, String> {
    let (token, repository) = match way {
        Way::Http | Way::Ssh => (stage.token("mallory"), "own/m"),
        Way::Git => (String::new(), "open/p"),
    };
    let mut connection = stage.connect_from(Ipv4Addr::LOCALHOST);
    let headers = format!("{V2}{token}");
    let request = post(repository, FETCH, &headers, &listing());
    connection.send(request).answer()
}

/// Starts the installed git on a thread.
fn begin_push(stage: &mut Stage, way: Way, options: &'static [&'static str]) -> JoinHandle<Output> {
    let work = stage.site.path("work");
    let commit = ["commit-tree", "-p", "HEAD", "-m", "new", "HEAD^{tree}"];
    let new = stage.site.git(&work, &commit);
    let token = stage.site.ids.token("mallory").to_owned();
    let server = stage.server();
    let url = match way {
        Way::Http => format!("http://mallory:{token}@{}/own/m", server.http),
        Way::Git => format!("git://{}/own/m", server.git),
        Way::Ssh => {
            let address = server.ssh.expect("it serves SSH");
            format!("ssh://git@{address}/own/m")
        }
    };
    let path = |name: &str| -> PathBuf { stage.site.path(name) };
    let ssh = format!(
        "ssh -F/dev/null -i '{}' -oIdentitiesOnly=yes -oBatchMode=yes -oLogLevel=ERROR \
         -oUserKnownHostsFile='{}' -oStrictHostKeyChecking=accept-new",
        path("key").display(),
        path("known").display()
    );
    let refspec = match options.contains(&"--delete") {
        true => PUSHED.to_owned(),
        false => format!("{new}:{PUSHED}"),
    };
    std::thread::spawn(move || {
        let ssh = format!("core.sshCommand={ssh}");
        let start = ["-c", &ssh, "push", "-q"];
        let all = [&start[..], options, &[url.as_str(), refspec.as_str()]].concat();
        test_support::git::isolated(&work, &all, b"")
    })
}
