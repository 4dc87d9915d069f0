//! The local time zone.

use std::sync::OnceLock;

use gix_date::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The file that contains the local time zone.
const LOCAL_ZONE: &str = "/etc/localtime";

/// Returns the time zone of the system at the first call, or `None` if `TZ` is set. The file is
/// read directly: a search for the name of the zone would have to list the whole time zone
/// database.
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

/// Returns the local time zone: that of `TZ` if `TZ` is set, else that of the system.
pub(crate) fn time_zone() -> TimeZone {
    zone().cloned().unwrap_or_else(TimeZone::system)
}

/// Returns the present time with the offset of the local time zone.
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
