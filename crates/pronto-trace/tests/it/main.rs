//! Tests all trace formats in one process. A process can have only one subscriber, so there is only
//! one test.

use std::path::Path;
use std::time::Instant;

use pronto_trace::{Settings, TraceSession, TracedProgram};

fn region(label: &str, act: impl FnOnce()) {
    match label {
        "outer" => {
            let span = tracing::info_span!(
                target: "pronto::region", "do_read_index", category = "index", detail = ".git/index"
            );
            let _entered = span.entered();
            act();
        }
        _ => {
            let span =
                tracing::info_span!(target: "pronto::region", "inner", category = "cache_tree");
            let _entered = span.entered();
            act();
        }
    }
}

fn work() {
    region("outer", || {
        tracing::info!(
            target: "pronto::data", category = "index", key = "read/cache_nr", value = %42
        );
        region("inner", || {
            tracing::info!(target: "pronto::data", category = "deep", key = "k", value = %"v");
        });
    });
    tracing::info!(target: "elsewhere", "not for us");
    std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(|| region("inner", || {}))
        .expect("a thread")
        .join()
        .expect("it ends well");
    tracing::info!(target: "pronto::child", id = 0_u64, class = "hook", argv = "a b\0-c");
    tracing::info!(
        target: "pronto::child", id = 0_u64, pid = 77_u64, code = 1_i64, micros = 2_500_000_u64
    );
}

/// Returns the lines of a file, with the times removed.
fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("the trace was written");
    text.lines()
        .map(|line| {
            let mut out = String::new();
            let mut rest = line;
            // Times have at least six decimals.
            while let Some(at) = rest.find('.') {
                let digits = rest[at + 1..]
                    .bytes()
                    .take_while(u8::is_ascii_digit)
                    .count();
                let before = rest[..at].trim_end_matches(|c: char| c.is_ascii_digit());
                if digits >= 6 {
                    out.push_str(before);
                    out.push('T');
                } else {
                    out.push_str(&rest[..=at + digits]);
                }
                rest = &rest[at + 1 + digits..];
            }
            out + rest
        })
        .collect()
}

#[test]
fn all_formats_tell_the_same_story() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let get = |name: &str| match name {
        "GIT_TRACE2" => Some(path("normal").into()),
        "GIT_TRACE2_PERF" => Some(path("perf").into()),
        "GIT_TRACE2_EVENT" => Some(path("event").into()),
        "GIT_TRACE" => Some(path("basic").into()),
        "GIT_TRACE_PERFORMANCE" => Some(path("performance").into()),
        "GIT_TRACE2_BRIEF" | "GIT_TRACE2_PERF_BRIEF" | "GIT_TRACE2_EVENT_BRIEF" => Some("1".into()),
        "GIT_TRACE2_PARENT_SID" => Some("parent".into()),
        "GIT_TRACE2_PARENT_NAME" => Some("clone".into()),
        _ => None,
    };
    let settings = Settings::from_variables(&get).expect("traces are asked for");
    let program = TracedProgram {
        version: "1.0".to_owned(),
        arguments: vec!["git".to_owned(), "a b".to_owned()],
        begun: Instant::now(),
    };
    let (session, warnings) = TraceSession::begin(&settings.with_chrome(path("chrome")), program);
    assert!(warnings.is_empty(), "{warnings:?}");
    session.command_name("status", &["-s".to_owned()]);
    session.repository("/x y");
    work();
    session.exit(0);
    region("outer", || {});
    normal(&lines(&path("normal")));
    perf(&lines(&path("perf")));
    basic(&lines(&path("basic")));
    event(&std::fs::read_to_string(path("event")).expect("it was written"));
    performance(&lines(&path("performance")));
    chrome(&std::fs::read_to_string(path("chrome")).expect("it was written"));
}

