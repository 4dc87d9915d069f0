//! The command `ls-refs`.

use bstr::ByteSlice;

use super::super::writer::Lines;
use super::super::{Ended, Session, broken};
use super::Request;
use crate::Result;

/// From this number of prefixes on all refs are listed, and the client filters them.
const MOST_PREFIXES: usize = 65_536;

/// The arguments of the command.
#[derive(Default)]
struct Arguments {
    peel: bool,
    symrefs: bool,
    unborn: bool,
    prefixes: Vec<Vec<u8>>,
}

impl Session<'_> {
    /// Lists refs.
    pub(super) fn list(&mut self, request: &Request) -> Result<Ended> {
        let arguments = self.list_arguments(request)?;
        let mut out = Lines::default();
        let mut shown = self.view().shown(&arguments.prefixes, arguments.peel)?;
        // Git finds the `HEAD` of a namespace again below its prefix.
        if !self.repository.refs().namespace().is_empty()
            && let Some(head) = shown.first().filter(|first| first.name == "HEAD")
            && head.id.is_some()
        {
            let head = head.clone();
            shown.insert(0, head);
        }
        for reference in shown {
            let mut line = match reference.id {
                Some(id) => id.to_string().into_bytes(),
                None if arguments.unborn && arguments.symrefs && reference.symbolic.is_some() => {
                    b"unborn".to_vec()
                }
                None => continue,
            };
            line.push(b' ');
            line.extend_from_slice(&reference.name);
            if let Some(target) = reference.symbolic.filter(|_| arguments.symrefs) {
                line.extend_from_slice(b" symref-target:");
                line.extend_from_slice(&target);
            }
            if let Some(peeled) = reference.peeled.filter(|_| arguments.peel) {
                line.extend_from_slice(format!(" peeled:{peeled}").as_bytes());
            }
            line.push(b'\n');
            out.text(line)?;
        }
        out.flush();
        self.send_lines(&mut out)?;
        Ok(Ended::Served)
    }

    fn list_arguments(&mut self, request: &Request) -> Result<Arguments> {
        let ignores_unborn = {
            let value = self.repository.config().string("lsrefs.unborn")?;
            value.is_some_and(|value| value == "ignore")
        };
        let mut arguments = Arguments::default();
        let what = "expected flush after ls-refs arguments";
        while let Some(line) = self.argument(request, what)? {
            match line.as_slice() {
                b"peel" => arguments.peel = true,
                b"symrefs" => arguments.symrefs = true,
                b"unborn" => arguments.unborn = !ignores_unborn,
                other => match other.strip_prefix(b"ref-prefix ") {
                    Some(prefix) if arguments.prefixes.len() < MOST_PREFIXES => {
                        arguments.prefixes.push(prefix.to_vec());
                    }
                    Some(_) => {}
                    None => return Err(broken(format!("unexpected line: '{}'", other.as_bstr()))),
                },
            }
        }
        if arguments.prefixes.len() >= MOST_PREFIXES {
            arguments.prefixes.clear();
        }
        Ok(arguments)
    }
}
