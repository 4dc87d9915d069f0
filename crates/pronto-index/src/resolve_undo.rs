//! The resolve-undo data (`REUC` extension): the stages of a path before its conflict was resolved.

use crate::bytes::{take, take_until};
use crate::error::{Error, corrupt};
use bstr::BString;
use pronto_hash::{Kind, ObjectId};

/// The stages of one path: merge base, ours, theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmerged {
    /// The path.
    pub path: BString,
    /// The mode and the object id of stages 1, 2 and 3.
    pub stages: [Option<(u32, ObjectId)>; 3],
}

/// All paths whose conflicts can be recreated, in the order of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolveUndo {
    /// The stages of each path.
    pub paths: Vec<Unmerged>,
}

impl ResolveUndo {
    pub(crate) fn parse(mut data: &[u8], kind: Kind) -> Result<ResolveUndo, Error> {
        let mut paths = Vec::new();
        while !data.is_empty() {
            let one = parse_one(&mut data, kind);
            paths.push(
                one.ok_or_else(|| corrupt("index records invalid resolve-undo information"))?,
            );
        }
        Ok(ResolveUndo { paths })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for Unmerged { path, stages } in &self.paths {
            out.extend_from_slice(path);
            out.push(0);
            for stage in stages {
                let mode = stage.map_or(0, |(mode, _)| mode);
                out.extend_from_slice(format!("{mode:o}\0").as_bytes());
            }
            for (_, id) in stages.iter().flatten() {
                out.extend_from_slice(id.as_slice());
            }
        }
    }
}

fn parse_one(data: &mut &[u8], kind: Kind) -> Option<Unmerged> {
    let path = take_until(data, 0)?.into();
    let mut modes = [0; 3];
    for mode in &mut modes {
        let digits = std::str::from_utf8(take_until(data, 0)?).ok()?;
        *mode = u32::from_str_radix(digits, 8).ok()?;
    }
    let mut stages = [None; 3];
    for (stage, mode) in stages.iter_mut().zip(modes) {
        if mode != 0 {
            let id = take(data, kind.len_in_bytes())?;
            *stage = Some((mode, ObjectId::from_bytes_or_panic(id)));
        }
    }
    Some(Unmerged { path, stages })
}
