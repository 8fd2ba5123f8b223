//! `linerate-load SPEC`: does what the spec says, answers with JSON lines.

use linerate_contract::Spec;

#[allow(clippy::print_stderr, reason = "logs go to stderr, says the contract")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(json), None) = (arguments.next(), arguments.next()) else {
        eprintln!("linerate-load: expected one argument, the spec as JSON (sdk/CONTRACT.md)");
        std::process::exit(2);
    };
    let outcome = Spec::parse(&json)
        .map_err(linerate_load::Refusal::BadSpec)
        .and_then(|spec| linerate_load::run(&spec));
    if let Err(refusal) = outcome {
        eprintln!("linerate-load: {refusal}");
        std::process::exit(refusal.exit_status());
    }
}
