//! Options of a spec that are numbers.

use crate::refusal::Refusal;
use linerate_contract::Spec;
use std::ops::RangeInclusive;

/// `options.<name>`, if it is there; `of` says in the refusal what the number is one of, and may be empty.
///
/// # Errors
/// It is no number, or out of its range.
pub(crate) fn number(
    spec: &Spec,
    name: &str,
    range: RangeInclusive<u64>,
    of: &str,
) -> Result<Option<u64>, Refusal> {
    let Some(text) = spec.options.get(name) else { return Ok(None) };
    let value = text.parse().ok().filter(|n| range.contains(n));
    value.map(Some).ok_or_else(|| {
        let (low, high) = range.into_inner();
        Refusal::BadSpec(format!("\"options.{name}\" must be {low} to {high}{of}, not {text:?}"))
    })
}