fn normal(lines: &[String]) {
    assert_eq!(lines[0], "version 1.0");
    assert_eq!(lines[1], "start git 'a b'");
    assert!(lines[2].starts_with("cmd_ancestry "));
    let expected = [
        "cmd_name status (clone/status)",
        "worktree '/x y'",
        "child_start[0] 'a b' -c",
        "child_exit[0] pid:77 code:1 elapsed:T",
        "exit elapsed:T code:0",
        "atexit elapsed:T code:0",
    ];
    assert_eq!(lines[3..], expected);
}

fn basic(lines: &[String]) {
    let messages: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split_once(" trace: "))
        .map(|(_, text)| text)
        .collect();
    assert_eq!(
        messages,
        ["built-in: git status -s", "run_command: 'a b' -c"]
    );
}

fn perf(lines: &[String]) {
    let expected = [
        "d1 | main                     | def_repo     | r1  |           |           |              | worktree:'/x y'",
        "d1 | main                     | region_enter | r1  |  T |           | index        | label:do_read_index .git/index",
        "d1 | main                     | data         | r1  |  T |  T | index        | ..read/cache_nr:42",
        "d1 | main                     | region_enter | r1  |  T |           | cache_tree   | ..label:inner",
        "d1 | main                     | data         | r1  |  T |  T | deep         | ....k:v",
        "d1 | main                     | region_leave | r1  |  T |  T | cache_tree   | ..label:inner",
        "d1 | main                     | region_leave | r1  |  T |  T | index        | label:do_read_index .git/index",
        "d1 | th01:reader              | thread_start |     |  T |           |              | ",
        "d1 | th01:reader              | region_enter | r1  |  T |           | cache_tree   | label:inner",
        "d1 | th01:reader              | region_leave | r1  |  T |  T | cache_tree   | label:inner",
        "d1 | th01:reader              | thread_exit  |     |  T |  T |              | ",
        "d1 | main                     | child_start  |     |  T |           |              | [ch0] class:hook argv:['a b' -c]",
        "d1 | main                     | child_exit   |     |  T |  T |              | [ch0] pid:77 code:1",
        "d1 | main                     | exit         |     |  T |           |              | code:0",
        "d1 | main                     | atexit       |     |  T |           |              | code:0",
    ];
    for (line, expected) in lines[4..].iter().zip(expected) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), 4 + expected.len());
}

fn event(text: &str) {
    let all: Vec<&str> = text.lines().collect();
    assert!(
        all[0].starts_with(r#"{"event":"version","sid":"parent/2"#),
        "{}",
        all[0]
    );
    assert!(all[0].contains(r#","thread":"main","time":"2"#));
    assert!(all[0].ends_with(r#","evt":"4","exe":"1.0"}"#));
    assert!(all[1].ends_with(r#","argv":["git","a b"]}"#));
    let has = |part: &str| assert!(all.iter().any(|line| line.contains(part)), "{part}");
    has(
        r#""thread":"main","repo":1,"nesting":1,"category":"index","label":"do_read_index","msg":".git/index"}"#,
    );
    has(r#""nesting":2,"category":"index","key":"read/cache_nr","value":"42"}"#);
    has(r#""child_id":0,"child_class":"hook","use_shell":false,"argv":["a b","-c"]}"#);
    has(r#""child_id":0,"pid":77,"code":1,"t_rel":2.500000}"#);
    assert!(
        !text.contains(r#""category":"deep""#),
        "regions deeper than two are left out"
    );
}

fn performance(lines: &[String]) {
    let labels: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split_once("performance: T s: "))
        .map(|(_, label)| label)
        .collect();
    let expected = [
        "  inner",
        " read cache .git/index",
        " inner",
        "git command: git 'a b'",
    ];
    assert_eq!(labels, expected);
    assert!(
        lines
            .iter()
            .all(|line| line.find("performance:") >= Some(25))
    );
}

fn chrome(text: &str) {
    assert!(text.starts_with("[\n{") && text.ends_with(",\n{}]\n"));
    let begins = text.matches(r#""ph":"B""#).count();
    assert_eq!((begins, text.matches(r#""ph":"E""#).count()), (3, 3));
    assert!(text.contains(r#""name":"th01:reader""#));
}
