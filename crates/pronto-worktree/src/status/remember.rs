//! Compares directories with the untracked cache, and records new results for it.

use super::remembered::{CacheMatch, CachePosition, DirectoryNews};
use super::scan::Scanner;
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_index::{Stat, UntrackedCache, UntrackedDirectory};
use pronto_io::dir::Metadata;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, SystemTime};

/// The age of a change below which a directory may change again without a difference in its stat data.
const TICK: Duration = Duration::from_millis(20);

impl Scanner<'_> {
    /// Returns the position of the top in the cache, if a cache is in use.
    pub(super) fn top_place(job: &super::StatusJob<'_>) -> Option<CachePosition> {
        let remembered = job.remembered?;
        Some(CachePosition {
            node: (!remembered.cache.is_empty()).then_some(0),
            is_trusted: true,
        })
    }

    /// Returns whether the cache lists the files of untracked directories.
    pub(super) fn caches_all(&self) -> bool {
        let remembered = self.job.remembered;
        remembered.is_some_and(|it| it.cache.flags == UntrackedCache::ALL)
    }

    pub(super) fn records(&self) -> bool {
        self.job.remembered.is_some_and(|it| it.records)
    }

    /// Returns the position of the subdirectory `name` of the directory at `place`.
    pub(super) fn place_below(&self, place: CachePosition, name: &BStr) -> CachePosition {
        let cache = self.job.remembered.map(|it| &it.cache);
        CachePosition {
            node: place
                .node
                .zip(cache)
                .and_then(|(node, cache)| cache.child(node, name)),
            ..place
        }
    }

    /// Compares the directory at `path` (with a slash at its end, or empty for the top) with the cache.
    pub(super) fn examine(
        &mut self,
        place: CachePosition,
        path: &BStr,
        check_only: bool,
        metadata: impl FnOnce() -> io::Result<Metadata>,
    ) -> io::Result<CacheMatch> {
        let known = place.node.map(|node| self.known(node));
        if let (Some(node), Some(known)) = (self.vouched(place, check_only), known) {
            return Ok(CacheMatch {
                valid: Some(node),
                place,
                stat: known.stat,
                exclude_id: known.exclude_id,
            });
        }
        let stat = crate::recorded(&metadata()?);
        let mut fresh = place.is_trusted
            && known.is_some_and(|known| {
                known.is_valid
                    && known.check_only == check_only
                    && !known.stat.is_racy_by_second(self.index_time)
                    && known.stat.matches(&stat, self.job.options.rules)
            })
            && place
                .node
                .is_some_and(|node| self.are_repositories(node, path));
        let null = self.job.index.kind().null();
        let mut place = place;
        let mut exclude_id = null;
        // If the directory is unchanged, no ignore file was added to it.
        if !fresh || known.is_some_and(|known| !known.exclude_id.is_null()) {
            let directory = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
            exclude_id = self.exclude_id(directory, known.map(|known| known.exclude_id));
            if known.is_none_or(|known| known.exclude_id != exclude_id) {
                place.is_trusted = false;
                fresh = false;
            }
        }
        Ok(CacheMatch {
            valid: place.node.filter(|_| fresh),
            place,
            stat,
            exclude_id,
        })
    }

    /// Returns whether the subdirectories of `path` that the cache lists only by name are still
    /// repositories. The stat data of the directory itself do not show such a change.
    fn are_repositories(&self, node: usize, path: &BStr) -> bool {
        let Some(cache) = self.job.remembered.map(|it| &it.cache) else {
            return false;
        };
        let names = cache.directory(node).untracked.iter();
        let bare = names.filter_map(|name| name.strip_suffix(b"/"));
        let mut unknown = bare.filter(|bare| cache.child(node, bare.as_bstr()).is_none());
        unknown.all(|bare| self.is_repository([path.as_bytes(), bare].concat().as_bstr()))
    }

    fn known(&self, node: usize) -> &UntrackedDirectory<'_> {
        match self.job.remembered {
            Some(remembered) => remembered.cache.directory(node),
            None => unreachable!("places are of a cache"),
        }
    }

    /// Returns the id of the ignore file of `directory` for the cache. As in Git, this is either the
    /// blob of its entry or the digest of its content with an additional line feed. If `known` equals
    /// one of both, it is returned.
    fn exclude_id(&self, directory: &BStr, known: Option<ObjectId>) -> ObjectId {
        let kind = self.job.index.kind();
        let Some(content) = self.job.ignore_files.and_then(|read| read(directory)) else {
            return kind.null();
        };
        let blob = |more: &[u8]| blob_id(kind, &content, more);
        let own = blob(b"");
        if content.is_empty() || known == Some(own) {
            return own;
        }
        let mut path = directory.to_owned();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(b".gitignore");
        let entry = self.job.index.find(path.as_bstr(), 0).ok();
        let is_staged = entry.is_some_and(|at| *self.job.index.entry(at).id == *own);
        if known != Some(blob(b"\n"))
            && is_staged
            && self.job.conversion.is_identity(path.as_bstr())
        {
            return own;
        }
        blob(b"\n")
    }

    /// Starts to record the content of a directory that must be read.
    pub(super) fn start_news(&mut self, path: &BStr, seen: &CacheMatch, check_only: bool) {
        if !self.records() {
            return;
        }
        let modified = SystemTime::UNIX_EPOCH
            + Duration::new(
                u64::from(seen.stat.mtime.seconds),
                seen.stat.mtime.nanoseconds,
            );
        let age = SystemTime::now().duration_since(modified);
        // A monitor that was queried before reports later changes.
        let is_monitored = (self.job.monitored).is_some_and(|monitored| monitored.dirty.is_some());
        self.noting.push(DirectoryNews {
            path: path.strip_suffix(b"/").unwrap_or(path).into(),
            is_gone: false,
            stat: seen.stat,
            is_valid: is_monitored || age.is_ok_and(|age| age > TICK),
            check_only,
            untracked: Vec::new(),
            below: Vec::new(),
            exclude_id: seen.exclude_id,
        });
    }

    /// Records that a directory with tracked files does not exist.
    pub(super) fn note_gone(&mut self, path: &BStr) {
        if self.records() && self.here.is_some() && !path.is_empty() {
            self.outcome.news.push(DirectoryNews {
                path: path.strip_suffix(b"/").unwrap_or(path).into(),
                is_gone: true,
                stat: Stat::default(),
                is_valid: false,
                check_only: false,
                untracked: Vec::new(),
                below: Vec::new(),
                exclude_id: self.job.index.kind().null(),
            });
        }
    }

    /// Starts to record the changed result of a directory whose stat data are unchanged.
    pub(super) fn start_copy(&mut self, path: &BStr, node: usize) {
        if !self.records() {
            return;
        }
        let known = self.known(node);
        let (stat, exclude_id) = (known.stat, known.exclude_id);
        let check_only = known.check_only;
        let mut news = DirectoryNews {
            path: path.strip_suffix(b"/").unwrap_or(path).into(),
            is_gone: false,
            stat,
            is_valid: true,
            check_only,
            untracked: Vec::new(),
            below: Vec::new(),
            exclude_id,
        };
        if let Some(remembered) = self.job.remembered {
            let children = remembered.cache.children(node);
            news.below.extend(
                children.map(|child| remembered.cache.directory(child).name.as_ref().into()),
            );
        }
        self.noting.push(news);
    }

    /// Records an untracked name in the current directory.
    pub(super) fn note_untracked(&mut self, name: &[u8], is_directory: bool) {
        if let Some(news) = self.noting.last_mut() {
            let mut name = BString::from(name);
            if is_directory {
                name.push(b'/');
            }
            news.untracked.push(name);
        }
    }

    /// Records a subdirectory of the current directory that is examined.
    pub(super) fn note_below(&mut self, name: &[u8]) {
        if let Some(news) = self.noting.last_mut() {
            news.below.push(name.into());
        }
    }

    /// Ends the most recent recording, and adds it to the results if `keep`.
    pub(super) fn end_news(&mut self, keep: bool) {
        if let Some(news) = self.noting.pop()
            && keep
        {
            self.outcome.news.push(news);
        }
    }
}

