//! The pictures of `format-number()`, with XPath 3.1's default decimal format: `#,##0.00;(#,##0.00)`.
//!
//! A picture is one or two sub-pictures: for all numbers, or for positive and for negative ones. A sub-picture is a
//! prefix, digits (`0` is always written, `#` if it is needed) with `,` and `.` between them, and a suffix. A number
//! is taken as the shortest decimal that reads back as the same number, and rounded half to even.
//!
//! Cost: linear in the picture and the digits of the number.

use super::functions::number_text;

/// A valid picture.
pub struct Picture {
    positive: SubPicture,
    negative: SubPicture,
}

#[derive(Clone, Default)]
struct SubPicture {
    prefix: String,
    suffix: String,
    /// 100 for `%`, 1000 for `‰`, else 1.
    factor: f64,
    /// How many digits stand to the right of each separator in the integer part.
    groups: Vec<usize>,
    /// The distance of separators that are repeated to the left.
    repeated: Option<usize>,
    least_integer: usize,
    least_fraction: usize,
    most_fraction: usize,
    /// How many digits stand to the left of each separator in the fraction.
    fraction_groups: Vec<usize>,
}

impl Picture {
    /// `Err` is the reason why it is refused.
    pub fn parse(text: &str) -> Result<Picture, String> {
        let mut parts = text.split(';');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        if parts.next().is_some() {
            return Err("it has more than one `;`".to_string());
        }
        let positive = SubPicture::parse(first)?;
        let negative = match second {
            Some(text) => SubPicture::parse(text)?,
            None => SubPicture { prefix: format!("-{}", positive.prefix), ..positive.clone() },
        };
        Ok(Picture { positive, negative })
    }

    pub fn format(&self, number: f64) -> String {
        if number.is_nan() {
            return "NaN".to_string();
        }
        let picture = if number.is_sign_negative() { &self.negative } else { &self.positive };
        let written = picture.digits(number.abs() * picture.factor);
        format!("{}{written}{}", picture.prefix, picture.suffix)
    }
}

fn is_digit(c: char) -> bool {
    c == '#' || c.is_ascii_digit()
}

fn is_active(c: char) -> bool {
    is_digit(c) || matches!(c, '.' | ',')
}

impl SubPicture {
    fn parse(text: &str) -> Result<SubPicture, String> {
        let refuse = |reason: &str| Err(reason.to_string());
        let (Some(start), Some(last)) = (text.find(is_active), text.rfind(is_active)) else {
            return refuse("it has no digit `0` or `#`");
        };
        // Active characters are ASCII.
        let (prefix, digits, suffix) = (&text[..start], &text[start..=last], &text[last + 1..]);
        if let Some(other) = digits.chars().find(|&c| !is_active(c)) {
            return Err(match other {
                'e' => "exponents (`e`) are not supported".to_string(),
                _ => format!("`{other}` stands between digits"),
            });
        }
        if !digits.contains(is_digit) {
            return refuse("it has no digit `0` or `#`");
        }
        let mut parts = digits.split('.');
        let (integer, fraction) = (parts.next().unwrap_or_default(), parts.next());
        if parts.next().is_some() {
            return refuse("it has more than one `.`");
        }
        let has_fraction = fraction.is_some();
        let fraction = fraction.unwrap_or_default();
        if digits.contains(",,") {
            return refuse("two `,` stand side by side");
        }
        if integer.ends_with(',') || fraction.starts_with(',') {
            return Err(match has_fraction {
                true => "a `,` stands next to the `.`".to_string(),
                false => "a `,` stands at the end of the digits".to_string(),
            });
        }
        let is_zero = |c: char| c.is_ascii_digit();
        if integer.find(is_zero).is_some_and(|zero| integer[zero..].contains('#')) {
            return refuse("before the `.`, a `#` stands after a `0`");
        }
        if fraction.find('#').is_some_and(|optional| fraction[optional..].contains(is_zero)) {
            return refuse("after the `.`, a `0` stands after a `#`");
        }
        let around = || prefix.chars().chain(suffix.chars());
        let count = |wanted: char| around().filter(|&c| c == wanted).count();
        let factor = match (count('%'), count('‰')) {
            (0, 0) => 1.0,
            (1, 0) => 100.0,
            (0, 1) => 1000.0,
            _ => return refuse("it has more than one `%` or `‰`"),
        };
        let length = |part: &str| part.chars().filter(|&c| is_digit(c)).count();
        let separators = |part: &str, count: &dyn Fn(&str, &str) -> usize| -> Vec<usize> {
            part.match_indices(',').map(|(at, _)| count(&part[..at], &part[at + 1..])).collect()
        };
        let groups = separators(integer, &|_, right| length(right));
        let mut picture = SubPicture {
            prefix: prefix.to_string(),
            suffix: suffix.to_string(),
            factor,
            repeated: repeated(&groups, length(integer)),
            groups,
            least_integer: integer.chars().filter(|&c| is_zero(c)).count(),
            least_fraction: fraction.chars().filter(|&c| is_zero(c)).count(),
            most_fraction: length(fraction),
            fraction_groups: separators(fraction, &|left, _| length(left)),
        };
        if picture.least_integer == 0 && picture.most_fraction == 0 {
            picture.least_integer = 1;
        }
        if picture.least_integer == 0 && picture.least_fraction == 0 {
            picture.least_fraction = 1;
        }
        Ok(picture)
    }

