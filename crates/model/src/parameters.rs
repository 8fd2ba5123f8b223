//! Workload parameters: the numbers of a cell, with one list of their names.
//!
//! Suites set them in `parameters`, `verify`, `warmup` and as axes; trials read them. Programs get them as
//! fields of the spec (`sdk/CONTRACT.md`).

use serde::{Deserialize, Serialize};

macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $name:ident)*) => {
        /// Absent where the suite does not set it.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Parameters {
            $($(#[doc = $doc])+
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $name: Option<u64>,)*
        }

        impl Parameters {
            /// Every name, in the order of this file.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The parameter of this name; `None` if there is none of this name.
            pub fn by_name(&mut self, name: &str) -> Option<&mut Option<u64>> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// The parameters that are set.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*]
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value?)))
            }

            /// The parameters with those of `other` in place of their own.
            pub fn with(&self, other: &Self) -> Self {
                Self { $($name: other.$name.or(self.$name)),* }
            }
        }
    };
}

parameters! {
    /// Operations of all connections together.
    operations
    /// Payload bytes of one direction of one connection, for each transfer.
    bytes
    /// Transfers of a stream on one connection, one after the other.
    transfers
    /// Length of the window, where no number of operations ends it. With `bytes`, transfers of that length
    /// are made until it is over.
    seconds
    /// Connections open at the same time.
    connections
    /// Threads of each end.
    threads
    /// Bytes of a message, write, datagram or page.
    size
    /// Operations per second of an open loop.
    rate
    /// The rate in percent of what the row does in a closed loop, which is measured first.
    load
    /// MTU of every link, in bytes.
    mtu
    /// Milliseconds after which one operation counts as failed.
    timeout_ms
    /// Seconds after which the trial has failed, where that is sooner than the lab's own limit.
    deadline
    /// CPUs that the cell runs on.
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, u64)>) -> Parameters {
        let mut parameters = Parameters::default();
        pairs.into_iter().for_each(|(name, value)| *parameters.by_name(name).unwrap() = Some(value));
        parameters
    }

    #[test]
    fn every_name_can_be_set_and_read_back() {
        let pairs = || Parameters::NAMES.iter().zip(1..).map(|(name, value)| (*name, value));
        assert!(from_pairs(pairs()).iter().eq(pairs()));
        assert!(Parameters::default().by_name("conections").is_none());
    }

    #[test]
    fn parameters_of_the_other_set_win() {
        let [one, two] = [[("size", 1), ("bytes", 2)], [("size", 3), ("rate", 4)]].map(from_pairs);
        let both = one.with(&two);
        assert_eq!((both.size, both.bytes, both.rate, both.operations), (Some(3), Some(2), Some(4), None));
    }
}
