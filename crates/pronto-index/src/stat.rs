//! The stat data that an index entry records about a file, and the rules for comparing them with
//! the file system.

use std::fmt;

/// A time as the index records it: seconds and nanoseconds, each truncated to 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexTime {
    /// Seconds since the epoch, modulo 2³².
    pub seconds: u32,
    /// Nanoseconds within the second; zero if they are unknown.
    pub nanoseconds: u32,
}

impl IndexTime {
    fn differs(self, other: IndexTime) -> bool {
        self.seconds != other.seconds
            || (self.nanoseconds != 0
                && other.nanoseconds != 0
                && self.nanoseconds != other.nanoseconds)
    }

    fn as_nanoseconds(self) -> u64 {
        u64::from(self.seconds) * 1_000_000_000 + u64::from(self.nanoseconds)
    }
}

/// The recorded stat data of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The time of the last change of the inode.
    pub ctime: IndexTime,
    /// The time of the last change of the content.
    pub mtime: IndexTime,
    /// The device number, modulo 2³².
    pub device: u32,
    /// The inode number, modulo 2³².
    pub inode: u32,
    /// The user id of the owner.
    pub uid: u32,
    /// The group id of the owner.
    pub gid: u32,
    /// The size in bytes, modulo 2³²; see [`Stat::recorded_size`].
    pub size_bytes: u32,
}

/// The stat data fields that are compared (`core.trustCtime`, `core.checkStat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatRules {
    /// Treat a changed ctime as a change of the file (`core.trustCtime`).
    pub trust_ctime: bool,
    /// Compare all fields (`core.checkStat=default`). If `false` (`core.checkStat=minimal`), only
    /// the seconds of the mtime and the size are compared.
    pub check_stat: bool,
}

impl Default for StatRules {
    fn default() -> Self {
        StatRules {
            trust_ctime: true,
            check_stat: true,
        }
    }
}

/// The set of differences between two [`Stat`]s.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct StatChange(u8);

impl StatChange {
    /// No differences.
    pub const NONE: StatChange = StatChange(0);
    /// The modification time of the content differs.
    pub const MTIME: StatChange = StatChange(1);
    /// The change time of the inode differs.
    pub const CTIME: StatChange = StatChange(2);
    /// The owner or the group differs.
    pub const OWNER: StatChange = StatChange(4);
    /// The inode number differs.
    pub const INODE: StatChange = StatChange(8);
    /// The size differs, so the content differs, too.
    pub const SIZE: StatChange = StatChange(16);

    /// Returns whether there are no differences.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns whether at least one bit of `other` is set.
    pub fn intersects(self, other: StatChange) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: StatChange, when: bool) {
        self.0 |= other.0 * u8::from(when);
    }
}

impl fmt::Debug for StatChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (StatChange::MTIME, "mtime"),
            (StatChange::CTIME, "ctime"),
            (StatChange::OWNER, "owner"),
            (StatChange::INODE, "inode"),
            (StatChange::SIZE, "size"),
        ];
        f.debug_set()
            .entries(
                names
                    .iter()
                    .filter(|(bit, _)| self.intersects(*bit))
                    .map(|(_, name)| name),
            )
            .finish()
    }
}

impl Stat {
    /// The number of four-byte fields in stat data, in every file that stores them consecutively.
    pub(crate) const FIELDS: usize = 9;

    /// The fields in the order of the file formats.
    #[inline]
    pub(crate) fn fields(&self) -> [u32; Self::FIELDS] {
        [
            self.ctime.seconds,
            self.ctime.nanoseconds,
            self.mtime.seconds,
            self.mtime.nanoseconds,
            self.device,
            self.inode,
            self.uid,
            self.gid,
            self.size_bytes,
        ]
    }

    /// Creates stat data from the values of [`fields`](Self::fields).
    #[inline]
    pub(crate) fn from_fields(fields: [u32; Self::FIELDS]) -> Stat {
        let time = |seconds, nanoseconds| IndexTime {
            seconds,
            nanoseconds,
        };
        let [c, c_nanos, m, m_nanos, device, inode, uid, gid, size_bytes] = fields;
        Stat {
            ctime: time(c, c_nanos),
            mtime: time(m, m_nanos),
            device,
            inode,
            uid,
            gid,
            size_bytes,
        }
    }

    /// Returns the stat data of a file from its metadata.
    #[cfg(unix)]
    pub fn from_metadata(metadata: &std::fs::Metadata) -> Stat {
        use std::os::unix::fs::MetadataExt;
        Stat {
            ctime: IndexTime {
                seconds: metadata.ctime() as u32,
                nanoseconds: metadata.ctime_nsec() as u32,
            },
            mtime: IndexTime {
                seconds: metadata.mtime() as u32,
                nanoseconds: metadata.mtime_nsec() as u32,
            },
            device: metadata.dev() as u32,
            inode: metadata.ino() as u32,
            uid: metadata.uid(),
            gid: metadata.gid(),
            size_bytes: Stat::recorded_size(metadata.size()),
        }
    }

