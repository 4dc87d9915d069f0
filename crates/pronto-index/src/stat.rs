//! The stat data that an index entry records about a file, and the rules for comparing them with
//! the file system.

use std::fmt;

/// A moment as the index records it: seconds and nanoseconds, each cut to 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since the epoch, modulo 2³².
    pub seconds: u32,
    /// Nanoseconds within the second. Zero means that they are not known.
    pub nanoseconds: u32,
}

impl Time {
    fn differs(self, other: Time) -> bool {
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
    /// When the inode last changed.
    pub ctime: Time,
    /// When the content last changed.
    pub mtime: Time,
    /// The device, modulo 2³².
    pub device: u32,
    /// The inode, modulo 2³².
    pub inode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The size modulo 2³², see [`Stat::recorded_size`].
    pub size_bytes: u32,
}

/// The fields of stat data that are compared, by configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `core.trustCtime`: whether a changed ctime means a changed file.
    pub trust_ctime: bool,
    /// `core.checkStat=default`. With `minimal` (false) only the seconds of the mtime and the
    /// size count.
    pub check_stat: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            trust_ctime: true,
            check_stat: true,
        }
    }
}

/// The differences between two [`Stat`]s: a set of bits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Change(u8);

impl Change {
    /// Nothing differs.
    pub const NONE: Change = Change(0);
    /// The time of the content differs.
    pub const MTIME: Change = Change(1);
    /// The time of the inode differs.
    pub const CTIME: Change = Change(2);
    /// Owner or group differ.
    pub const OWNER: Change = Change(4);
    /// The inode number differs.
    pub const INODE: Change = Change(8);
    /// The size differs, so the content does.
    pub const SIZE: Change = Change(16);

    /// Whether nothing differs.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether one of `other`'s bits is set.
    pub fn intersects(self, other: Change) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: Change, when: bool) {
        self.0 |= other.0 * u8::from(when);
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Change::MTIME, "mtime"),
            (Change::CTIME, "ctime"),
            (Change::OWNER, "owner"),
            (Change::INODE, "inode"),
            (Change::SIZE, "size"),
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
        let time = |seconds, nanoseconds| Time {
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
            ctime: Time {
                seconds: metadata.ctime() as u32,
                nanoseconds: metadata.ctime_nsec() as u32,
            },
            mtime: Time {
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

    /// Returns the same stat data with times in whole seconds, so fractions never differ, as in a
    /// Git that is built without nanoseconds.
    #[must_use]
    pub fn without_nanoseconds(mut self) -> Stat {
        (self.mtime.nanoseconds, self.ctime.nanoseconds) = (0, 0);
        self
    }

    /// Returns the differences between the recorded stat data and `now`.
    pub fn changes(&self, now: &Stat, rules: Rules) -> Change {
        let mut change = Change::NONE;
        if rules.check_stat {
            change.add(Change::MTIME, self.mtime.differs(now.mtime));
            change.add(
                Change::CTIME,
                rules.trust_ctime && self.ctime.differs(now.ctime),
            );
            change.add(Change::OWNER, self.uid != now.uid || self.gid != now.gid);
            change.add(Change::INODE, self.inode != now.inode);
        } else {
            change.add(Change::MTIME, self.mtime.seconds != now.mtime.seconds);
        }
        change.add(Change::SIZE, self.size_bytes != now.size_bytes);
        change
    }

    /// Returns whether the recorded stat data match `now` as far as `rules` compare them. `true`
    /// says nothing about a racy entry: see [`is_racy`](Stat::is_racy).
    pub fn matches(&self, now: &Stat, rules: Rules) -> bool {
        self.changes(now, rules).is_none()
    }

    /// Returns whether the file may have changed without a difference in its stat data after they
    /// were recorded in an index written at `index_time`: its time is not safely before that of the
    /// index.
    ///
    /// With nanoseconds on both sides "safely" means by more than a tick of the kernel's
    /// clock (10 ms); without, it means in an earlier second, as in Git.
    pub fn is_racy(&self, index_time: Time) -> bool {
        if index_time.seconds == 0 {
            return false;
        }
        if self.mtime.nanoseconds == 0 || index_time.nanoseconds == 0 {
            return self.is_racy_by_second(index_time);
        }
        index_time.as_nanoseconds() <= self.mtime.as_nanoseconds() + TICK_NANOSECONDS
    }

    /// The same question as Git asks it: nanoseconds do not count. This decides which entries a
    /// writer has to look at again, so that Git sees through them too.
    pub fn is_racy_by_second(&self, index_time: Time) -> bool {
        index_time.seconds != 0 && index_time.seconds <= self.mtime.seconds
    }
}

/// The longest step of the clock that file systems take their times from.
const TICK_NANOSECONDS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u32, nanoseconds: u32) -> Time {
        Time {
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
        assert!(recorded.matches(&now, Rules::default()));
        let known = Stat {
            mtime: at(5, 8),
            ..recorded
        };
        assert_eq!(known.changes(&now, Rules::default()), Change::MTIME);
        assert!(known.matches(
            &now,
            Rules {
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
