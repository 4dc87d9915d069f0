//! Rewrites a reflog without some of its entries.

use bstr::{BStr, ByteVec};
use pronto_hash::ObjectId;

use super::outcome::{ExpiredLog, ReflogEntryResult, RewriteOptions};
use super::whole_lines;
use crate::durability::Component;
use crate::lock::Lock;
use crate::refs::{LogLine, RefNameRef, RefTarget, patience};
use crate::{Error, ErrorKind, Repository, Result};

/// The rule that decides which entries are removed.
pub(super) trait ExpiryRule {
    /// Starts a reflog with this content. Its ref points to `tip`.
    fn begin(&mut self, tip: Option<ObjectId>, content: &[u8]);

    /// Returns whether `line` is removed. `old` is its old id, or the rewritten one.
    fn expires(&mut self, line: &LogLine<'_>, old: ObjectId) -> Result<bool>;
}

/// A reflog that is rewritten.
pub(super) struct Rewriting<'r> {
    pub(super) repository: &'r Repository,
    pub(super) name: &'r BStr,
    pub(super) how: RewriteOptions,
}

/// The kept part of a reflog.
struct Remains {
    text: Vec<u8>,
    last: ObjectId,
}

impl Rewriting<'_> {
    pub(super) fn run(&self, judge: &mut dyn ExpiryRule) -> ExpiredLog {
        let mut log = ExpiredLog {
            name: self.name.to_owned(),
            kept: 0,
            pruned: 0,
            verdicts: Vec::new(),
            failure: None,
        };
        log.failure = self.try_run(judge, &mut log).err();
        log
    }

    fn try_run(&self, judge: &mut dyn ExpiryRule, log: &mut ExpiredLog) -> Result<()> {
        let (repository, refs) = (self.repository, self.repository.refs());
        if let Some(tables) = refs.tables() {
            return self.run_in_tables(tables, judge, log);
        }
        let name = RefNameRef::existing(self.name).map_err(crate::refs::bad_name)?;
        let mut lock = repository.lock_log(name)?;
        let tip = refs.id_of(self.name).ok().flatten();
        let file = refs.log_path(name);
        // Another process removed the ref and its reflog before the lock was taken.
        if !file.is_file() {
            return Ok(());
        }
        let new_log = match self.how.dry_run {
            true => None,
            false => {
                let lock = Lock::acquire(&file, patience(repository.config())?)?;
                Some(lock.recorded(repository.config()))
            }
        };
        let content = pronto_io::untrusted::content(&file).map_err(|error| {
            let message = format!("unable to read log '{}'", file.display());
            Error::new(ErrorKind::Io, message).because(error)
        })?;
        judge.begin(tip, &content);
        let remains = self.judge_lines(&content, judge, log)?;
        let Some(mut new_log) = new_log else {
            return Ok(());
        };
        let updates = self.how.update_ref && !remains.last.is_null() && self.is_direct()?;
        if remains.text != content {
            new_log.write_and_close(&remains.text)?;
        }
        if updates {
            lock = lock.waits(repository.fsync()?.of(Component::Reference));
            lock.write_and_close(format!("{}\n", remains.last).as_bytes())?;
        }
        if remains.text != content {
            new_log.commit()?;
        }
        if updates {
            lock.commit()?;
        }
        Ok(())
    }

    /// Returns whether `line` is kept, and counts it in `log`. `old` is its old id, or the rewritten
    /// one.
    pub(super) fn keeps(
        &self,
        line: &LogLine<'_>,
        old: ObjectId,
        judge: &mut dyn ExpiryRule,
        log: &mut ExpiredLog,
    ) -> Result<bool> {
        let is_kept = !judge.expires(line, old)?;
        if self.how.verbose {
            log.verdicts.push(ReflogEntryResult {
                is_kept,
                message: line.message.to_owned(),
            });
        }
        match is_kept {
            true => log.kept += 1,
            false => log.pruned += 1,
        }
        Ok(is_kept)
    }

    fn judge_lines(
        &self,
        content: &[u8],
        judge: &mut dyn ExpiryRule,
        log: &mut ExpiredLog,
    ) -> Result<Remains> {
        let mut remains = Remains {
            text: Vec::with_capacity(content.len()),
            last: self.repository.object_hash().null(),
        };
        for line in whole_lines(content) {
            let old = match self.how.rewrite {
                true => remains.last,
                false => line.old,
            };
            if !self.keeps(&line, old, judge, log)? {
                continue;
            }
            if !self.how.dry_run {
                remains.last = line.new;
                push_line(&mut remains.text, &line, old);
            }
        }
        Ok(remains)
    }

    /// Returns whether the ref exists and is not a symref.
    pub(super) fn is_direct(&self) -> Result<bool> {
        let found = self.repository.refs().find(self.name)?;
        Ok(found.is_some_and(|found| matches!(found.target, RefTarget::Object(_))))
    }
}

/// Writes a reflog entry as Git does: the time zone with four digits, and a tab even before an empty
/// message.
fn push_line(text: &mut Vec<u8>, line: &LogLine<'_>, old: ObjectId) {
    text.push_str(format!("{old} {} ", line.new));
    text.push_str(line.who);
    let zone = std::str::from_utf8(line.zone).ok();
    let zone: i32 = zone.and_then(|zone| zone.parse().ok()).unwrap_or(0);
    text.push_str(format!(" {} {zone:+05}\t", line.seconds));
    text.push_str(line.message);
    text.push(b'\n');
}