    /// Returns the size in the form of the index: modulo 2³², except that a multiple of 4 GiB other
    /// than zero is recorded as 2³¹, because zero marks an entry whose content must be compared.
    pub fn recorded_size(size_bytes: u64) -> u32 {
        match size_bytes as u32 {
            0 if size_bytes != 0 => 0x8000_0000,
            size => size,
        }
    }

    /// Returns the same stat data with times in whole seconds, so that fractions never differ, as
    /// in a Git that is built without nanoseconds.
    #[must_use]
    pub fn without_nanoseconds(mut self) -> Stat {
        (self.mtime.nanoseconds, self.ctime.nanoseconds) = (0, 0);
        self
    }

    /// Returns the differences between the recorded stat data and `now`.
    pub fn changes(&self, now: &Stat, rules: StatRules) -> StatChange {
        let mut change = StatChange::NONE;
        if rules.check_stat {
            change.add(StatChange::MTIME, self.mtime.differs(now.mtime));
            change.add(
                StatChange::CTIME,
                rules.trust_ctime && self.ctime.differs(now.ctime),
            );
            change.add(
                StatChange::OWNER,
                self.uid != now.uid || self.gid != now.gid,
            );
            change.add(StatChange::INODE, self.inode != now.inode);
        } else {
            change.add(StatChange::MTIME, self.mtime.seconds != now.mtime.seconds);
        }
        change.add(StatChange::SIZE, self.size_bytes != now.size_bytes);
        change
    }

    /// Returns whether the recorded stat data match `now` in the fields that `rules` selects. For a
    /// racy entry, `true` does not mean that the file is unchanged: see [`is_racy`](Stat::is_racy).
    pub fn matches(&self, now: &Stat, rules: StatRules) -> bool {
        self.changes(now, rules).is_none()
    }

    /// Returns whether the entry is racy: the file may have changed without a difference in its
    /// stat data, because its modification time is not safely before `index_time`, at which the
    /// index was written.
    ///
    /// If both times have nanoseconds, "safely" means by more than a tick of the kernel's clock (10
    /// ms); otherwise it means in an earlier second, as in Git.
    pub fn is_racy(&self, index_time: IndexTime) -> bool {
        if index_time.seconds == 0 {
            return false;
        }
        if self.mtime.nanoseconds == 0 || index_time.nanoseconds == 0 {
            return self.is_racy_by_second(index_time);
        }
        index_time.as_nanoseconds() <= self.mtime.as_nanoseconds() + TICK_NANOSECONDS
    }

    /// Returns whether the entry is racy by Git's rule, which ignores nanoseconds. A writer must
    /// examine such entries again, so that Git recognises changed files, too.
    pub fn is_racy_by_second(&self, index_time: IndexTime) -> bool {
        index_time.seconds != 0 && index_time.seconds <= self.mtime.seconds
    }
}

/// The longest tick of the clock from which file systems take their times.
const TICK_NANOSECONDS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u32, nanoseconds: u32) -> IndexTime {
        IndexTime {
            seconds,
            nanoseconds,
        }
    }

    #[test]
    fn sizes_are_recorded_as_git_records_them() {
        assert_eq!(Stat::recorded_size(0), 0);
        assert_eq!(Stat::recorded_size(7), 7);
        assert_eq!(Stat::recorded_size(1 << 32), 0x8000_0000);
        assert_eq!(Stat::recorded_size((1 << 32) + 5), 5);
    }

    #[test]
    fn unknown_nanoseconds_never_differ() {
        let recorded = Stat {
            mtime: at(5, 0),
            ctime: at(5, 7),
            ..Stat::default()
        };
        let now = Stat {
            mtime: at(5, 9),
            ctime: at(5, 7),
            ..Stat::default()
        };
        assert!(recorded.matches(&now, StatRules::default()));
        let known = Stat {
            mtime: at(5, 8),
            ..recorded
        };
        assert_eq!(known.changes(&now, StatRules::default()), StatChange::MTIME);
        assert!(known.matches(
            &now,
            StatRules {
                check_stat: false,
                trust_ctime: true
            }
        ));
    }

    #[test]
    fn what_is_racy() {
        let recorded = Stat {
            mtime: at(5, 100),
            ..Stat::default()
        };
        assert!(!recorded.is_racy(at(0, 0)));
        assert!(recorded.is_racy(at(5, 100)));
        assert!(recorded.is_racy(at(5, 0)));
        assert!(recorded.is_racy(at(5, 200)));
        assert!(!recorded.is_racy(at(5, 100 + 10_000_001)));
        assert!(recorded.is_racy_by_second(at(5, 900_000_000)));
        assert!(!recorded.is_racy(at(6, 0)));
    }
}
