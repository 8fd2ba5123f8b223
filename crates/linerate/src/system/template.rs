//! Templates of configs and command lines: minijinja with strict names.
//!
//! | name | value |
//! |---|---|
//! | `dir` | the role's own folder, the only one that it may write to |
//! | `listen.ip`, `.port`, `.address` | the address on which a server or relay listens |
//! | `upstream.ip`, `.port`, `.address` | a relay's server |
//! | `connect.ip`, `.port`, `.address` | the address to which a client connects |
//! | `tls.certificate`, `tls.key` | PEM texts of a server with TLS, or of a relay that ends it |
//! | `docroot` | the folder with `index.html` |
//! | `workers` | worker processes or threads of a server or relay |
//! | `spec` | the task as JSON, for programs that implement the contract |
//! | `operations`, `connections`, ... | the workload's parameters |

use minijinja::{Environment, UndefinedBehavior, Value};
use std::collections::HashSet;
use std::net::SocketAddr;

/// The most steps of a template: a thousand times those of the longest one. A loop in a loop ends here.
const STEPS: u64 = 1_000_000;

/// Renders `text`; `place` (a path or key) names it in errors.
///
/// # Errors
/// A syntax error or an undefined name, with place and line.
pub fn render(place: &str, text: &str, values: &Value) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_keep_trailing_newline(true);
    environment.set_fuel(Some(STEPS));
    environment.template_from_str(text).and_then(|t| t.render(values)).map_err(|e| {
        let line = e.line().map(|line| format!(":{line}")).unwrap_or_default();
        format!("{place}{line}: {}{}", e.kind(), e.detail().map(|d| format!(": {d}")).unwrap_or_default())
    })
}

/// The variables of a template.
///
/// # Errors
/// The template is not valid.
pub fn variables(text: &str) -> Result<HashSet<String>, String> {
    let environment = Environment::new();
    let template = environment.template_from_str(text).map_err(|e| format!("`{text}`: {e}"))?;
    Ok(template.undeclared_variables(false))
}

/// An address as a template value.
pub fn address(address: SocketAddr) -> Value {
    minijinja::context! {
        ip => address.ip().to_string(),
        port => address.port(),
        address => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_config_files_are_kept() {
        let values = minijinja::context! { listen => address("10.0.0.1:80".parse().unwrap()) };
        let text = "http { server { listen {{ listen.address }}; } }\n";
        assert_eq!(render("x", text, &values).unwrap(), "http { server { listen 10.0.0.1:80; } }\n");
    }

    #[test]
    fn a_template_of_too_many_steps_ends_with_its_place() {
        let text = "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}";
        let error = render("systems/x/x.cfg", text, &minijinja::context! {}).unwrap_err();
        assert!(error.starts_with("systems/x/x.cfg:1: "), "{error}");
    }

    #[test]
    fn an_unknown_name_is_an_error_with_place_and_line() {
        let error = render("systems/x/x.cfg", "a\n{{ listen }}\n", &minijinja::context! {}).unwrap_err();
        assert!(error.starts_with("systems/x/x.cfg:2: undefined value"), "{error}");
    }
}
