//! More connections and requests than the limits of the server permit.

use super::Table;
use crate::stage::{listing, refused, require};
use crate::wire::{FETCH, V2, get, git_request, post, refs_of};

pub(super) fn table() -> Table {
    let mut table = Table::new("overload");
    connections(&mut table);
    slots(&mut table);
    floods(&mut table);
    table
}

fn connections(table: &mut Table) {
    table.row("connections-of-one-address", |stage| {
        stage.limits("connections_per_address = 20");
        let held: Vec<_> = (0..20).map(|_| stage.connect()).collect();
        for _ in 0..50 {
            let answer = stage.connect().answer()?;
            require(answer.status == 429, || format!("{answer:?}"))?;
            require(answer.header("retry-after").is_some(), || {
                format!("{answer:?}")
            })?;
        }
        stage.logged_refusal("too many connections from this address")?;
        drop(held);
        // Their places are free again.
        let is_free = crate::server::wait_until(|| {
            let answer = stage.connect().send(get("/healthz", "")).answer();
            answer.is_ok_and(|answer| answer.status == 200)
        });
        require(is_free, || "connections are counted forever".to_owned())
    });
    table.row("connections-in-all", |stage| {
        stage.alone();
        stage.limits("connections = 20");
        let held: Vec<_> = (0..20).map(|_| stage.connect()).collect();
        let answer = stage.connect().answer()?;
        require(answer.status == 503, || format!("{answer:?}"))?;
        require(answer.header("retry-after").is_some(), || {
            format!("{answer:?}")
        })?;
        drop(held);
        stage.logged_refusal("too many connections")
    });
    table.row("git-connections-of-one-address", |stage| {
        stage.limits("connections_per_address = 20");
        let held: Vec<_> = (0..20).map(|_| stage.connect_git()).collect();
        let mut refused = stage.connect_git();
        let text = String::from_utf8_lossy(&refused.ends()?).into_owned();
        require(text.contains("ERR too many connections"), || text)?;
        drop(held);
        stage.logged_refusal("too many connections from this address")
    });
    table.row("storm-of-connections", |stage| {
        for _ in 0..10 {
            let storm: Vec<_> = (0..100).map(|_| stage.connect()).collect();
            drop(storm);
        }
        for garbage in [
            &b"\0\0\0\0"[..],
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc",
            b"SSH-2.0-x\r\n",
            b"\r\n\r\n\r\n",
            b"{}",
        ] {
            for _ in 0..20 {
                stage.connect().send(garbage);
            }
        }
        Ok(())
    });
}

