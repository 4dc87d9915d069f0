//! The table of planted faults: fixes that `--teeth` reverts in the source.

/// A fault: a change of one file that reverts a fix.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceFault {
    pub(super) name: &'static str,
    /// The wrong behaviour that the fault causes.
    pub(super) effect: &'static str,
    pub(super) file: &'static str,
    /// A text that occurs once in the file.
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

impl SourceFault {
    /// Returns the source with the fault.
    ///
    /// # Errors
    /// Fails if `old` does not occur exactly once in the source.
    pub(super) fn plant(&self, source: &str) -> Result<String, String> {
        match source.matches(self.old).count() {
            1 => Ok(source.replacen(self.old, self.new, 1)),
            count => Err(format!(
                "{} has the text of '{}' {count} times",
                self.file, self.name
            )),
        }
    }
}

/// The faults. Faults that are quick to build are the first ones.
pub(super) const FAULTS: [SourceFault; 11] = [
    SourceFault {
        name: "broken-submodule",
        effect: "a broken submodule is clean",
        file: "crates/pronto-operations/src/status/submodules.rs",
        old: "if !is_checked_out(self.repository, &self.work_tree, at)? {",
        new: "if !is_checked_out(self.repository, &self.work_tree, at).unwrap_or(false) {",
    },
    SourceFault {
        name: "undecodable-file",
        effect: "a file that cannot be decoded stops `reset --hard`",
        file: "crates/pronto-operations/src/session.rs",
        old: "        settings.tolerates_encodings = true;\n",
        new: "",
    },
    SourceFault {
        name: "prune-tags",
        effect: "`fetch --prune-tags` deletes every local tag",
        file: "crates/pronto-transfer/src/fetch/prune.rs",
        old: "let theirs: HashSet<&BString> = entries.iter().map(|entry| &entry.name).collect();",
        new: "let theirs: HashSet<&BString> = (entries.iter().map(|entry| &entry.name))\n        .filter(|name| !name.starts_with(b\"refs/tags/\"))\n        .collect();",
    },
    SourceFault {
        name: "empty-name",
        effect: "`init ''` acts on the current directory",
        file: "crates/pronto-cli/src/commands/init.rs",
        old: "if directory.as_os_str().is_empty() {\n        // An empty path",
        new: "if directory.as_os_str() == \"\\0\" {\n        // An empty path",
    },
    SourceFault {
        name: "missing-tree",
        effect: "a clone without trees fetches none",
        file: "crates/pronto-cli/src/context/on_demand.rs",
        old: "true => Ok(pronto::remote::fetch_on_demand(",
        new: "true if true => Ok(()),\n        true => Ok(pronto::remote::fetch_on_demand(",
    },
    SourceFault {
        name: "working-directory",
        effect: "relative settings and remotes count from the current directory",
        file: "crates/pronto-config/src/environment.rs",
        old: "self.working_dir().join(path)",
        new: "self.current_dir.join(path)",
    },
    SourceFault {
        name: "index-variable",
        effect: "`GIT_INDEX_FILE` counts from the current directory",
        file: "crates/pronto-config/src/git_path.rs",
        old: "let named = environment.file(\"GIT_INDEX_FILE\");",
        new: "let named = environment.path(\"GIT_INDEX_FILE\");\n        let named = named.map(|path| environment.absolute(path));",
    },
    SourceFault {
        name: "double-star",
        effect: "`de**/f` crosses directories",
        file: "crates/pronto-config/src/glob.rs",
        old: "let rest = literal.saturating_sub(1);",
        new: "let rest = literal;",
    },
    SourceFault {
        name: "gitdir-condition",
        effect: "`includeIf \"gitdir:\"` does not know `PWD`",
        file: "crates/pronto-config/src/config/include.rs",
        old: "Ok(real.is_ok_and(|real| matches(path::as_bytes(&real)))\n        || matches(logical(&place.display_git_dir, environment).as_bstr()))",
        new: "let _ = logical(&place.display_git_dir, environment);\n    Ok(real.is_ok_and(|real| matches(path::as_bytes(&real))))",
    },
    SourceFault {
        name: "link",
        effect: "a lock replaces a symbolic link",
        file: "crates/pronto-config/src/lock.rs",
        old: "Self::acquire_as(follow(&target.into()), Marking::Marked, patience)",
        new: "Self::acquire_as(target, Marking::Marked, patience)",
    },
    SourceFault {
        name: "interpreter",
        effect: "a program without `#!` cannot be started",
        file: "crates/pronto-io/src/child.rs",
        old: "Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {",
        new: "Err(error) if error.raw_os_error() == Some(-1) => {",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_can_be_planted() {
        let root = crate::root();
        for fault in FAULTS {
            let source = std::fs::read_to_string(root.join(fault.file)).expect(fault.file);
            let changed = fault.plant(&source);
            assert!(
                changed.is_ok_and(|changed| changed != source),
                "{}",
                fault.name
            );
        }
    }

    #[test]
    fn a_text_that_is_there_twice_is_no_place() {
        let fault = SourceFault {
            name: "x",
            effect: "",
            file: "f",
            old: "a",
            new: "b",
        };
        assert_eq!(fault.plant("-a-").as_deref(), Ok("-b-"));
        assert!(fault.plant("aa").is_err() && fault.plant("").is_err());
    }
}
