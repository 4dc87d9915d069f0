//! Rules that hold for every push, whether pronto receives it or git does because the repository
//! needs git, and whether it is signed or not.

use super::Table;
use crate::pack::{self, BLOB, Pack};
use crate::stage::{Stage, Verdict, require};
use crate::wire::{NULL, PUSH, changes, create, no_pack, packet, packets, post, refs_of, unbanded};

pub(super) fn table() -> Table {
    let mut table = Table::new("policies");
    taken_by_git(&mut table);
    certificates(&mut table);
    nonces(&mut table);
    table
}

const NO_GIT: &str = "git pushes to a repository on disk only";

/// Makes git receive the pushes to `own/ruled`, in which only fast-forwards are permitted.
fn graft(stage: &mut Stage) {
    let file = stage.repository("own/ruled").join("info/grafts");
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    std::fs::write(file, format!("{}\n", stage.site.ids.first)).expect("a file");
    stage.own("own/ruled", "info/grafts");
}

/// Creates a ref of `own/ruled` at the second commit.
fn make_ref(stage: &mut Stage, name: &str) {
    let at = stage.repository("own/ruled");
    stage.site.git(&at, &["update-ref", name, "main"]);
    stage.allow("own/ruled", name);
}

/// Returns the update of a ref back to the first commit.
fn back(stage: &Stage, name: &str) -> Vec<u8> {
    let (first, second) = (&stage.site.ids.first, &stage.site.ids.second);
    changes([format!("{second} {first} {name}")])
}

fn refuses_force(stage: &mut Stage, name: &str) -> Verdict {
    make_ref(stage, name);
    let commands = back(stage, name);
    let reason = "may not push a non-fast-forward";
    stage.refuses_push("mallory", "own/ruled", &commands, &no_pack(), reason)
}

fn taken_by_git(table: &mut Table) {
    for (row, name) in [
        ("forced-tag-with-grafts", "refs/tags/v1"),
        ("forced-note-with-grafts", "refs/notes/commits"),
        ("forced-ref-with-grafts", "refs/changes/1/head"),
    ] {
        table.row_on_disk(row, NO_GIT, move |stage| {
            graft(stage);
            refuses_force(stage, name)
        });
    }
    table.row_on_disk("forced-tag-of-a-partial-clone", NO_GIT, |stage| {
        stage.configure("own/ruled", "remote.x.promisor", "true");
        stage.configure("own/ruled", "remote.x.url", "/nowhere");
        refuses_force(stage, "refs/tags/v1")
    });
    table.row_on_disk("forced-branch-with-grafts", NO_GIT, |stage| {
        graft(stage);
        let commands = back(stage, "refs/heads/main");
        stage.refuses_push(
            "mallory",
            "own/ruled",
            &commands,
            &no_pack(),
            "non-fast-forward",
        )
    });
    table.row_on_disk("forced-branch-with-a-replaced-commit", NO_GIT, |stage| {
        // The replacement of the new commit has the old one as its parent.
        graft(stage);
        let (first, second) = (stage.site.ids.first.clone(), stage.site.ids.second.clone());
        let at = stage.repository("own/ruled");
        let tree = stage.site.git(&at, &["rev-parse", "main^{tree}"]);
        let identity = ["-c", "user.name=a", "-c", "user.email=a@x"];
        let made = [
            &identity[..],
            &["commit-tree", "-m", "x", "-p", &second, &tree],
        ]
        .concat();
        let replacement = stage.site.git(&at, &made);
        let name = format!("refs/replace/{first}");
        stage.site.git(&at, &["update-ref", &name, &replacement]);
        stage.allow("own/ruled", &name);
        let commands = back(stage, "refs/heads/main");
        stage.refuses_push(
            "mallory",
            "own/ruled",
            &commands,
            &no_pack(),
            "non-fast-forward",
        )
    });
    table.row_on_disk("new-tag-with-grafts", NO_GIT, |stage| {
        graft(stage);
        stage.allow("own/ruled", "refs/tags/new");
        let commands = changes([create(&stage.site.ids.first, "refs/tags/new")]);
        let answer = stage.push("mallory", "own/ruled", &commands, &no_pack())?;
        require(answer.text().contains("ok refs/tags/new"), || answer.text())
    });
    table.row_on_disk("refs-beyond-a-quota-with-grafts", NO_GIT, |stage| {
        graft(stage);
        let count = stage.refs("own/ruled").lines().count();
        stage.set(&format!(
            "[[quota]]\nrepository = \"own/*\"\nrefs = {count}\n"
        ));
        let commands = changes([create(&stage.site.ids.first, "refs/tags/new")]);
        stage.refuses_push("mallory", "own/ruled", &commands, &no_pack(), "refs: quota")
    });
}

