//! The report page in a real browser: Debian's Chromium. Left out, by name, where there is none.
//!
//! Screenshots are in `target/tmp/browser`, and the times of the large page in its `large.txt`.

#[path = "browser/chromium.rs"]
mod chromium;
mod common;
#[path = "browser/in_use.rs"]
mod in_use;
#[path = "browser/pages.rs"]
mod pages;
#[allow(dead_code, reason = "gates use the rest of it")]
#[path = "gate/script.rs"]
mod script;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chromium::Chromium;
use common::skip;
use pages::{output, pages};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The widths of a phone, a tablet and a desktop.
const WIDTHS: [u32; 3] = [380, 768, 1400];

/// `None`, with a message, where no browser is installed.
fn browser(test: &str) -> Option<Chromium> {
    let browser = Chromium::start(test);
    if browser.is_none() {
        skip(&format!("{test}: Chromium is not installed (apt-get install chromium)"));
    }
    browser
}

#[test]
fn pages_load_without_a_complaint_or_a_request_and_fit_every_width() {
    let Some(mut browser) = browser("load") else { return };
    for page in pages() {
        browser.open(&page.url());
        for (width, is_dark) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
            browser.resize(width, is_dark);
            assert_eq!(browser.complaints(), Vec::<String>::new(), "{} at {width}", page.name);
            let wide = browser.value("document.documentElement.scrollWidth").as_u64();
            assert_eq!(wide, Some(u64::from(width)), "{} scrolls sideways at {width}", page.name);
            let ground = browser.value("getComputedStyle(document.body).backgroundColor");
            assert_eq!(ground == "rgb(255, 255, 255)", !is_dark, "{} at {width}: {ground}", page.name);
            let mode = if is_dark { "dark" } else { "light" };
            let picture = STANDARD.decode(browser.screenshot()).unwrap();
            fs::write(output().join(format!("{}-{width}-{mode}.png", page.name)), picture).unwrap();
        }
    }
}

#[test]
fn pages_have_no_violation_of_level_a_or_aa() {
    let Some(mut browser) = browser("axe") else { return };
    let Some(axe) = axe() else { return };
    let run = "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then(r => \
               r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html + n.failureSummary)))";
    for page in pages() {
        browser.open(&page.url());
        browser.value("document.querySelectorAll('details:not(.all)').forEach(d => d.open = true)");
        browser.value(&format!("{axe};0"));
        // Each colour and each layout once: a look at a large page takes half a minute.
        for (width, is_dark) in [(380, false), (1400, true)] {
            browser.resize(width, is_dark);
            let violations = browser.value(run);
            assert_eq!(violations, Value::Array(vec![]), "{} at {width}, dark: {is_dark}", page.name);
        }
    }
}

/// axe-core as text, installed once; `None`, with a message, without npm or a network.
fn axe() -> Option<String> {
    let script = output().join("node_modules/axe-core/axe.min.js");
    if !script.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "axe-core@4"]).current_dir(output());
        match npm.output() {
            Ok(out) if out.status.success() => {}
            Ok(out) => skip(&format!("axe: npm: {}", String::from_utf8_lossy(&out.stderr))),
            Err(_) => skip("axe: npm is not installed (apt-get install npm)"),
        }
    }
    fs::read_to_string(script).ok()
}

/// One browser for all of them: a start costs more than most of the checks.
#[test]
#[expect(clippy::print_stdout, reason = "the name of a check that fails")]
fn a_page_in_use_sorts_filters_links_copies_prints_and_works_without_scripts() {
    let Some(mut browser) = browser("use") else { return };
    for (name, check) in in_use::CHECKS {
        println!("check: {name}");
        browser.resize(1400, false);
        check(&mut browser);
        browser.scripts(true);
    }
}
