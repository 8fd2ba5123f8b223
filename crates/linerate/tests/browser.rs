//! The report page in a real browser: Debian's Chromium. Left out, by name, where there is none.
//!
//! Screenshots are in `target/tmp/browser`, and the times of the large page in its `large.txt`.

#[path = "browser/chromium.rs"]
mod chromium;
mod common;
#[path = "browser/pages.rs"]
mod pages;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chromium::Chromium;
use common::skip;
use pages::{Page, large_page, output, pages, published};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Of a phone, a tablet and a desktop.
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
        for (width, is_dark) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
            browser.resize(width, is_dark);
            browser.open(&page.url());
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
        for (width, is_dark) in [(380, false), (1400, true), (1400, false)] {
            browser.resize(width, is_dark);
            browser.open(&page.url());
            browser.value("document.querySelectorAll('details:not(.all)').forEach(d => d.open = true)");
            browser.value(&format!("{axe};0"));
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

/// The labels of the visible rows of the first table.
const ROWS: &str = "[...document.querySelectorAll('table.list')[0].querySelectorAll('tbody tr:not(.group)')]\
                    .filter(r => r.checkVisibility()).map(r => r.cells[0].querySelector('a').textContent)";

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn rows_are_sorted_and_filtered_and_the_address_keeps_the_choice() {
    let Some(mut browser) = browser("sort") else { return };
    let page = published();
    browser.resize(1400, false);
    browser.open(&page.url());
    let before = browser.value(ROWS);
    assert_eq!(texts(&before)[..2], ["direct", "iptables"]);
    let by_value =
        "document.querySelectorAll('table.list')[0].tHead.rows[0].cells[2].querySelector('button').click()";
    browser.value(by_value);
    browser.value(by_value);
    let sorted = browser.value(ROWS);
    assert_eq!(texts(&sorted)[0], "sslh-fork", "{sorted}");
    let state = browser.value("document.querySelector('th[aria-sort]').getAttribute('aria-sort')");
    assert_eq!(state, "descending");
    browser.value("document.querySelector('#filter').value = 'haproxy'");
    browser.value("document.querySelector('#filter').dispatchEvent(new Event('input'))");
    let filtered = browser.value(ROWS);
    let expected: Vec<&str> = texts(&sorted).into_iter().filter(|row| row.contains("haproxy")).collect();
    assert_eq!(texts(&filtered), expected);
    assert_eq!(expected.len(), 2);
    let address = browser.value("location.href");
    browser.open(address.as_str().unwrap());
    assert_eq!(browser.value(ROWS), filtered, "{address}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_number_has_its_details_on_focus_and_every_link_inside_has_its_place() {
    let Some(mut browser) = browser("focus") else { return };
    browser.resize(1400, false);
    browser.open(&published().url());
    browser.value("document.querySelector('table.list td .v').focus()");
    let tip = browser.value("document.querySelector('#tip').checkVisibility() ? tip.textContent : ''");
    assert!(tip.as_str().unwrap().contains("p99 µs"), "{tip}");
    let missing = browser.value(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => decodeURIComponent(a.hash.slice(1)))\
         .filter(id => !document.getElementById(id))",
    );
    assert_eq!(missing, Value::Array(vec![]));
    let twice = browser.value(
        "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, i, ids) => ids.indexOf(id) !== i)",
    );
    assert_eq!(twice, Value::Array(vec![]), "ids that are there twice");
    browser.open(&format!("{}#proxy.forwarding.nginx/sslh-fork&filter=sslh", published().url()));
    let rows = browser.value(ROWS);
    assert_eq!(texts(&rows), ["sslh-fork", "sslh-select"]);
}

#[test]
fn all_is_there_without_scripts() {
    let Some(mut browser) = browser("scripts") else { return };
    browser.without_scripts();
    browser.resize(1400, false);
    browser.open(&published().url());
    assert_eq!(browser.value("document.querySelector('.tools')"), Value::Null);
    let rows = browser.value(ROWS);
    assert_eq!(texts(&rows).len(), 9, "{rows}");
    for part in
        ["header .answers", "#replay", "a[download]", "figure.plot svg", "details.all summary", "#host"]
    {
        let is_there = browser.value(&format!("!!document.querySelector('{part}')?.checkVisibility()"));
        assert_eq!(is_there, true, "{part}");
    }
    browser.value("document.querySelector('details.all').open = true");
    let details = browser.value("document.querySelector('details.all dl').innerText");
    assert!(details.as_str().unwrap().contains("p99.9 µs"), "{details}");
}

/// The limits are those of a page that is sent by mail and opened on a laptop.
#[test]
fn four_hundred_cells_are_below_one_and_a_half_megabytes_and_drawn_in_a_second() {
    let Some(mut browser) = browser("large") else { return };
    let Page { path, .. } = large_page(400);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 1_500_000, "{bytes} bytes");
    browser.resize(1400, false);
    browser.open(&format!("file://{}", path.display()));
    let paint = "new Promise(r => new PerformanceObserver(l => r(l.getEntries()[0].startTime))\
                 .observe({type: 'largest-contentful-paint', buffered: true}))";
    let load = "performance.getEntriesByType('navigation')[0].loadEventEnd";
    let [load, paint] = [load, paint].map(|what| browser.value(what).as_f64().unwrap());
    let work = browser.cpu_seconds();
    let figures = format!("{bytes} bytes; loaded {load:.0} ms, painted {paint:.0} ms, CPU {work:.2} s\n");
    fs::write(output().join("large.txt"), figures).unwrap();
    // Of CPU time, since other tests and other programs use the same CPUs.
    assert!(work < 1.0, "{work} s");
}
