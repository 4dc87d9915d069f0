//! Servers that request credentials.

use super::Table;
use crate::attack::command;
use crate::servers::http::{begin, challenge, respond};

pub(super) fn table() -> Table {
    let mut table = Table::new("credentials");
    table.row("of-another-port", |scene| {
        let secret = scene.secret(None);
        let evil = scene.http(|_, out| challenge(out));
        scene.credential("http", &format!("127.0.0.1:{}", evil - 1), &secret);
        scene.credential("http", "127.0.0.1", &secret);
        let url = format!("http://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("of-another-protocol", |scene| {
        let secret = scene.secret(None);
        let evil = scene.http(|_, out| challenge(out));
        scene.credential("https", &format!("127.0.0.1:{evil}"), &secret);
        let url = format!("http://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("of-another-path", |scene| {
        let secret = scene.secret(None);
        let evil = scene.http(|_, out| challenge(out));
        scene.configure(&format!(
            "[http \"http://127.0.0.1:{evil}/private\"]\n\textraHeader = X-Token: {secret}\n"
        ));
        let url = format!("http://127.0.0.1:{evil}/private-not/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("helper-of-a-longer-host", |scene| {
        let secret = scene.secret(None);
        let evil = scene.http(|_, out| challenge(out));
        let helper = format!("!echo username=x; echo password={secret}; :");
        scene.configure(&format!(
            "[credential \"http://127.0.0.1:{evil}0\"]\n\thelper = \"{helper}\"\n\
             [credential \"http://127.0.0.1\"]\n\thelper = \"{helper}\"\n\
             [credential \"http://27.0.0.1:{evil}\"]\n\thelper = \"{helper}\"\n"
        ));
        let url = format!("http://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("before-they-are-asked-for", |scene| {
        let secret = scene.secret(None);
        let evil = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        scene.credential("http", &format!("127.0.0.1:{evil}"), &secret);
        let url = format!("http://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("with-a-newline-in-a-header", |scene| {
        let evil = scene.http(|_, out| {
            let header = "WWW-Authenticate: Basic realm=\"x\"\r\n\tpassword=x";
            respond(out, "401 Unauthorized", &[header], b"")
        });
        let url = format!("http://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("asked-for-without-end", |scene| {
        let evil = scene.http(|_, out| challenge(out));
        let secret = scene.secret(Some(evil));
        scene.credential("http", &format!("127.0.0.1:{evil}"), &secret);
        let url = format!("http://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("many-challenges", |scene| {
        let evil = scene.http(|_, out| {
            begin(out, "401 Unauthorized", &[])?;
            for number in 0..100_000 {
                write!(out, "WWW-Authenticate: Basic realm=\"{number}\"\r\n")?;
            }
            write!(out, "Content-Length: 0\r\n\r\n")
        });
        let url = format!("http://127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"]).fails()
    });
    table.row("in-an-error-message", |scene| {
        let evil = scene.http(|_, out| respond(out, "404 Not Found", &[], b""));
        let secret = scene.secret(Some(evil));
        let url = format!("http://somebody:{secret}@127.0.0.1:{evil}/x");
        command(["clone", &url, "clone"])
            .fails()
            .check(move |_, outcome| match outcome.said().contains(&secret) {
                true => Err("the password is printed".to_owned()),
                false => Ok(()),
            })
    });
    table
}