fn slots(table: &mut Table) {
    table.row("slots-of-one-user", |stage| {
        stage.limits("requests = 4\nuser_share = 50\nwait_seconds = 1\nstall_seconds = 30");
        let _held = [stage.hold(Some("mallory")), stage.hold(Some("mallory"))];
        stage.slots(2)?;
        let answer = stage.fetch(Some("mallory"), "own/m", &listing())?;
        refused(&answer, 429)?;
        require(answer.header("retry-after").is_some(), || {
            format!("{answer:?}")
        })?;
        stage.logged(429, "too many of your requests")?;
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("slots-of-nobody", |stage| {
        stage.limits("requests = 4\nuser_share = 50\nwait_seconds = 1\nstall_seconds = 30");
        let _held = [stage.hold(None), stage.hold(None)];
        stage.slots(2)?;
        refused(&stage.fetch(None, "open/p", &listing())?, 429)?;
        let text = stage
            .connect_git()
            .send(git_request("/open/p", ""))
            .ends()?;
        require(text.windows(4).any(|word| word == b"ERR "), || {
            format!("{text:?}")
        })?;
        stage.logged_on("git", 429, "too many of your requests")?;
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("all-slots", |stage| {
        stage.alone();
        stage.limits("requests = 2\nuser_share = 50\nwait_seconds = 1\nstall_seconds = 30");
        let _held = [stage.hold(Some("mallory")), stage.hold(None)];
        stage.slots(2)?;
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        refused(&answer, 503)?;
        require(answer.header("retry-after").is_some(), || {
            format!("{answer:?}")
        })?;
        stage.logged(503, "the server is busy")
    });
    table.row("queue", |stage| {
        stage.limits(
            "requests = 4\nuser_share = 50\nqueue = 3\nwait_seconds = 30\nstall_seconds = 30",
        );
        let _held = [stage.hold(Some("mallory")), stage.hold(Some("mallory"))];
        stage.slots(2)?;
        let token = stage.token("mallory");
        let request = post("own/m", FETCH, &format!("{V2}{token}"), &listing());
        let _waiting: Vec<_> = (0..3)
            .map(|_| {
                let mut one = stage.connect();
                one.send(&request);
                one
            })
            .collect();
        // One of these is more than the queue takes, whichever comes first.
        let mut last = stage.connect();
        last.send(&request);
        let is_refused = stage.logged(503, "too many requests are waiting");
        is_refused?;
        let answer = stage.fetch(Some("bob"), "team/a", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
    table.row("waiting-clients-leave", |stage| {
        stage.limits(
            "requests = 4\nuser_share = 50\nqueue = 3\nwait_seconds = 30\nstall_seconds = 30",
        );
        let held = [stage.hold(Some("mallory")), stage.hold(Some("mallory"))];
        stage.slots(2)?;
        let token = stage.token("mallory");
        let request = post("own/m", FETCH, &format!("{V2}{token}"), &listing());
        for _ in 0..10 {
            let mut waiting: Vec<_> = (0..3).map(|_| stage.connect()).collect();
            waiting.iter_mut().for_each(|one| _ = one.send(&request));
        }
        stage.measures("connections", |count| count <= 4)?;
        drop(held);
        let answer = stage.fetch(Some("mallory"), "own/m", &listing())?;
        require(answer.status == 200, || format!("{answer:?}"))
    });
}

fn floods(table: &mut Table) {
    table.row("many-requests-on-one-connection", |stage| {
        let mut shared = stage.connect();
        let one = get(&refs_of("not/there", FETCH), "");
        shared.send(one.repeat(500));
        for _ in 0..500 {
            refused(&shared.answer()?, 401)?;
        }
        Ok(())
    });
    table.row("many-fetches-at-once", |stage| {
        stage.limits("requests = 4");
        let request = post("open/p", FETCH, V2, &listing());
        let mut all: Vec<_> = (0..100).map(|_| stage.connect()).collect();
        for one in &mut all {
            one.send(&request);
        }
        for one in &mut all {
            let answer = one.answer()?;
            require(answer.status == 200, || format!("{answer:?}"))?;
        }
        Ok(())
    });
    table.row("large-body-for-nobody", |stage| {
        // It is refused before its body is read.
        let mut large = stage.connect();
        large.send(crate::wire::post_head("vault/x", "git-receive-pack", ""));
        large.send("content-length: 17179869184\r\n\r\n");
        refused(&large.answer()?, 401)?;
        large.send(vec![0; 1 << 20]);
        large.ends().map(|_| ())
    });
    table.row("push-beyond-the-limit", |stage| {
        stage.limits("push_bytes = 1000000");
        let noise = test_support::Random::new(3).bytes(2 << 20);
        let made = crate::pack::Pack::new()
            .object(crate::pack::BLOB, &noise)
            .finish();
        let id = crate::pack::hex(&crate::pack::id("blob", &noise));
        let commands = crate::wire::changes([crate::wire::create(&id, "refs/tags/large")]);
        let answer = stage.push("mallory", "own/m", &commands, &made)?;
        let text = answer.text();
        require(
            text.contains("ng refs/tags/large") || answer.status >= 400,
            || format!("{answer:?} {text}"),
        )?;
        require(!stage.site.has("own/m", &id), || {
            "the object is there".to_owned()
        })
    });
    table.row("drain-under-attack", |stage| {
        stage.alone();
        stage.limits("stall_seconds = 30");
        let _held = [stage.hold(Some("mallory")), stage.hold(None)];
        stage.slots(2)?;
        let _idle: Vec<_> = (0..20).map(|_| stage.connect()).collect();
        // The server ends in time, although nobody lets go.
        stage.restart()
    });
}
