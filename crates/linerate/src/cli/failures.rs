//! `--max-failed`: when a load has failed.

use clap::Args;

#[derive(Debug, Clone, Copy, Args)]
pub struct FailureArgs {
    /// Exit with status 1 where more than this share failed, or where nothing ended for a fifth of the time
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share)]
    pub max_failed: f64,
}

/// `1%`, `0.5 %` or `1`: percent, as a share.
fn share(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a share from 0% to 100%, such as 1%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_in_percent() {
        for (text, value) in [("1%", Some(0.01)), ("0", Some(0.0)), ("2.5 %", Some(0.025)), ("101", None)] {
            assert_eq!(share(text).ok(), value, "{text}");
        }
    }
}
