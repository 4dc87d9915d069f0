//! The greeting of netsync: its size and its lists.

use pronto_netsync::frame::FrameType;
use pronto_netsync::message::{Globs, Hello, TransferRole};

use super::{Expected, Input, Known, NAME, Point, input};
use crate::peer::{hello, known};

fn greeting(state: &Known, change: impl FnOnce(&mut Hello)) -> Vec<u8> {
    let role = match state.gives {
        true => TransferRole::Both,
        false => TransferRole::Sink,
    };
    let mut hello = hello(state.repository, role);
    change(&mut hello);
    let mut body = Vec::new();
    hello.write(&mut body);
    known(FrameType::Hello, &body)
}

/// Returns the inputs of a greeting.
pub(super) fn greetings() -> Vec<Input> {
    let globs = |count: usize| vec![b"refs/heads/*".to_vec(); count];
    let answered = |input: Input| Input {
        at: Expected::Frame(FrameType::RefRange),
        ..input
    };
    vec![
        answered(Input {
            past: Expected::Refused("the greeting has more than 16384 bytes"),
            ..input(
                "size",
                "greeting of netsync",
                Point::Start,
                |state, count| {
                    // Globs with two bytes for their lengths, and one with the rest.
                    let bare = greeting(state, |_| {}).len() - 6;
                    let room = count - bare;
                    let whole = room / 1002 - 1;
                    let rest = room - whole * 1002;
                    let lengths = [rest / 2 - 2, rest - rest / 2 - 2];
                    greeting(state, |hello| {
                        hello.globs.include = vec![vec![b'*'; 1000]; whole];
                        let more = lengths.map(|length| vec![b'*'; length]);
                        hello.globs.include.extend(more);
                    })
                },
            )
        }),
        answered(input(
            "versions",
            "versions in a greeting",
            Point::Start,
            |state, count| greeting(state, |hello| hello.versions = (1..=count as u64).collect()),
        )),
        Input {
            at: Expected::Refused("invalid repository name"),
            far: 15,
            ..input("repository", NAME, Point::Start, |state, count| {
                greeting(state, |hello| hello.repository = vec![b'x'; count])
            })
        },
        Input {
            at: Expected::Refused(""),
            past: Expected::Refused("invalid repository name"),
            far: 0,
            ..input(
                "name of a repository",
                "name of a repository",
                Point::Start,
                |state, count| {
                    let name = format!("open/{}", "x".repeat(count - 5));
                    greeting(state, |hello| hello.repository = name.into_bytes())
                },
            )
        },
        answered(input(
            "identity",
            "identity of a repository in a greeting",
            Point::Start,
            |state, count| greeting(state, |hello| hello.identity = vec![b'x'; count]),
        )),
        answered(input(
            "globs that include",
            "globs in a greeting, of each kind",
            Point::Start,
            move |state, count| greeting(state, |hello| hello.globs.include = globs(count)),
        )),
        answered(input(
            "globs that exclude",
            "globs in a greeting, of each kind",
            Point::Start,
            move |state, count| greeting(state, |hello| hello.globs.exclude = globs(count)),
        )),
        answered(Input {
            far: 15,
            ..input("glob", NAME, Point::Start, |state, count| {
                let globs = Globs {
                    include: vec![vec![b'*'; count]],
                    exclude: Vec::new(),
                };
                greeting(state, |hello| hello.globs = globs)
            })
        }),
    ]
}
