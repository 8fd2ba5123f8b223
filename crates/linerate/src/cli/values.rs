//! Values of flags: the text that a user wrote, and its meaning.

use super::grpc::rpc_method;
use super::span;
use crate::measurement::{DecidingPercentile, Expectation, PlannedRate};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// A value with its text, which is a word of the command line; in linerate.toml, a text or a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Text<T> {
    text: String,
    pub value: T,
}

/// What a text may mean.
pub trait Meaning: Sized {
    /// # Errors
    /// What is expected.
    fn parse(text: &str) -> Result<Self, String>;
}

impl<T: Meaning> FromStr for Text<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self { value: T::parse(text)?, text: text.to_owned() })
    }
}

impl<T> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de, T: Meaning> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(from)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            _ => return Err(D::Error::custom("expected a text or a number")),
        };
        text.parse().map_err(D::Error::custom)
    }
}

/// One text, or a list of them.
pub(super) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    match Value::deserialize(from)? {
        Value::String(one) => Ok(vec![one]),
        several => {
            Vec::deserialize(several).map_err(|_| D::Error::custom("expected a text or a list of texts"))
        }
    }
}

/// Names and their values by turns, as on the command line; or a table, in which each name has a list.
pub(super) fn lists<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let value = Value::deserialize(from)?;
    let Value::Object(_) = value else { return texts(value).map_err(D::Error::custom) };
    let named = BTreeMap::<String, Vec<String>>::deserialize(value).map_err(|_| {
        D::Error::custom("expected a list of texts for each name, such as { n = [\"1\", \"4\"] }")
    })?;
    Ok(named.into_iter().flat_map(|(name, values)| [name, values.join(",")]).collect())
}

/// A share below one half, written in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

impl Meaning for Percent {
    /// `1%`, `0.5 %` or `0.005`.
    fn parse(text: &str) -> Result<Self, String> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number.trim(), 100.0),
            None => (text, 1.0),
        };
        match number.parse::<f64>() {
            Ok(number) if number > 0.0 && number / unit < 0.5 => Ok(Self(number / unit)),
            _ => Err("expected a difference above 0 and below 50%, such as 1%".into()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Microseconds(pub f64);

impl Meaning for Microseconds {
    fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("us").unwrap_or(text).trim().parse().ok();
        let number = number.filter(|us| *us > 0.0 && *us < 1e9);
        number.map(Self).ok_or_else(|| "expected microseconds above 0, such as 5".into())
    }
}

impl Meaning for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        span(text)
    }
}

impl Meaning for PlannedRate {
    /// `5000`, or `50%` of a capacity.
    fn parse(text: &str) -> Result<Self, String> {
        let found = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse().ok().map(|percent: f64| Self::Share(percent / 100.0)),
            None => text.parse().ok().map(Self::PerSecond),
        };
        match found {
            Some(rate @ Self::Share(share)) if share > 0.0 && share < 1.0 => Ok(rate),
            Some(rate @ Self::PerSecond(1..=10_000_000)) => Ok(rate),
            _ => Err(
                "expected operations per second such as 5000, or a share of the baseline's capacity such \
                      as 50%"
                    .into(),
            ),
        }
    }
}

impl Meaning for DecidingPercentile {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "p50" => Ok(Self::P50),
            "p90" => Ok(Self::P90),
            _ => Err("expected p50 or p90; higher ones are not known within minutes".into()),
        }
    }
}

/// The path and query of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTarget(pub String);

impl Meaning for RequestTarget {
    fn parse(text: &str) -> Result<Self, String> {
        match text.starts_with('/') {
            true => Ok(Self(text.to_owned())),
            false => Err("expected a path such as /api/items: the address is found".into()),
        }
    }
}

/// A method as `package.Service/Method`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcMethod(pub String);

impl Meaning for RpcMethod {
    fn parse(text: &str) -> Result<Self, String> {
        rpc_method(text).map(Self)
    }
}

impl Meaning for Expectation {
    fn parse(text: &str) -> Result<Self, String> {
        let mut expectation = Self::default();
        for part in text.split(',') {
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
                _ => return Err(format!("`{part}`: expected status=N, length=N or json")),
            }
        }
        Ok(expectation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_has_parts_by_name() {
        let expected = Expectation { status: Some(404), bytes: Some(12), crc32: None, json: true };
        assert_eq!(Expectation::parse("status=404,length=12,json"), Ok(expected));
        for (text, part) in
            [("xml", "expected status=N"), ("status=9", "no status"), ("length=x", "whole number")]
        {
            assert!(Expectation::parse(text).unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn a_rate_is_a_number_or_a_share_also_where_it_is_no_text() {
        let of = |value: Value| Text::<PlannedRate>::deserialize(value).map(|rate| rate.value);
        assert_eq!(of("50%".into()).unwrap(), PlannedRate::Share(0.5));
        assert_eq!(of(5_000.into()).unwrap(), PlannedRate::PerSecond(5_000));
        assert!(of(true.into()).unwrap_err().to_string().contains("a text or a number"));
        assert!(of("0%".into()).unwrap_err().to_string().contains("such as 50%"));
    }
}
