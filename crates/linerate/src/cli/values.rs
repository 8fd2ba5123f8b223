//! Values of flags, from their texts.

use super::span;
use crate::measurement::{DecidingPercentile, Expectation, PlannedRate, bounds};
use std::path::PathBuf;
use std::time::Duration;

/// `1%`, `0.5 %` or `0.005`.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if (0.5..50.0).contains(&number) && unit == 1.0 => {
            Err(format!("is that {number} %? Write {number}%"))
        }
        number => bounds::margin(number.unwrap_or(f64::NAN) / unit),
    }
}

pub(super) fn microseconds(text: &str) -> Result<f64, String> {
    bounds::microseconds(text.strip_suffix("us").unwrap_or(text).trim().parse().unwrap_or(f64::NAN))
}

/// The time of a run.
pub(super) fn budget(text: &str) -> Result<Duration, String> {
    bounds::budget(span(text)?.into()).map(Into::into)
}

/// `5000`, or `50%` of a capacity.
pub(super) fn rate(text: &str) -> Result<PlannedRate, String> {
    bounds::rate(match text.strip_suffix('%') {
        Some(percent) => PlannedRate::Share(percent.trim().parse().unwrap_or(f64::NAN) / 100.0),
        None => PlannedRate::PerSecond(text.parse().unwrap_or(0)),
    })
}

pub(super) fn percentile(text: &str) -> Result<DecidingPercentile, String> {
    match text {
        "p50" => Ok(DecidingPercentile::P50),
        "p90" => Ok(DecidingPercentile::P90),
        _ => Err("expected p50 or p90; higher ones are not known within minutes".into()),
    }
}

pub(super) fn request_target(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("expected a path such as /api/items: the address is found".into())
    }
}

/// `status=404,length=12,json`.
pub(super) fn expectation(text: &str) -> Result<Expectation, String> {
    let mut expectation = Expectation::default();
    for part in text.split(',') {
        let unknown = || format!("`{part}`: expected status=N, length=N or json");
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name {
            "json" if value.is_empty() => expectation.json = true,
            "status" => {
                let status = value.parse().ok().filter(|status| (100..600).contains(status));
                expectation.status = Some(status.ok_or_else(|| format!("`{part}`: no status of HTTP"))?);
            }
            "length" => {
                let bytes = value.parse().map_err(|_| format!("`{part}`: expected a whole number"))?;
                expectation.bytes = Some(bytes);
            }
            _ => return Err(unknown()),
        }
    }
    Ok(expectation)
}

/// A folder or file, and its place in an image.
pub(super) fn volume(text: &str) -> Result<(PathBuf, PathBuf), String> {
    match text.split_once(':') {
        Some((path, place)) if !path.is_empty() && place.starts_with('/') => Ok((path.into(), place.into())),
        _ => Err("expected PATH:PLACE, such as ./conf:/etc/shop".into()),
    }
}

/// A variable of an environment.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_without_a_unit_is_asked_for_it() {
        assert_eq!([percent("5%"), percent("0.05"), percent("0.5 %")], [Ok(0.05), Ok(0.05), Ok(0.005)]);
        assert_eq!(percent("5").unwrap_err(), "is that 5 %? Write 5%");
        assert!(percent("60%").is_err() && percent("x").is_err());
    }

    #[test]
    fn an_expectation_has_parts_by_name() {
        let expected = Expectation { status: Some(404), bytes: Some(12), crc32: None, json: true };
        assert_eq!(expectation("status=404,length=12,json"), Ok(expected));
        for (text, part) in
            [("xml", "expected status=N"), ("status=9", "no status"), ("length=x", "whole number")]
        {
            assert!(expectation(text).unwrap_err().contains(part), "{text}");
        }
    }
}
