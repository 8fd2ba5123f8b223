//! The width of the intervals that a suite asks for: `precision = { half-width = 0.02, time = "220s" }`.

use super::file::PrecisionEntry;
use crate::measurement::Precision;

/// # Errors
/// A half-width that is no share, or a time that cannot be read; with the key.
pub(super) fn precision(entry: &PrecisionEntry) -> Result<Precision, String> {
    if !(entry.half_width > 0.0 && entry.half_width < 1.0) {
        return Err("precision.half-width: expected a share such as 0.02".to_owned());
    }
    let time = humantime::parse_duration(&entry.time).ok().filter(|time| !time.is_zero());
    let time =
        time.ok_or_else(|| format!("precision.time: `{}` is not a time such as \"4min\"", entry.time))?;
    Ok(Precision { half_width: entry.half_width, time: time.into() })
}