/// Returns the id of a blob with `content` followed by `more`.
pub fn blob_id(kind: Kind, content: &[u8], more: &[u8]) -> ObjectId {
    let header = format!("blob {}\0", content.len() + more.len());
    pronto_hash::digest(kind, &[header.as_bytes(), content, more]).unwrap_or(kind.null())
}

/// Returns the cache with the data of directories in `news` replaced.
pub fn renew<'a>(cache: &UntrackedCache<'a>, news: Vec<DirectoryNews>) -> UntrackedCache<'a> {
    let mut renewal = Renewal {
        old: cache,
        news: news
            .into_iter()
            .map(|news| (news.path.clone(), news))
            .collect(),
        new: cache.successor(),
    };
    let top = (!cache.is_empty()).then_some(0);
    renewal.run(top);
    renewal.new
}

struct Renewal<'o, 'a> {
    old: &'o UntrackedCache<'a>,
    news: BTreeMap<BString, DirectoryNews>,
    new: UntrackedCache<'a>,
}

/// A directory of the new cache to which its subdirectories are added.
struct NewCacheDirectory<'a> {
    position: usize,
    /// The subdirectories that are not added yet, with their positions in the old cache.
    below: std::vec::IntoIter<(Cow<'a, BStr>, Option<usize>)>,
    /// The length of the path of the parent directory.
    outer_len: usize,
}

