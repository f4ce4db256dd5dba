//! `xs:date()` and `xs:dateTime()`: a moment as seconds since 1970-01-01T00:00:00Z, so that moments compare as numbers.
//!
//! A value without a time zone is taken to be in UTC. A date is the moment at which its day starts.

use crate::util::xml_chars::is_space;

const DAY: f64 = 86_400.0;
/// XML Schema's bound of time zones.
const ZONE_MINUTES: i64 = 14 * 60;

/// The moment that a date's day starts; NaN if the text is no date.
pub fn date(text: &[u8]) -> f64 {
    let mut reader = Reader(trimmed(text));
    let moment = || {
        let days = reader.date()?;
        reader.zoned(days as f64 * DAY)
    };
    complete(moment)
}

/// The moment of a date with a time; NaN if the text is none.
pub fn date_time(text: &[u8]) -> f64 {
    let mut reader = Reader(trimmed(text));
    let moment = || {
        let days = reader.date()?;
        reader.one_of(b"T")?;
        let seconds = reader.time()?;
        reader.zoned(days as f64 * DAY + seconds)
    };
    complete(moment)
}

fn complete(mut moment: impl FnMut() -> Option<f64>) -> f64 {
    moment().unwrap_or(f64::NAN)
}

/// The text without white space around it.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|&byte| !is_space(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// The unread rest of a text.
struct Reader<'t>(&'t [u8]);

impl Reader<'_> {
    /// `-?YYYY-MM-DD`, as days since 1970-01-01. A year may have more than four digits.
    fn date(&mut self) -> Option<i64> {
        let is_negative = self.one_of(b"-").is_some();
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // Nine digits are far more than a moment can tell apart by seconds.
        if !(4..=9).contains(&digits) || (digits > 4 && self.0[0] == b'0') {
            return None;
        }
        let year = self.number(digits)?;
        let year = if is_negative { -year } else { year };
        self.one_of(b"-")?;
        let month = self.number(2).filter(|month| (1..=12).contains(month))?;
        self.one_of(b"-")?;
        let day = self.number(2).filter(|day| (1..=days_in(year, month)).contains(day))?;
        Some(days_since_epoch(year, month, day))
    }

    /// `hh:mm:ss(.s+)?`, as seconds. 24:00:00 is the end of the day.
    fn time(&mut self) -> Option<f64> {
        let hours = self.number(2)?;
        self.one_of(b":")?;
        let minutes = self.number(2)?;
        self.one_of(b":")?;
        let seconds = self.number(2)?;
        let mut fraction = 0.0;
        if self.one_of(b".").is_some() {
            let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let text = std::str::from_utf8(&self.0[..digits]).ok().filter(|text| !text.is_empty())?;
            fraction = format!("0.{text}").parse().ok()?;
            self.0 = &self.0[digits..];
        }
        let is_end = hours == 24 && minutes == 0 && seconds == 0 && fraction == 0.0;
        let is_valid = (hours < 24 || is_end) && minutes < 60 && seconds < 60;
        is_valid.then_some((hours * 3600 + minutes * 60 + seconds) as f64 + fraction)
    }

    /// `(Z | ±hh:mm)?` and the end of the text: the local moment in UTC.
    fn zoned(&mut self, local: f64) -> Option<f64> {
        let minutes = match self.one_of(b"Z+-") {
            None | Some(b'Z') => 0,
            Some(sign) => {
                let hours = self.number(2)?;
                self.one_of(b":")?;
                let minutes = self.number(2).filter(|&minutes| minutes < 60)?;
                let minutes = Some(hours * 60 + minutes).filter(|&minutes| minutes <= ZONE_MINUTES)?;
                if sign == b'+' { minutes } else { -minutes }
            }
        };
        self.0.is_empty().then_some(local - (minutes * 60) as f64)
    }

    /// The number in the next digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let text = self.0.get(..digits).filter(|text| text.iter().all(u8::is_ascii_digit))?;
        self.0 = &self.0[digits..];
        Some(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// The next byte, if it is one of these.
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first().filter(|(first, _)| bytes.contains(first))?;
        self.0 = rest;
        Some(first)
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days of the Gregorian calendar, counted in years that start in March: a leap day is then the last one.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + days_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_moments() {
        assert_eq!(date(b"1970-01-01"), 0.0);
        assert_eq!(date(b" 2026-11-18\n"), 1_794_960_000.0);
        assert_eq!(date(b"2000-03-01") - date(b"2000-02-28"), 2.0 * DAY);
        assert_eq!(date(b"1900-03-01") - date(b"1900-02-28"), DAY);
        assert_eq!(date(b"2026-01-01+01:00"), date(b"2026-01-01") - 3600.0);
        assert_eq!(date_time(b"2026-01-01T24:00:00Z"), date(b"2026-01-02"));
        assert_eq!(date_time(b"2026-01-01T10:30:00.5-05:30"), date(b"2026-01-01") + 57_600.5);
        assert!(date(b"-0001-01-01") < date(b"0001-01-01"));
    }

    #[test]
    fn other_texts_are_not() {
        let texts = [
            "",
            "2026",
            "2026-1-1",
            "2026-13-01",
            "2026-02-29",
            "2026-01-01T00:00:00",
            "2026-01-01Zx",
            "01.01.2026",
            "2026-01-01+15:00",
            "02026-01-01",
            "12026-1-1",
        ];
        for text in texts {
            assert!(date(text.as_bytes()).is_nan(), "{text}");
        }
        for text in ["2026-01-01", "2026-01-01T24:00:01", "2026-01-01T1:00:00", "2026-01-01T10:00:00."] {
            assert!(date_time(text.as_bytes()).is_nan(), "{text}");
        }
    }
}