/// Returns the text of a push certificate with an invalid signature.
fn certificate(nonce: &str, changes: &[String]) -> String {
    format!(
        "certificate version 0.1\npusher m <m@x> 1112911993 -0700\nnonce {nonce}\n\n{}\n\
         -----BEGIN PGP SIGNATURE-----\n\niQ==\n-----END PGP SIGNATURE-----\n",
        changes.join("\n")
    )
}

/// Returns the packets of a push with a certificate.
fn signed(certificate: &str) -> Vec<u8> {
    let mut bytes = packet("push-cert\0report-status side-band-64k object-format=sha1");
    for line in certificate.split_inclusive('\n') {
        bytes.extend(packet(line));
    }
    bytes.extend(packets(["push-cert-end\n"]));
    bytes
}

/// Enables signed pushes to `own/m`.
fn take_certificates(stage: &mut Stage) {
    stage.configure("own/m", "receive.certNonceSeed", "seed");
    stage.configure("own/m", "receive.certNonceSlop", "600");
}

/// Requires that a signed push is refused, and that its certificate and its objects are deleted.
fn leaves_nothing(stage: &mut Stage, changes: &[String], pack: &[u8], reason: &str) -> Verdict {
    let text = certificate("none", changes);
    let id = pack::hex(&pack::id("blob", text.as_bytes()));
    stage.refuses_push("mallory", "own/m", &signed(&text), pack, reason)?;
    require(!stage.site.has("own/m", &id), || {
        "the certificate is there".to_owned()
    })
}

fn certificates(table: &mut Table) {
    const DECLINED: &str = "pre-receive hook declined";
    const DECLINE: &str = "git cat-file -e $GIT_PUSH_CERT && exit 1";
    table.row_on_disk("certificate-of-a-declined-push", NO_HOOKS, |stage| {
        take_certificates(stage);
        stage.hook("own/m", "pre-receive", DECLINE);
        let id = stage.site.ids.first.clone();
        leaves_nothing(stage, &[create(&id, "refs/heads/x")], &no_pack(), DECLINED)
    });
    table.row_on_disk("certificate-of-a-declined-deletion", NO_HOOKS, |stage| {
        take_certificates(stage);
        stage.hook("own/m", "pre-receive", DECLINE);
        let delete = format!("{} {NULL} refs/heads/main", stage.site.ids.second);
        leaves_nothing(stage, &[delete], b"", DECLINED)
    });
    table.row_on_disk("certificate-of-a-declined-pack", NO_HOOKS, |stage| {
        take_certificates(stage);
        stage.hook("own/m", "pre-receive", DECLINE);
        let id = pack::hex(&pack::id("blob", b"declined"));
        let pack = Pack::new().object(BLOB, b"declined").finish();
        leaves_nothing(stage, &[create(&id, "refs/tags/x")], &pack, DECLINED)?;
        require(!stage.site.has("own/m", &id), || {
            "the object is there".to_owned()
        })
    });
    table.row_on_disk("certificate-beyond-a-quota", NO_HOOKS, |stage| {
        take_certificates(stage);
        stage.hook("own/m", "post-receive", "exit 0");
        // The certificate does not fit beside what is there.
        stage.set("[[quota]]\nrepository = \"own/*\"\nbytes = 70000\n");
        let names = (0..4000).map(|number| format!("refs/heads/{number}-{}", sha(number)));
        let id = stage.site.ids.first.clone();
        let all: Vec<String> = names.map(|name| create(&id, &name)).collect();
        leaves_nothing(stage, &all, &no_pack(), "the push is too large")
    });
    table.row_on_disk("certificate-of-an-accepted-push", NO_HOOKS, |stage| {
        take_certificates(stage);
        stage.hook(
            "own/m",
            "post-receive",
            "git cat-file -e $GIT_PUSH_CERT || exit 1",
        );
        stage.allow("own/m", "refs/heads/x");
        let change = create(&stage.site.ids.first, "refs/heads/x");
        let text = certificate("none", &[change]);
        let answer = stage.push("mallory", "own/m", &signed(&text), &no_pack())?;
        require(answer.text().contains("ok refs/heads/x"), || answer.text())?;
        let id = pack::hex(&pack::id("blob", text.as_bytes()));
        require(stage.site.has("own/m", &id), || {
            "the certificate is not there".to_owned()
        })
    });
}