impl<'a> Renewal<'_, 'a> {
    fn run(&mut self, top: Option<usize>) {
        let mut path = BString::default();
        let top = self.directory(top, Cow::Borrowed(b"".as_bstr()), &path, 0);
        let mut levels: Vec<NewCacheDirectory<'a>> = top.into_iter().collect();
        while let Some(level) = levels.last_mut() {
            let Some((name, child)) = level.below.next() else {
                self.new.close(level.position);
                path.truncate(level.outer_len);
                levels.pop();
                continue;
            };
            let len = path.len();
            if len > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            let below = match self.news.get(&path) {
                Some(news) if news.is_gone => {
                    self.news.remove(&path);
                    None
                }
                _ => self.directory(child, name, &path, len),
            };
            match below {
                Some(below) => levels.push(below),
                None => path.truncate(len),
            }
        }
    }

    /// Adds a directory. Returns the directory unless it was copied with everything below.
    fn directory(
        &mut self,
        old: Option<usize>,
        name: Cow<'a, BStr>,
        path: &BString,
        outer_len: usize,
    ) -> Option<NewCacheDirectory<'a>> {
        let news = self.news.remove(path);
        if let Some(old) = old
            && news.is_none()
            && !self.has_news_below(path)
        {
            self.new.copy(self.old, old);
            return None;
        }
        let kind = self.old.info_exclude.id.kind();
        let mut directory = match old {
            Some(old) => self.old.directory(old).clone(),
            None => UntrackedDirectory::unknown(name, kind),
        };
        let mut below: Vec<(Cow<'a, BStr>, Option<usize>)> = Vec::new();
        let known = old.into_iter().flat_map(|old| self.old.children(old));
        let known = known.map(|child| (self.old.directory(child).name.clone(), child));
        match news {
            Some(mut news) => {
                news.below.sort_unstable();
                news.below.dedup();
                let mut known = known.peekable();
                for name in news.below {
                    while known.next_if(|(known, _)| **known < *name).is_some() {}
                    let child = known.next_if(|(known, _)| **known == *name);
                    below.push((Cow::Owned(name), child.map(|(_, child)| child)));
                }
                directory.untracked = news.untracked.into_iter().collect();
                directory.is_valid = news.is_valid;
                directory.check_only = news.check_only;
                directory.stat = if news.is_valid {
                    news.stat
                } else {
                    Stat::default()
                };
                directory.exclude_id = news.exclude_id;
            }
            None => below.extend(known.map(|(name, child)| (name, Some(child)))),
        }
        Some(NewCacheDirectory {
            position: self.new.open(directory),
            below: below.into_iter(),
            outer_len,
        })
    }

    fn has_news_below(&self, path: &BString) -> bool {
        if path.is_empty() {
            return !self.news.is_empty();
        }
        let mut prefix = path.clone();
        prefix.push(b'/');
        let next = self.news.range(prefix.clone()..).next();
        next.is_some_and(|(path, _)| path.starts_with(&prefix))
    }
}
