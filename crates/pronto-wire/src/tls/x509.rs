//! Reads the parts of X.509 certificates that the TLS library does not show (RFC 5280): the validity and
//! the purpose. TLS verifies signatures, not this module.

/// The DER tag of a sequence.
const SEQUENCE: u8 = 0x30;

/// The DER tag of an object identifier.
const OBJECT_IDENTIFIER: u8 = 0x06;

/// The DER tag of an octet string.
const OCTET_STRING: u8 = 0x04;

/// The tag of the version of a certificate, which is optional.
const VERSION: u8 = 0xa0;

/// The tag of the extensions of a certificate.
const EXTENSIONS: u8 = 0xa3;

/// The encoded object identifier of the extension with the purposes, 2.5.29.37.
const EXTENDED_KEY_USAGE: [u8; 3] = [0x55, 0x1d, 0x25];

/// The encoded object identifier of the purpose of servers, 1.3.6.1.5.5.7.3.1.
const SERVER_AUTHENTICATION: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 3, 1];

/// The dates and the purpose of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateDetails {
    /// The first second of the validity, since 1970.
    pub not_before: i64,
    /// The last second of the validity, since 1970.
    pub not_after: i64,
    /// Whether servers may use the certificate: it names this purpose, or no purpose at all.
    pub is_for_servers: bool,
    /// Whether issuer and subject have the same name.
    pub is_self_issued: bool,
}

impl CertificateDetails {
    /// Reads the details of a certificate. Returns `None` if it is malformed.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let outer = DerElement::read(&mut &*certificate)?.of(SEQUENCE)?;
        let mut fields = DerElement::read(&mut &*outer)?.of(SEQUENCE)?;
        // The serial number follows the version, if there is one.
        if DerElement::read(&mut fields)?.tag == VERSION {
            DerElement::read(&mut fields)?;
        }
        let _algorithm = DerElement::read(&mut fields)?;
        let issuer = DerElement::read(&mut fields)?.of(SEQUENCE)?;
        let mut validity = DerElement::read(&mut fields)?.of(SEQUENCE)?;
        let subject = DerElement::read(&mut fields)?.of(SEQUENCE)?;
        let not_before = DerElement::read(&mut validity)?.seconds()?;
        let not_after = DerElement::read(&mut validity)?.seconds()?;
        let mut is_for_servers = true;
        while !fields.is_empty() {
            let field = DerElement::read(&mut fields)?;
            if let Some(extensions) = field.of(EXTENSIONS) {
                is_for_servers = are_for_servers(extensions)?;
            }
        }
        Some(CertificateDetails {
            not_before,
            not_after,
            is_for_servers,
            is_self_issued: issuer == subject,
        })
    }
}

/// Returns whether extensions allow the use by servers.
fn are_for_servers(mut extensions: &[u8]) -> Option<bool> {
    let mut list = DerElement::read(&mut extensions)?.of(SEQUENCE)?;
    while !list.is_empty() {
        let mut extension = DerElement::read(&mut list)?.of(SEQUENCE)?;
        if DerElement::read(&mut extension)?.of(OBJECT_IDENTIFIER)? != EXTENDED_KEY_USAGE {
            continue;
        }
        let mut value = DerElement::read(&mut extension)?;
        if value.tag != OCTET_STRING {
            // The flag of critical extensions is optional.
            value = DerElement::read(&mut extension)?;
        }
        let mut content = value.of(OCTET_STRING)?;
        let mut purposes = DerElement::read(&mut content)?.of(SEQUENCE)?;
        let mut is_found = false;
        while !purposes.is_empty() {
            let purpose = DerElement::read(&mut purposes)?.of(OBJECT_IDENTIFIER)?;
            is_found |= purpose == SERVER_AUTHENTICATION;
        }
        return Some(is_found);
    }
    Some(true)
}

/// An element of DER (X.690).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DerElement<'a> {
    /// The tag.
    pub tag: u8,
    /// The content.
    pub content: &'a [u8],
}