const NO_HOOKS: &str = "a store has no hooks";

/// Returns text that does not compress.
fn sha(number: usize) -> String {
    pack::hex(&pack::id("blob", number.to_string().as_bytes()))
}

/// Makes the hook of `own/m` write the nonce status to a file.
fn write_verdict(stage: &mut Stage) -> std::path::PathBuf {
    take_certificates(stage);
    let file = stage.site.path("tmp/verdict");
    let script = format!("echo \"$GIT_PUSH_CERT_NONCE_STATUS\" >'{}'", file.display());
    stage.hook("own/m", "pre-receive", &script);
    file
}

/// Returns the nonce of an advertisement.
fn nonce_of(advertisement: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(advertisement).into_owned();
    let rest = text.split("push-cert=").nth(1);
    let nonce = rest.and_then(|rest| rest.split([' ', '\n']).next());
    nonce.map(str::to_owned).ok_or(text)
}

/// Pushes over SSH with the nonce of another connection, or of the same connection. Returns the
/// nonce status.
fn verdict_over_ssh(stage: &mut Stage, is_own: bool) -> Result<String, String> {
    let file = write_verdict(stage);
    let command = ["git-receive-pack 'own/m'"];
    let mut earlier = stage.ssh().start(&command);
    let earlier_nonce = nonce_of(&earlier.advertisement())?;
    let id = stage.site.ids.first.clone();
    stage.allow("own/m", "refs/heads/x");
    let send = |client: &mut crate::ssh::Running, nonce: &str| {
        let text = certificate(nonce, &[create(&id, "refs/heads/x")]);
        client.send(&[signed(&text), no_pack()].concat());
        client.rest();
    };
    match is_own {
        true => send(&mut earlier, &earlier_nonce),
        false => {
            // Nonces have the time in seconds: without another second, both are the same.
            let mut later = stage.ssh().start(&command);
            while nonce_of(&later.advertisement())? == earlier_nonce {
                later = stage.ssh().start(&command);
            }
            send(&mut later, &earlier_nonce);
        }
    }
    let verdict = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    Ok(verdict.trim().to_owned())
}

fn nonces(table: &mut Table) {
    for (row, is_own, is_grafted, expected) in [
        ("nonce-of-another-connection", false, false, "BAD"),
        (
            "nonce-of-another-connection-with-grafts",
            false,
            true,
            "BAD",
        ),
        ("nonce-of-this-connection", true, false, "OK"),
        ("nonce-of-this-connection-with-grafts", true, true, "OK"),
    ] {
        table.row_on_disk(row, NO_HOOKS, move |stage| {
            if !stage.shell() {
                return Ok(());
            }
            if is_grafted {
                let file = stage.repository("own/m").join("info/grafts");
                std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
                std::fs::write(file, format!("{}\n", stage.site.ids.first)).expect("a file");
                stage.own("own/m", "info/grafts");
            }
            let verdict = verdict_over_ssh(stage, is_own)?;
            require(verdict == expected, || verdict)
        });
    }
    table.row_on_disk("nonce-of-another-request", NO_HOOKS, |stage| {
        // Over HTTP, the advertisement is another request: that is what the setting is for.
        let file = write_verdict(stage);
        let token = stage.token("mallory");
        let advertisement = stage.ask(crate::wire::get(&refs_of("own/m", PUSH), &token))?;
        let nonce = nonce_of(&advertisement.body)?;
        stage.allow("own/m", "refs/heads/x");
        let text = certificate(&nonce, &[create(&stage.site.ids.first, "refs/heads/x")]);
        let body = [signed(&text), no_pack()].concat();
        let answer = stage.ask(post("own/m", PUSH, &token, &body))?;
        let said = String::from_utf8_lossy(&unbanded(&answer.body)).into_owned();
        require(said.contains("ok refs/heads/x"), || said)?;
        let verdict = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        require(verdict.trim() == "OK", || verdict)
    });
}
