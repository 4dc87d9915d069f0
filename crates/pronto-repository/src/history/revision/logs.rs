//! Former values of refs from reflogs: `name@{2}`, `name@{yesterday}`, `@{-1}`.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::full_name::FullName;
use super::tracking;
use crate::refs::{LogLine, name};
use crate::repository::Notice;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::date;

/// The smallest number in `@{…}` that is a date instead of a position in the reflog.
const FIRST_DATE: u64 = 100_000_000;

/// The error for a text that can name no revision.
pub(super) struct Impossible;

/// Splits `base@{selector}` into its two parts. Returns `None` if `text` has another form.
pub(super) fn selector(text: &BStr) -> Result<Option<(&BStr, &BStr)>, Impossible> {
    if !text.ends_with(b"}") {
        return Ok(None);
    }
    let mut end = text.len();
    while let Some(at) = text[..end].rfind(b"@{") {
        if text[at + 2..].starts_with(b"-") {
            if at != 0 {
                return Err(Impossible);
            }
        } else if tracking::mark(&text[at..]).is_some() {
            return Ok(None);
        } else {
            let selector = text[at + 2..text.len() - 1].as_bstr();
            let is_real = !selector.is_empty() && !selector.contains(&b'}');
            return Ok(is_real.then(|| (text[..at].as_bstr(), selector)));
        }
        end = at;
    }
    Ok(None)
}

impl Repository {
    /// Returns the ref with a reflog to which `short` expands.
    pub(crate) fn find_log(&self, short: &BStr) -> Result<Option<FullName>> {
        let replaced = self.interpret_branch_name(short)?;
        let short = replaced.as_ref().map_or(short, |name| name.as_bstr());
        let mut found: Option<FullName> = None;
        for candidate in name::candidates(short) {
            let Ok(Some(resolved)) = self.refs().resolve(&candidate) else {
                continue;
            };
            let Some(id) = resolved.id else { continue };
            let log = if self.refs().has_log(&candidate) {
                candidate.clone()
            } else if resolved.is_symbolic && self.refs().has_log(&resolved.name) {
                resolved.name
            } else {
                continue;
            };
            match &mut found {
                Some(found) => found.is_ambiguous = true,
                None => {
                    let direct = candidate;
                    found = Some(FullName {
                        name: log,
                        direct,
                        id,
                        is_ambiguous: false,
                    });
                }
            }
        }
        Ok(found)
    }

    /// Returns the value of the ref with the reflog `log_of` at the position or time that `selector`
    /// gives.
    pub(super) fn resolve_logged(
        &self,
        base: &BStr,
        log_of: &BStr,
        current: ObjectId,
        selector: &BStr,
    ) -> Result<Option<ObjectId>> {
        let number = selector
            .to_str()
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let number = number.and_then(|text| text.parse::<u64>().ok());
        let log = self.refs().log(log_of)?.unwrap_or_default();
        let said = || match base.is_empty() {
            false => base.to_string(),
            true => log_of
                .strip_prefix(b"refs/heads/")
                .unwrap_or(b"HEAD")
                .as_bstr()
                .to_string(),
        };
        let time = match number {
            Some(position) if position < FIRST_DATE => {
                return nth(&log, position, current, log_of, said);
            }
            Some(time) => time as i64,
            None => match date::parse_date(selector) {
                // As in Git, time 0 selects no entry.
                Some(0) => return nth(&log, u64::MAX, current, log_of, said),
                Some(time) => time,
                None => return Ok(None),
            },
        };
        let mut last: Option<(ObjectId, ObjectId, i64, BString)> = None;
        for line in log.newest_first() {
            if line.seconds <= time {
                let later = last.map(|(old, ..)| old).filter(|old| !old.is_null());
                return Ok(Some(self.held(log_of, current, &line, later, time)));
            }
            last = Some((line.old, line.new, line.seconds, line.zone.to_owned()));
        }
        let Some((old, new, seconds, zone)) = last else {
            return Err(empty(log_of));
        };
        let date = date::rfc2822(seconds, zone.as_bstr());
        self.notify(Notice::ReflogTooShort {
            name: said().into(),
            date,
        });
        Ok(Some(if old.is_null() { new } else { old }))
    }

    /// Returns the value of the ref with the reflog `log_of` at `time`. `line` is the newest entry that
    /// is not newer than `time`; `later` is the old id of the following entry.
    fn held(
        &self,
        log_of: &BStr,
        current: ObjectId,
        line: &LogLine<'_>,
        later: Option<ObjectId>,
        time: i64,
    ) -> ObjectId {
        let date = || date::rfc2822(line.seconds, line.zone.as_bstr());
        if let Some(later) = later {
            if later != line.new {
                self.notify(Notice::ReflogGap {
                    name: log_of.to_owned(),
                    date: date(),
                });
            }
            return line.new;
        }
        if line.seconds == time {
            return line.new;
        }
        if line.new != current {
            let date = date();
            self.notify(Notice::ReflogEnded {
                name: log_of.to_owned(),
                date,
            });
        }
        current
    }

    /// Returns the branch, or the commit, that was checked out before the last `count` checkouts
    /// (`@{-N}`).
    pub(super) fn prior_checkout(&self, count: u64) -> Result<Option<BString>> {
        let Some(log) = self.refs().log("HEAD")? else {
            return Ok(None);
        };
        let mut left = count;
        for line in log.newest_first() {
            let Some(moved) = line.message.strip_prefix(b"checkout: moving from ") else {
                continue;
            };
            let Some(end) = moved.find(b" to ") else {
                continue;
            };
            left -= 1;
            if left == 0 {
                return Ok(Some(moved[..end].into()));
            }
        }
        Ok(None)
    }
}

fn nth(
    log: &crate::refs::ReflogContent,
    position: u64,
    current: ObjectId,
    log_of: &BStr,
    said: impl Fn() -> String,
) -> Result<Option<ObjectId>> {
    let mut seen = 0;
    let mut oldest = None;
    for line in log.newest_first() {
        if seen == position {
            return Ok(Some(line.new));
        }
        seen += 1;
        oldest = Some(line.old);
    }
    match oldest {
        None if position == 0 => Ok(Some(current)),
        None => Err(empty(log_of)),
        Some(old) if seen == position && !old.is_null() => Ok(Some(old)),
        Some(_) => {
            let message = format!("log for '{}' only has {seen} entries", said());
            Err(Error::new(ErrorKind::ShortReflog, message))
        }
    }
}

fn empty(log_of: &BStr) -> Error {
    Error::new(ErrorKind::ShortReflog, format!("log for {log_of} is empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_told_from_other_marks() {
        let split = |text: &'static str| match selector(text.into()) {
            Ok(Some((base, selector))) => Some((base.to_string(), selector.to_string())),
            _ => None,
        };
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(split("main@{1}"), pair("main", "1"));
        assert_eq!(split("@{yesterday}"), pair("", "yesterday"));
        assert_eq!(split("@{-1}@{2}"), pair("@{-1}", "2"));
        assert_eq!(split("@{u}@{2}"), pair("@{u}", "2"));
        for text in ["@{u}", "main@{Upstream}", "@{-1}", "main", "@{}", "x@{-1}"] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
