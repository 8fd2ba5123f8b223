//! Units of a path: rates, shares, times and sizes, as text and as types.

use linerate_contract::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(pub u64);

impl BitRate {
    /// The time of this many bytes.
    pub fn time_of(self, bytes: Bytes) -> Nanos {
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000;
        Nanos(u64::try_from(bits / u128::from(self.0.max(1))).unwrap_or(u64::MAX))
    }

    /// The bytes of this time.
    pub fn bytes_in(self, time: Nanos) -> Bytes {
        let bits = u128::from(self.0) * u128::from(time.0) / 1_000_000_000;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

/// From 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub f64);

impl Share {
    pub fn is_zero(&self) -> bool {
        self.0 == 0.0
    }
}

/// Factors of [`BitRate`], with the names of tc(8).
const RATES: [(&str, u64); 4] = [("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000), ("bit", 1)];
const SIZES: [(&str, u64); 5] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("kB", 1_000), ("MB", 1_000_000), ("B", 1)];

/// `10Mbit`; `none` is `None`.
///
/// # Errors
/// The text is no rate; the message has the expected form.
pub fn rate(text: &str) -> Result<Option<BitRate>, String> {
    if text == "none" {
        return Ok(None);
    }
    let bits = scaled(text, &RATES).filter(|bits| *bits >= 1_000);
    bits.map(|bits| Some(BitRate(bits)))
        .ok_or_else(|| format!("`{text}` is not a rate such as 500kbit, 10Mbit or 1Gbit, or none"))
}

/// `125kB`.
///
/// # Errors
/// The text is no size; the message has the expected form.
pub fn size(text: &str) -> Result<Bytes, String> {
    let bytes = scaled(text, &SIZES).filter(|bytes| *bytes > 0);
    bytes.map(Bytes).ok_or_else(|| format!("`{text}` is not a size such as 64KiB, 125kB or 1MB"))
}

/// `1%`, or `0`.
///
/// # Errors
/// The text is no share; the message has the expected form.
pub fn share(text: &str) -> Result<Share, String> {
    let number = if text == "0" { Some("0") } else { text.strip_suffix('%') };
    let percent = number.and_then(|number| number.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.0..100.0).contains(percent));
    percent
        .map(|percent| Share(percent / 100.0))
        .ok_or_else(|| format!("`{text}` is not a percentage below 100% such as 0.1%"))
}

/// `20ms`, or `0`.
///
/// # Errors
/// The text is no time; the message has the expected form.
pub fn time(text: &str) -> Result<Nanos, String> {
    if text == "0" {
        return Ok(Nanos::ZERO);
    }
    let time = humantime::parse_duration(text).ok().filter(|time| time.as_secs() < 60);
    time.map(Nanos::from).ok_or_else(|| format!("`{text}` is not a time below 60s such as 500us or 20ms"))
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let value = number.trim().parse::<f64>().ok()? * factor as f64;
    (0.0..1e15).contains(&value).then_some(value.round() as u64)
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = match self.0 {
            1_000_000_000.. => ("Gbit/s", 1e9),
            1_000_000.. => ("Mbit/s", 1e6),
            _ => ("kbit/s", 1e3),
        };
        write!(f, "{} {unit}", self.0 as f64 / factor)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 0.29 % as a share is not exact: nine digits hide that.
        write!(f, "{} %", (self.0 * 1e11).round() / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_printed() {
        for (text, bits, printed) in [
            ("10Mbit", 10_000_000, "10 Mbit/s"),
            ("1.5Gbit", 1_500_000_000, "1.5 Gbit/s"),
            ("500 kbit", 500_000, "500 kbit/s"),
            ("2000bit", 2_000, "2 kbit/s"),
        ] {
            let rate = rate(text).unwrap().unwrap();
            assert_eq!((rate.0, rate.to_string().as_str()), (bits, printed));
        }
        assert_eq!(rate("none"), Ok(None));
        assert_eq!(share("0.29%").unwrap().to_string(), "0.29 %");
        assert_eq!((share("0").unwrap(), time("0").unwrap()), (Share(0.0), Nanos::ZERO));
        assert_eq!(time("20ms"), Ok(Nanos(20_000_000)));
        assert_eq!((size("64KiB"), size("125kB")), (Ok(Bytes(65_536)), Ok(Bytes(125_000))));
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in ["", "10", "Mbit", "-1Mbit", "1e300Gbit", "NaNMbit", "10Mbyte", "0Mbit"] {
            assert!(rate(text).unwrap_err().contains("10Mbit"), "{text}");
        }
        for text in ["1", "100%", "-1%", "x%", "NaN%"] {
            assert!(share(text).unwrap_err().contains("0.1%"), "{text}");
        }
        for text in ["20", "2min", "ms", "-1ms"] {
            assert!(time(text).unwrap_err().contains("20ms"), "{text}");
        }
        for text in ["10", "0B", "xKiB"] {
            assert!(size(text).unwrap_err().contains("64KiB"), "{text}");
        }
    }

    #[test]
    fn a_rate_converts_bytes_and_time() {
        let rate = BitRate(10_000_000);
        assert_eq!(rate.time_of(Bytes(1_250)), Nanos(1_000_000));
        assert_eq!(rate.bytes_in(Nanos(100_000_000)), Bytes(125_000));
    }
}