    /// A number that is not negative.
    fn digits(&self, number: f64) -> String {
        let text = number_text(number);
        if number.is_infinite() {
            return text;
        }
        let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let (integer, fraction) = rounded(integer, fraction, self.most_fraction);
        let integer = format!("{:0>1$}", integer.trim_start_matches('0'), self.least_integer);
        let fraction = format!("{:0<1$}", fraction.trim_end_matches('0'), self.least_fraction);
        let mut written = String::with_capacity(integer.len() * 2 + fraction.len() + 1);
        for (at, digit) in integer.chars().enumerate() {
            let right = integer.len() - at;
            let is_separated = match self.repeated {
                Some(distance) => right % distance == 0,
                None => self.groups.contains(&right),
            };
            if at > 0 && is_separated {
                written.push(',');
            }
            written.push(digit);
        }
        for (at, digit) in fraction.chars().enumerate() {
            match at {
                0 => written.push('.'),
                at if self.fraction_groups.contains(&at) => written.push(','),
                _ => {}
            }
            written.push(digit);
        }
        written
    }
}

/// The distance of separators that stand at every multiple of it, if they do.
fn repeated(groups: &[usize], digits: usize) -> Option<usize> {
    let &distance = groups.iter().min()?;
    let is_regular = groups.iter().all(|group| group % distance == 0)
        && (1..).map(|times| times * distance).take_while(|&at| at < digits).all(|at| groups.contains(&at));
    is_regular.then_some(distance)
}

/// The digits before and after the point, with at most so many after it: rounded half to even.
fn rounded(integer: &str, fraction: &str, most: usize) -> (String, String) {
    if fraction.len() <= most {
        return (integer.to_string(), fraction.to_string());
    }
    let mut digits: Vec<u8> = integer.bytes().chain(fraction.bytes().take(most)).collect();
    let dropped = &fraction.as_bytes()[most..];
    let is_odd = digits.last().is_some_and(|digit| digit % 2 == 1);
    let rounds_up = match dropped[0] {
        b'5' => is_odd || dropped[1..].iter().any(|&digit| digit != b'0'),
        digit => digit > b'5',
    };
    if rounds_up {
        let nines = digits.iter().rev().take_while(|&&digit| digit == b'9').count();
        let kept = digits.len() - nines;
        digits[kept..].fill(b'0');
        match kept {
            0 => digits.insert(0, b'1'),
            _ => digits[kept - 1] += 1,
        }
    }
    let fraction = digits.split_off(digits.len() - most);
    let text = |digits: Vec<u8>| String::from_utf8(digits).unwrap_or_default();
    (text(digits), text(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(number: f64, picture: &str) -> String {
        Picture::parse(picture).expect(picture).format(number)
    }

    /// Examples of the recommendation among them.
    #[test]
    fn numbers_are_written_as_the_picture_says() {
        let examples = [
            (12345.6, "#,###.00", "12,345.60"),
            (12345678.9, "9,999.99", "12,345,678.90"),
            (123.9, "9999", "0124"),
            (0.14, "01%", "14%"),
            (-6.0, "000", "-006"),
            (0.5, "#", "0"),
            (1.5, "0", "2"),
            (2.5, "0", "2"),
            (0.05, ".0", ".0"),
            (0.15, ".0", ".2"),
            (0.0, "#.#", ".0"),
            (0.0, "#.00", ".00"),
            (999.995, "0.00", "1000.00"),
            (9.995, "0.0#", "10.0"),
            (-1234.5, "#,##0.00;(#,##0.00)", "(1,234.50)"),
            (1234567.0, "#,##,00", "1,23,45,67"),
            (1234567.0, "0,0000,0", "12,3456,7"),
            (0.123456, "0.00,00", "0.12,35"),
            (0.012, "0.0‰ net", "12.0‰ net"),
            (f64::INFINITY, "0 EUR", "Infinity EUR"),
            (f64::NEG_INFINITY, "0", "-Infinity"),
            (f64::NAN, "0 EUR", "NaN"),
            (-0.0, "0", "-0"),
            (5.0, "#.##", "5.0"),
            (1e21, "#,##0", "1,000,000,000,000,000,000,000"),
        ];
        for (number, picture, text) in examples {
            assert_eq!(format(number, picture), text, "{number} by {picture}");
        }
    }

    #[test]
    fn bad_pictures_are_refused_with_the_reason() {
        let examples = [
            ("", "no digit"),
            (".", "no digit"),
            ("0;0;0", "more than one `;`"),
            ("0;", "no digit"),
            ("0.0.0", "more than one `.`"),
            ("0,,0", "side by side"),
            ("0,.0", "next to the `.`"),
            ("0.,0", "next to the `.`"),
            ("0,", "end of the digits"),
            ("0#", "`#` stands after a `0`"),
            ("0.#0", "`0` stands after a `#`"),
            ("0 0", "between digits"),
            ("0e0", "exponents"),
            ("%0%", "more than one `%`"),
        ];
        for (picture, reason) in examples {
            let found = Picture::parse(picture).err().unwrap_or_default();
            assert!(found.contains(reason), "{picture}: {found}");
        }
    }
}
