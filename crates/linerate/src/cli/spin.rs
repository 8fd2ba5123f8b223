//! `--spin`: what a thread of a client or server does before it sleeps.

use super::span;
use clap::Args;
use linerate_contract::Spec;

#[derive(Debug, Args)]
pub struct SpinArgs {
    /// Poll for up to TIME (1us to 1ms) before a thread sleeps: less latency for more CPU; always: threads
    /// never sleep
    #[arg(long, value_name = "TIME", value_parser = spin)]
    spin: Option<String>,
}

impl SpinArgs {
    pub(crate) fn set(&self, spec: &mut Spec) {
        if let Some(spin) = &self.spin {
            spec.options.insert("spin".into(), spin.clone());
        }
    }
}

/// The value of the spec's option: microseconds, or `always`.
fn spin(text: &str) -> Result<String, String> {
    if text == "always" {
        return Ok(text.into());
    }
    match span(text)?.as_micros() {
        micros @ 1..=1_000 => Ok(micros.to_string()),
        _ => Err("expected 1us to 1ms, or always; 50us is suggested".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spin_is_a_short_time_or_always() {
        for (text, option) in [("50us", Some("50")), ("1ms", Some("1000")), ("always", Some("always"))] {
            assert_eq!(spin(text).ok().as_deref(), option);
        }
        for text in ["", "yes", "0us", "500ns", "2ms", "50"] {
            assert!(spin(text).is_err(), "{text}");
        }
    }
}