impl<'a> DerElement<'a> {
    /// Takes the first element from `bytes`. Returns `None` if there is no complete element.
    pub fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let (&tag, rest) = bytes.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let (digits, after) = rest.split_at_checked(count)?;
                rest = after;
                digits
                    .iter()
                    .fold(0, |length, digit| length << 8 | usize::from(*digit))
            }
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        *bytes = after;
        Some(DerElement { tag, content })
    }

    /// Returns the content if the element has the tag `tag`.
    pub fn of(self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.content)
    }

    /// Returns the content of a UTF-8 or ASCII string.
    pub fn text(self) -> Option<String> {
        match self.tag {
            0x0c | 0x13 | 0x16 => String::from_utf8(self.content.to_vec()).ok(),
            _ => None,
        }
    }

    /// Returns a time in UTC as seconds since 1970.
    fn seconds(self) -> Option<i64> {
        /// The tag of a time with two digits of the year.
        const SHORT: u8 = 0x17;
        /// The tag of a time with four digits of the year.
        const LONG: u8 = 0x18;
        let digits = self.content.strip_suffix(b"Z")?;
        let is_number = digits.iter().all(u8::is_ascii_digit);
        let (year, rest) = match (self.tag, digits.len()) {
            (SHORT, 12) if is_number => match number(digits, 2)? {
                (year @ 50.., rest) => (1900 + year, rest),
                (year, rest) => (2000 + year, rest),
            },
            (LONG, 14) if is_number => number(digits, 4)?,
            _ => return None,
        };
        let (month, rest) = number(rest, 2)?;
        let (day, rest) = number(rest, 2)?;
        let (hour, rest) = number(rest, 2)?;
        let (minute, rest) = number(rest, 2)?;
        let (second, _) = number(rest, 2)?;
        let is_valid = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        is_valid.then(|| {
            let hours = days_since_1970(year, month, day) * 24 + hour;
            (hours * 60 + minute) * 60 + second
        })
    }
}

/// Takes a number of `count` digits from the start of `digits`.
fn number(digits: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (first, rest) = digits.split_at_checked(count)?;
    let value = |value, digit: &u8| value * 10 + i64::from(digit - b'0');
    Some((first.iter().fold(0, value), rest))
}

/// Returns the number of days from 1 January 1970 to a day of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last day of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("it is short");
        [&[tag, 0x81, length], content].concat()
    }

    fn certificate(issuer: &[u8], extensions: &[u8]) -> Vec<u8> {
        let times = [
            element(0x17, b"491231235959Z"),
            element(0x18, b"20500229000000Z"),
        ];
        let fields = [
            element(VERSION, &[2, 1, 2]),
            element(2, &[1]),
            element(SEQUENCE, &[]),
            element(SEQUENCE, issuer),
            element(SEQUENCE, &times.concat()),
            element(SEQUENCE, b"subject"),
            element(SEQUENCE, &[]),
            extensions.to_vec(),
        ];
        element(SEQUENCE, &element(SEQUENCE, &fields.concat()))
    }

    /// The extension with purposes, after another extension.
    fn purposes(identifiers: &[&[u8]], is_critical: bool) -> Vec<u8> {
        let list: Vec<u8> = identifiers
            .iter()
            .flat_map(|id| element(OBJECT_IDENTIFIER, id))
            .collect();
        let mut extension = element(OBJECT_IDENTIFIER, &EXTENDED_KEY_USAGE);
        if is_critical {
            extension.extend(element(1, &[0xff]));
        }
        extension.extend(element(OCTET_STRING, &element(SEQUENCE, &list)));
        let other = [
            element(OBJECT_IDENTIFIER, &[0x55, 0x1d, 0x13]),
            element(OCTET_STRING, &[]),
        ];
        let list = [
            element(SEQUENCE, &other.concat()),
            element(SEQUENCE, &extension),
        ];
        element(EXTENSIONS, &element(SEQUENCE, &list.concat()))
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (tag, text, expected) in [
            (0x17, "700101000000Z", Some(0)),
            (0x17, "991231235959Z", Some(946_684_799)),
            (0x17, "000229120000Z", Some(951_825_600)),
            (0x17, "500101000000Z", Some(-631_152_000)),
            (0x18, "20491231235959Z", Some(2_524_607_999)),
            (0x18, "99991231235959Z", Some(253_402_300_799)),
            (0x18, "700101000000Z", None),
            (0x17, "701301000000Z", None),
            (0x17, "700101240000Z", None),
            (0x17, "7001010000+0Z", None),
            (0x17, "700101000000", None),
            (0x04, "700101000000Z", None),
        ] {
            let content = text.as_bytes();
            assert_eq!(DerElement { tag, content }.seconds(), expected, "{text}");
        }
    }

    #[test]
    fn details_are_found() {
        let whole = certificate(b"issuer", &[]);
        let found = CertificateDetails::of(&whole).expect("valid");
        assert_eq!(found.not_before, 2_524_607_999);
        assert_eq!(found.not_after, found.not_before + 59 * 86_400 + 1);
        assert!(found.is_for_servers && !found.is_self_issued);
        for end in 0..whole.len() {
            assert_eq!(CertificateDetails::of(&whole[..end]), None, "cut at {end}");
        }
        let own = CertificateDetails::of(&certificate(b"subject", &[]));
        assert!(own.expect("valid").is_self_issued);
    }

    #[test]
    fn a_purpose_excludes_others() {
        let client: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
        for is_critical in [false, true] {
            for (identifiers, expected) in [
                (vec![client], false),
                (vec![client, &SERVER_AUTHENTICATION], true),
                (vec![], false),
            ] {
                let whole = certificate(b"", &purposes(&identifiers, is_critical));
                let found = CertificateDetails::of(&whole).expect("valid");
                assert_eq!(found.is_for_servers, expected, "{identifiers:?}");
            }
        }
    }
}
