//! `options` of a spec: the names of the contract, and their values as types.
//!
//! A program accepts the names in [`CONTRACT_OPTIONS`] and its own list; [`Spec::check_options`] refuses all
//! others. Values are text in the spec and are parsed here: [`Spec::number`], [`Spec::choice`], and one
//! method for each common option.

use crate::{Refusal, Spec, nearest};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The contract's option names with their meaning (sdk/CONTRACT.md). Every program accepts them.
pub const CONTRACT_OPTIONS: &[(&str, &str)] = &[
    ("direction", "stream: client-writes, client-reads or both"),
    ("transfers", "stream: transfers on each connection, one after the other"),
    ("shape", "dispatch: single, threads, run, interleaved or concurrent"),
    ("ends", "one-loop: the client is client and server in one event loop"),
    ("runtime", "single or multi: the threads of an asynchronous runtime"),
    ("mode", "how bytes, datagrams or connections pass through the kernel"),
    ("mtu", "KCP: bytes of UDP payload; stacks behind a TUN device: the device's MTU"),
    ("window", "KCP: send and receive window in segments"),
    ("interval_us", "KCP: update interval in microseconds"),
    ("nodelay", "KCP: 1 for the short minimum RTO"),
    ("resend", "KCP: duplicate acknowledgements before a fast retransmission"),
    ("nc", "KCP: 1 for no congestion window"),
    ("tun", "name of the TUN device of a stack in user space"),
    ("buffer", "UDP and KCP: bytes of both socket buffers"),
    ("search", "UDP client: tolerated loss in percent of a search for the highest rate"),
];

/// An option whose value is one of a few words.
pub trait Choice: Copy + PartialEq + 'static {
    /// The option's name.
    const OPTION: &'static str;
    /// Each value with its word.
    const WORDS: &'static [(&'static str, Self)];

    /// The refusal of any other word. Options for which the contract allows more words than this program
    /// supports return [`Refusal::Unsupported`].
    #[must_use]
    fn refuse(message: String) -> Refusal {
        Refusal::BadSpec(message)
    }

    /// The value's word.
    #[must_use]
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value)| *value == self);
        found.expect("every value has a word").0
    }
}

/// Direction of a `stream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ClientWrites,
    ClientReads,
    Both,
}

impl Direction {
    #[must_use]
    pub fn client_writes(self) -> bool {
        self != Self::ClientReads
    }

    #[must_use]
    pub fn client_reads(self) -> bool {
        self != Self::ClientWrites
    }
}

impl Choice for Direction {
    const OPTION: &'static str = "direction";
    const WORDS: &'static [(&'static str, Self)] =
        &[("client-writes", Self::ClientWrites), ("client-reads", Self::ClientReads), ("both", Self::Both)];
}

/// Where client and server are, if not in two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// In one process, on one event loop.
    OneLoop,
}

impl Choice for Ends {
    const OPTION: &'static str = "ends";
    const WORDS: &'static [(&'static str, Self)] = &[("one-loop", Self::OneLoop)];
}

/// How `dispatch` posts and runs handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Post all on one thread, then run them.
    Single,
    /// Post all, then several threads run them.
    Threads,
    /// As `Threads`, and the window starts between posting and running.
    Run,
    /// Post 100, run 100, repeat.
    Interleaved,
    /// Several threads post and run at the same time.
    Concurrent,
}

impl Choice for Shape {
    const OPTION: &'static str = "shape";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("single", Self::Single),
        ("threads", Self::Threads),
        ("run", Self::Run),
        ("interleaved", Self::Interleaved),
        ("concurrent", Self::Concurrent),
    ];
}

/// Threads of an asynchronous runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Runtime {
    #[default]
    Single,
    /// A pool of `threads` threads.
    Multi,
}

impl Choice for Runtime {
    const OPTION: &'static str = "runtime";
    const WORDS: &'static [(&'static str, Self)] = &[("single", Self::Single), ("multi", Self::Multi)];
}

impl Spec {
    /// Checks that every option is one of the contract or one of `own`, the program's own names.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`] with the first unknown name and the nearest known one.
    pub fn check_options(&self, own: &[&str]) -> Result<(), Refusal> {
        let known = || CONTRACT_OPTIONS.iter().map(|(name, _)| *name).chain(own.iter().copied());
        match self.options.keys().find(|name| !known().any(|known| known == *name)) {
            None => Ok(()),
            Some(name) => {
                let suggestion = nearest::suggestion(name, known());
                Err(Refusal::BadSpec(format!("\"options.{name}\" is not known; {suggestion}")))
            }
        }
    }

    /// The text of an option.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Sets an option to a text or number.
    pub fn set_option(&mut self, name: &str, value: impl Display) {
        self.options.insert(name.into(), value.to_string());
    }

    /// Sets an option to one of its words.
    pub fn choose<T: Choice>(&mut self, value: T) {
        self.set_option(T::OPTION, value.word());
    }

