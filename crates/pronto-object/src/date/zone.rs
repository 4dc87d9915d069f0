//! The local time zone.

use std::sync::OnceLock;

use gix_date::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The file with which the system names its time zone.
const LOCAL_ZONE: &str = "/etc/localtime";

/// The zone that the system was in when it was asked first, unless the environment says which one
/// counts. Its name does not matter: to find out which one the file is would be to list all that
/// there are.
fn zone() -> Option<&'static TimeZone> {
    static ZONE: OnceLock<Option<TimeZone>> = OnceLock::new();
    let read = || {
        let data = std::fs::read(LOCAL_ZONE).ok()?;
        TimeZone::tzif("local", &data).ok()
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the library for time zones asks the process, too"
    )]
    let is_system = std::env::var_os("TZ").is_none();
    is_system.then(|| ZONE.get_or_init(read).as_ref()).flatten()
}

/// Returns the zone of the system, or the one that the environment of the process names.
pub(crate) fn time_zone() -> TimeZone {
    zone().cloned().unwrap_or_else(TimeZone::system)
}

/// Returns the time now, with the offset of the local time zone.
pub fn local_now() -> Time {
    let Some(zone) = zone() else {
        return Time::now_local_or_utc();
    };
    let now = Timestamp::now();
    Time {
        seconds: now.as_second(),
        offset: zone.to_offset(now).seconds(),
    }
}
