//! Response times by status, where a client gets more than one, or wrong ones. Only responses with another
//! status than the first one have histograms of their own; the rest of all is that one's.

use super::Meter;
use crate::layer::Wrong;
use linerate_contract::{Counts, Nanos, Recorder};
use std::collections::BTreeMap;

/// Statuses that have a histogram, which has a quarter of a megabyte; those beyond share one.
const MOST: usize = 16;

/// Counters by status.
#[derive(Debug, Default)]
pub(super) struct Statuses {
    /// The status of the first good response; 0: there was none, or the protocol has no statuses.
    usual: u16,
    others: Vec<Other>,
    /// The sums of all threads that were merged, and whether some of these had others.
    merged: Option<BTreeMap<u16, Recorder>>,
    had_others: bool,
}

/// Responses that are not good ones with the usual status.
#[derive(Debug)]
struct Other {
    status: u16,
    is_good: bool,
    latency: Recorder,
}

impl Statuses {
    #[cold]
    fn record(&mut self, status: u16, is_good: bool, took: Nanos) {
        if is_good && self.usual == 0 {
            self.usual = status;
            return;
        }
        let is_it = |one: &Other| one.status == status && one.is_good == is_good;
        let at = self.others.iter().position(is_it).unwrap_or_else(|| {
            let status = if self.others.len() < MOST { status } else { 0 };
            let shared = self.others.iter().position(|one| (one.status, one.is_good) == (status, is_good));
            shared.unwrap_or_else(|| {
                self.others.push(Other { status, is_good, latency: Recorder::default() });
                self.others.len() - 1
            })
        });
        self.others[at].latency.record(took.0);
    }

    fn is_mixed(&self) -> bool {
        self.had_others || !self.others.is_empty()
    }
}

impl Meter {
    /// Whether good responses with this status are those that need no histogram of their own.
    #[inline]
    pub fn is_usual(&self, status: u16) -> bool {
        status == self.by_status.usual
    }

    /// A good response of an unusual status arrived at `now`, if it `counts`.
    #[cold]
    pub fn unusual(&mut self, counts: bool, status: u16, began: Nanos, now: Nanos) {
        if counts {
            self.by_status.record(status, true, now.since(began));
        }
    }

    /// As [`Meter::fail_of`], by a whole response, whose time counts from `base`.
    #[cold]
    pub fn fail_by(&mut self, request: Option<u32>, wrong: Wrong, began: Nanos, base: Nanos, now: Nanos) {
        let before = self.errors.total();
        self.fail_of(request, wrong.kind, began, now);
        if wrong.status != 0 && self.errors.total() > before {
            self.by_status.record(wrong.status, false, now.since(base));
        }
    }

    pub(super) fn merge_statuses(&mut self, other: &Self) {
        let mut all = self.times_by_status();
        for (status, latency) in other.times_by_status() {
            all.entry(status).or_default().merge(&latency);
        }
        self.by_status.had_others |= other.by_status.is_mixed();
        self.by_status.merged = Some(all);
    }

    fn times_by_status(&self) -> BTreeMap<u16, Recorder> {
        let Statuses { usual, others, merged, .. } = &self.by_status;
        if let Some(merged) = merged {
            return merged.clone();
        }
        let (mut rest, mut all) = (self.latency.clone(), BTreeMap::<u16, Recorder>::new());
        for Other { status, is_good, latency } in others {
            if *is_good {
                rest.subtract(latency);
            }
            all.entry(*status).or_default().merge(latency);
        }
        if *usual != 0 {
            all.entry(*usual).or_default().merge(&rest);
        }
        all
    }

    /// By status, where there are several, or wrong responses.
    pub(super) fn status_counts(&self) -> BTreeMap<String, Counts> {
        let all = self.times_by_status();
        if all.len() < 2 && !self.by_status.is_mixed() {
            return BTreeMap::new();
        }
        let name = |status: u16| if status == 0 { "other".to_owned() } else { status.to_string() };
        all.into_iter().map(|(status, latency)| (name(status), latency.counts())).collect()
    }
}