    /// An option that is a whole number in `range`; `None` if it is absent.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: not a whole number, or out of range.
    pub fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.option(name) else { return Ok(None) };
        let value = text.parse().ok().filter(|n| range.contains(n));
        value.map(Some).ok_or_else(|| {
            let allowed = match range.into_inner() {
                (low, u64::MAX) => format!("a whole number from {low}"),
                (low, high) if low == high => low.to_string(),
                (low, high) => format!("{low} to {high}"),
            };
            Refusal::BadSpec(format!("\"options.{name}\" must be {allowed}, not {text:?}"))
        })
    }

    /// An option that is one of a few words; `None` if it is absent.
    ///
    /// # Errors
    /// [`Choice::refuse`]: another word.
    pub fn choice<T: Choice>(&self) -> Result<Option<T>, Refusal> {
        let Some(text) = self.option(T::OPTION) else { return Ok(None) };
        match T::WORDS.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                Err(T::refuse(format!("\"options.{}\" must be {}, not {text:?}", T::OPTION, words::<T>())))
            }
        }
    }

    /// As [`Self::choice`], of an option that the workload needs.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: absent; and as [`Self::choice`].
    pub fn required_choice<T: Choice>(&self) -> Result<T, Refusal> {
        self.choice()?.ok_or_else(|| {
            Refusal::BadSpec(format!("\"options.{}\" is missing: it must be {}", T::OPTION, words::<T>()))
        })
    }

    /// `options.direction` of a stream.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: absent or unknown.
    pub fn direction(&self) -> Result<Direction, Refusal> {
        self.required_choice()
    }

    /// `options.transfers`, 1 by default.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: not a whole number above 0.
    pub fn transfers(&self) -> Result<u64, Refusal> {
        Ok(self.number("transfers", 1..=u64::MAX)?.unwrap_or(1))
    }

    /// `options.shape` of `dispatch`.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: absent or unknown.
    pub fn shape(&self) -> Result<Shape, Refusal> {
        self.required_choice()
    }

    /// `options.ends`; `None`: two processes.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: unknown.
    pub fn ends(&self) -> Result<Option<Ends>, Refusal> {
        self.choice()
    }

    /// `options.runtime`, `single` by default.
    ///
    /// # Errors
    /// [`Refusal::BadSpec`]: unknown.
    pub fn runtime(&self) -> Result<Runtime, Refusal> {
        Ok(self.choice()?.unwrap_or_default())
    }
}

/// `client-writes, client-reads or both`.
fn words<T: Choice>() -> String {
    let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => (*only).into(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layer, Role, Workload};

    fn spec(options: &[(&str, &str)]) -> Spec {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Stream);
        options.iter().for_each(|(name, value)| spec.set_option(name, value));
        spec
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_nearest_known_one() {
        for (name, _) in CONTRACT_OPTIONS {
            spec(&[(name, "")]).check_options(&[]).unwrap();
        }
        spec(&[("offload", "yes")]).check_options(&["offload"]).unwrap();
        let refused = |name| spec(&[(name, "yes")]).check_options(&["offload"]).unwrap_err();
        let expected = "bad spec: \"options.ofload\" is not known; nearest: \"offload\"";
        assert_eq!((refused("ofload").to_string().as_str(), refused("ofload").exit_status()), (expected, 2));
        assert!(refused("transfer").to_string().ends_with("nearest: \"transfers\""));
        assert!(refused("colour").to_string().contains("known: direction, transfers, "));
    }

    #[test]
    fn words_become_values_and_unknown_words_are_refused() {
        let with = |name, value| spec(&[(name, value)]);
        for (word, value) in Direction::WORDS {
            assert_eq!(with("direction", word).direction().unwrap(), *value);
            let mut chosen = spec(&[]);
            chosen.choose(*value);
            assert_eq!(chosen.option("direction"), Some(*word));
        }
        let refused = with("direction", "up").direction().unwrap_err().to_string();
        let expected =
            "bad spec: \"options.direction\" must be client-writes, client-reads or both, not \"up\"";
        assert_eq!(refused, expected);
        assert!(spec(&[]).shape().unwrap_err().to_string().contains("\"options.shape\" is missing"));
        assert_eq!(spec(&[]).runtime().unwrap(), Runtime::Single);
        assert_eq!(with("runtime", "multi").runtime().unwrap(), Runtime::Multi);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(spec(&[]).transfers().unwrap(), 1);
        assert_eq!(spec(&[("transfers", "7")]).transfers().unwrap(), 7);
        let refused = |value| spec(&[("transfers", value)]).transfers().unwrap_err().to_string();
        let expected = "bad spec: \"options.transfers\" must be a whole number from 1, not \"0\"";
        assert_eq!(refused("0"), expected);
        assert!(
            spec(&[("mtu", "x")]).number("mtu", 50..=1500).unwrap_err().to_string().contains("50 to 1500")
        );
    }
}
