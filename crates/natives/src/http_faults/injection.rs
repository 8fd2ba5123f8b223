//! The injected faults, drawn per request from a seed.

use linerate_contract::{ErrorKind, Nanos, Spec};
use linerate_load::Refusal;
use linerate_load::random::uniform;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// The kinds of failure, in turn.
const FAULTS: [ErrorKind; 5] = [
    ErrorKind::WrongStatus,
    ErrorKind::EmptyResponse,
    ErrorKind::Truncated,
    ErrorKind::Malformed,
    ErrorKind::Reset,
];
const MICRO: f64 = 1e3;

#[derive(Debug, Clone)]
enum Delay {
    None,
    Fixed(f64),
    Uniform(f64, f64),
    Exponential(f64, f64),
    Bimodal(f64, f64, f64),
}

/// The faults of the spec, and the state of their random sequence.
#[derive(Debug)]
pub(super) struct Injection {
    delay: Delay,
    stall: Option<(u64, u64)>,
    errors: f64,
    /// Nanoseconds between two responses.
    gap: f64,
    /// When the next response may be sent.
    free: f64,
    random: Pcg64Mcg,
    faults: usize,
}

impl Injection {
    pub(super) fn new(spec: &Spec) -> Result<Self, Refusal> {
        let numbers = |name: &str| -> Result<(String, Vec<f64>), Refusal> {
            let text = spec.options.get(name).map_or("", String::as_str);
            let mut words = text.split_whitespace().peekable();
            let word = words.next_if(|word| word.parse::<f64>().is_err()).unwrap_or_default().to_owned();
            let numbers: Result<Vec<f64>, _> = words.map(str::parse).collect();
            match numbers {
                Ok(numbers) if numbers.iter().all(|n| n.is_finite() && *n >= 0.0) => Ok((word, numbers)),
                _ => Err(Refusal::BadSpec(format!("\"options.{name}\": {text:?} is not a valid form"))),
            }
        };
        let bad = |name: &str| Refusal::BadSpec(format!("\"options.{name}\" has a wrong number of values"));
        let (kind, n) = numbers("delay")?;
        let delay = match (kind.as_str(), n.as_slice()) {
            ("", []) => Delay::None,
            ("fixed", [value]) => Delay::Fixed(*value),
            ("uniform", [from, to]) if from <= to => Delay::Uniform(*from, *to),
            ("exponential", [least, mean]) => Delay::Exponential(*least, *mean),
            ("bimodal", [usual, rare, share]) => Delay::Bimodal(*usual, *rare, *share),
            _ => return Err(bad("delay")),
        };
        let only = |name: &str| match numbers(name)? {
            (word, numbers) if word.is_empty() => Ok(numbers),
            _ => Err(bad(name)),
        };
        let stall = match only("stall")?.as_slice() {
            [] => None,
            [length, period] if length < period => Some(((length * MICRO) as u64, (period * MICRO) as u64)),
            _ => return Err(bad("stall")),
        };
        let single = |name: &str| match only(name)?.as_slice() {
            [] => Ok(0.0),
            [one] => Ok(*one),
            _ => Err(bad(name)),
        };
        let cap = single("cap")?;
        Ok(Self {
            delay,
            stall,
            errors: single("errors")?,
            gap: if cap > 0.0 { 1e9 / cap } else { 0.0 },
            free: 0.0,
            random: Pcg64Mcg::seed_from_u64(spec.seed),
            faults: 0,
        })
    }

    /// When the response to a request that arrived at `now` is due; `epoch` is the start of the first stall.
    pub(super) fn due(&mut self, now: Nanos, epoch: Nanos) -> Nanos {
        let (u, v) = (uniform(&mut self.random), uniform(&mut self.random));
        let micros = match self.delay {
            Delay::None => 0.0,
            Delay::Fixed(value) => value,
            Delay::Uniform(from, to) => from + (to - from) * u,
            Delay::Exponential(least, mean) => least - mean * (1.0 - u).ln(),
            Delay::Bimodal(usual, rare, share) => (if v < share { rare } else { usual }) * (0.95 + 0.1 * u),
        };
        let mut due = now + Nanos((micros * MICRO) as u64);
        if let Some((length, period)) = self.stall {
            let within = due.since(epoch).0 % period;
            if within < length {
                due += Nanos(length - within);
            }
        }
        if self.gap > 0.0 {
            self.free = self.free.max(now.0 as f64);
            due = due.max(Nanos(self.free as u64));
            self.free += self.gap;
        }
        due
    }

    pub(super) fn fault(&mut self) -> Option<ErrorKind> {
        if uniform(&mut self.random) >= self.errors {
            return None;
        }
        self.faults += 1;
        Some(FAULTS[self.faults % FAULTS.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    fn injection(options: &[(&str, &str)]) -> Result<Injection, Refusal> {
        let mut spec = Spec::new(Role::Server, Layer::Http, Workload::Rr);
        spec.options = options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Injection::new(&spec)
    }

    #[test]
    fn delays_have_their_distribution() {
        for (form, mean) in [
            ("fixed 5000", 5e6),
            ("uniform 1000 9000", 5e6),
            ("exponential 1000 4000", 5e6),
            ("bimodal 2000 50000 0.05", 4.4e6),
        ] {
            let mut injection = injection(&[("delay", form)]).unwrap();
            let sum: u64 = (0..100_000).map(|_| injection.due(Nanos(7), Nanos(7)).0 - 7).sum();
            assert!((sum as f64 / 1e5 / mean - 1.0).abs() < 0.02, "{form}: {sum}");
        }
    }

    #[test]
    fn responses_wait_for_the_end_of_a_stall_and_a_cap_spaces_them() {
        let mut stall = injection(&[("stall", "100000 1000000")]).unwrap();
        assert_eq!(stall.due(Nanos(1_030_000_000), Nanos(0)), Nanos(1_100_000_000));
        assert_eq!(stall.due(Nanos(1_100_000_000), Nanos(0)), Nanos(1_100_000_000));
        let mut cap = injection(&[("cap", "1000")]).unwrap();
        let dues: Vec<u64> = (0..3).map(|_| cap.due(Nanos(5), Nanos(0)).0).collect();
        assert_eq!(dues, [5, 1_000_005, 2_000_005]);
    }

    #[test]
    fn the_share_of_faults_is_the_requested_one() {
        let mut injection = injection(&[("errors", "0.05")]).unwrap();
        let faults = (0..100_000).filter(|_| injection.fault().is_some()).count();
        assert!((4_700..5_300).contains(&faults), "{faults}");
    }

    #[test]
    fn invalid_options_are_refused() {
        for option in
            [("delay", "fixed"), ("delay", "often 5"), ("stall", "5 5"), ("cap", "-3"), ("errors", "x")]
        {
            assert!(injection(&[option]).is_err(), "{option:?}");
        }
    }
}
