//! A reader's use of the page: each check opens what it needs in a browser that all share.

use crate::chromium::Chromium;
use crate::common::{self, skip};
use crate::pages::{Page, compared, large_page, merged, output, published, published_as};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::fs;
use std::process::Command;

type Check = fn(&mut Chromium);

#[rustfmt::skip]
pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("the large page is small", large),
    ("rows are sorted and filtered, and the address keeps it", rows),
    ("columns are left out, and the address keeps it", columns),
    ("a number has its details on focus", details),
    ("links to cells", links),
    ("the replay command is copied", copied),
    ("all is there without scripts", without_scripts),
    ("print has all, and nothing is cut", print),
    ("no text of a drawing is cut or on another", texts_of_drawings),
    ("a comparison has a plot of each cell, with a dot for each unit", comparison),
];

/// The labels of the visible rows of the first table.
const ROWS: &str = "[...document.querySelectorAll('table.list')[0].querySelectorAll('tbody tr:not(.group)')]\
                    .filter(r => r.checkVisibility()).map(r => r.cells[0].querySelector('a').textContent)";

const CELL: &str = "proxy.forwarding.nginx/haproxy-tcp";

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Loads the address that the page has now, from nothing.
fn open_again(browser: &mut Chromium) -> String {
    let address = browser.value("location.href").as_str().unwrap().to_owned();
    browser.open(&address);
    address
}

/// The limits are those of a page that is sent by mail and opened on a laptop. Times depend on the machine:
/// they are written to a file, and what they depend on, the size and the number of elements, has the limits.
fn large(browser: &mut Chromium) {
    let Page { path, .. } = large_page(400);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 1_500_000, "{bytes} bytes");
    let before = browser.cpu_seconds();
    browser.open(&format!("file://{}", path.display()));
    let paint = "new Promise(r => new PerformanceObserver(l => r(l.getEntries()[0].startTime))\
                 .observe({type: 'largest-contentful-paint', buffered: true}))";
    let load = "performance.getEntriesByType('navigation')[0].loadEventEnd";
    let elements = "document.querySelectorAll('*').length";
    let [load, paint, elements] = [load, paint, elements].map(|what| browser.value(what).as_f64().unwrap());
    let work = browser.cpu_seconds() - before;
    let figures = format!(
        "{bytes} bytes, {elements} elements; loaded {load:.0} ms, painted {paint:.0} ms, CPU {work:.2} s\n"
    );
    fs::write(output().join("large.txt"), figures).unwrap();
    assert!(elements < 40_000.0, "{elements} elements");
}

fn rows(browser: &mut Chromium) {
    browser.open(&published().url());
    let before = browser.value(ROWS);
    assert_eq!(texts(&before)[..2], ["haproxy-tcp", "haproxy-http"]);
    let by_value =
        "document.querySelectorAll('table.list')[0].tHead.rows[0].cells[2].querySelector('button').click()";
    browser.value(by_value);
    browser.value(by_value);
    let sorted = browser.value(ROWS);
    assert_eq!(texts(&sorted)[0], "link", "{sorted}");
    let state = browser.value("document.querySelector('th[aria-sort]').getAttribute('aria-sort')");
    assert_eq!(state, "descending");
    browser.value("document.querySelector('#filter').value = 'haproxy'");
    browser.value("document.querySelector('#filter').dispatchEvent(new Event('input'))");
    let filtered = browser.value(ROWS);
    let expected: Vec<&str> = texts(&sorted).into_iter().filter(|row| row.contains("haproxy")).collect();
    assert_eq!(texts(&filtered), expected);
    assert_eq!(expected.len(), 2);
    let address = open_again(browser);
    assert_eq!(browser.value(ROWS), filtered, "{address}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn columns(browser: &mut Chromium) {
    browser.open(&published().url());
    let visible = "['.c-cpu', '.c-bound', '.c-more'].map(c => document.querySelector(c).checkVisibility())";
    let boxes = "[...document.querySelectorAll('.tools input[type=checkbox]')]";
    assert_eq!(browser.value(visible), serde_json::json!([true, true, true]));
    browser.value(&format!("{boxes}.filter((_, i) => i !== 1).forEach(box => box.click())"));
    let address = open_again(browser);
    assert_eq!(browser.value(visible), serde_json::json!([false, true, false]), "{address}");
    let checked = browser.value(&format!("{boxes}.map(box => box.checked)"));
    assert_eq!(checked, serde_json::json!([false, true, false]));
    browser.value(&format!("{boxes}.filter(box => !box.checked).forEach(box => box.click())"));
    let address = open_again(browser);
    assert_eq!(browser.value(visible), serde_json::json!([true, true, true]), "{address}");
    assert!(!address.contains("hide"), "{address}");
}

fn details(browser: &mut Chromium) {
    browser.open(&published().url());
    browser.value("document.querySelector('table.list td .v').focus()");
    let tip = browser.value("document.querySelector('#tip').checkVisibility() ? tip.textContent : ''");
    assert!(tip.as_str().unwrap().contains("p99 µs"), "{tip}");
}

/// The id of the marked row, if it is on the screen.
const MARKED: &str = "(row => { const box = row?.getBoundingClientRect(); \
                      return box && box.top >= 0 && box.bottom <= innerHeight ? row.id : null })\
                      (document.querySelector('tr.here'))";

fn links(browser: &mut Chromium) {
    for page in [published(), compared(), merged()] {
        browser.open(&page.url());
        let missing = browser.value(
            "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1))\
             .map(decodeURIComponent)\
             .filter(id => !document.getElementById(id))",
        );
        assert_eq!(missing, Value::Array(vec![]), "{}", page.name);
        let twice = browser.value(
            "[...document.querySelectorAll('[id]')].map(e => e.id)\
             .filter((id, i, ids) => ids.indexOf(id) !== i)",
        );
        assert_eq!(twice, Value::Array(vec![]), "{}: ids that are there twice", page.name);
    }
    for address in [format!("#{CELL}"), format!("#{CELL}&filter=haproxy")] {
        browser.open(&format!("{}{address}", published().url()));
        assert_eq!(browser.value(MARKED), CELL, "{address}");
    }
    assert_eq!(texts(&browser.value(ROWS)), ["haproxy-tcp", "haproxy-http"]);
    // A click on another cell takes the mark, and the choice of rows stays.
    let click = "new Promise(done => { addEventListener('hashchange', () => done(0), {once: true}); \
                 [...document.querySelectorAll('tbody th a')]\
                 .find(a => a.hash.endsWith('nginx/haproxy-http')).click() })";
    browser.value(click);
    assert_eq!(browser.value(MARKED), CELL.replace("tcp", "http"));
    assert_eq!(texts(&browser.value(ROWS)), ["haproxy-tcp", "haproxy-http"]);
    open_again(browser);
    assert_eq!(texts(&browser.value(ROWS)), ["haproxy-tcp", "haproxy-http"]);
}

fn copied(browser: &mut Chromium) {
    browser.open(&published().url());
    let copy = "(async () => { const button = document.querySelector('[data-copy=replay]'); \
                if (!button.checkVisibility()) return 'hidden'; button.click(); \
                while (button.textContent !== 'Copied') await new Promise(r => setTimeout(r, 10)); \
                return navigator.clipboard.readText() })()";
    let command = browser.value(copy);
    assert!(command.as_str().unwrap().starts_with("linerate run "), "{command}");
    assert_eq!(command, browser.value("document.querySelector('#replay').textContent"));
}

fn without_scripts(browser: &mut Chromium) {
    browser.scripts(false);
    browser.open(&published().url());
    assert_eq!(browser.value("document.querySelector('.tools')"), Value::Null);
    let rows = browser.value(ROWS);
    assert_eq!(texts(&rows).len(), 5, "{rows}");
    for part in
        ["header .picture svg", "#replay", "a[download]", "figure.plot svg", "details.all summary", "#host"]
    {
        let is_there = browser.value(&format!("!!document.querySelector('{part}')?.checkVisibility()"));
        assert_eq!(is_there, true, "{part}");
    }
    let hidden = "[...document.querySelectorAll('[hidden]')].map(e => e.outerHTML)\
                  .filter(e => !e.includes('data-copy'))";
    assert_eq!(browser.value(hidden), Value::Array(vec![]));
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    let unseen = "[...document.querySelectorAll('table, figure, dl, tr')]\
                  .filter(e => !e.checkVisibility()).length";
    assert_eq!(browser.value(unseen), 0);
    let details = browser.value("document.querySelector('details.all dl').innerText");
    assert!(details.as_str().unwrap().contains("p99.9 µs"), "{details}");
    browser.open(&format!("{}#{CELL}", published().url()));
    assert_eq!(browser.value("document.querySelector('tr:target')?.id"), CELL);
}

/// A4 and Letter without their margins, in CSS pixels.
const PAPER: [u32; 2] = [718, 740];

fn print(browser: &mut Chromium) {
    for page in [published(), compared(), merged()] {
        browser.scripts(false);
        browser.open(&page.url());
        for width in PAPER {
            browser.resize_as_paper(width);
            let cut = browser.value(
                "[...document.querySelectorAll('table, dl, pre, svg, figure, p')]\
                 .filter(e => !e.closest('.defs, .sr') && e.getBoundingClientRect().right > innerWidth + 1)\
                 .map(e => e.outerHTML.slice(0, 200))",
            );
            assert_eq!(cut, Value::Array(vec![]), "{} on {width}", page.name);
        }
        let paper = "getComputedStyle(document.body).backgroundColor";
        assert_eq!(browser.value(paper), "rgb(255, 255, 255)");
        let pdf = output().join(format!("{}.pdf", page.name));
        fs::write(&pdf, STANDARD.decode(browser.pdf()).unwrap()).unwrap();
        let Ok(text) = Command::new("pdftotext").arg("-raw").arg(&pdf).arg("-").output() else {
            skip("print: pdftotext is not installed (apt-get install poppler-utils)");
            continue;
        };
        let text = squeezed(&String::from_utf8_lossy(&text.stdout));
        // Of every table and list of facts, and of all that is folded.
        let parts = "[...document.querySelectorAll('td, th, dt, dd, li, figcaption, h3')]\
                     .filter(e => !e.closest('thead, .sr') && !e.querySelector('td, dl, .sr, .sign, .scale'))\
                     .map(e => e.textContent)";
        let parts = browser.value(parts);
        assert!(texts(&parts).len() > 20, "{}", page.name);
        let absent: Vec<&str> =
            texts(&parts).into_iter().filter(|part| !text.contains(&squeezed(part))).collect();
        assert!(
            absent.is_empty(),
            "{}: {} of {} are not in {}: {:?}",
            page.name,
            absent.len(),
            texts(&parts).len(),
            pdf.display(),
            &absent[..absent.len().min(10)]
        );
    }
}

/// Lines of paper break anywhere.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Texts of drawings that end outside or touch another, and tables of an answer that are cut.
const COVERED: &str = "(() => {
    const found = [];
    for (const svg of document.querySelectorAll('.chart, figure.plot > svg')) {
        const frame = svg.getBoundingClientRect();
        const seen = [...svg.querySelectorAll('text')].filter(text => text.checkVisibility());
        const texts = seen.map(text => [text.textContent, text.getBoundingClientRect()]);
        texts.filter(([, box]) => box.width > 0).forEach(([name, box], at, all) => {
            if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push('cut: ' + name);
            for (const [other, place] of all.slice(at + 1)) {
                const wide = Math.min(box.right, place.right) - Math.max(box.left, place.left);
                const high = Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top);
                if (wide > 1 && high > 3) found.push(name + ' is on ' + other);
            }
        });
    }
    for (const table of document.querySelectorAll('table.answer')) {
        const parts = [...table.querySelectorAll('th, td')].filter(part => part.checkVisibility());
        const end = part => part.getBoundingClientRect().right;
        const cut = part => end(part) > end(table.parentElement) || part.scrollWidth > part.clientWidth + 1;
        found.push(...parts.filter(cut).map(part => 'cut in the answer: ' + part.textContent));
        const hidden = [...table.querySelectorAll('td')].filter(part => !part.checkVisibility());
        found.push(...hidden.map(part => 'not in the answer: ' + part.textContent));
    }
    return found;
})()";

/// Runs with long names, with many digits and with a comparison of two commands.
const CROWDED: [&str; 4] = [
    "2026-11-29-xeon-2cpu-example",
    "2026-11-28-epyc-2cpu-websocket-quick",
    "2026-11-28-epyc-2cpu-generators",
    "2026-11-26-epyc-2cpu-published",
];

fn texts_of_drawings(browser: &mut Chromium) {
    for page in CROWDED.map(published_as).into_iter().chain([published(), compared()]) {
        browser.open(&page.url());
        browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
        for width in [380, 500, 760, 1400] {
            browser.resize(width, false);
            assert_eq!(browser.value(COVERED), Value::Array(vec![]), "{} at {width}", page.name);
        }
    }
}

fn comparison(browser: &mut Chromium) {
    let page = compared();
    browser.open(&page.url());
    let report = common::report(page.path.parent().unwrap());
    let units: Vec<u64> = report.comparison.unwrap().cells.iter().map(|cell| cell.units.into()).collect();
    let dots = "[...document.querySelectorAll('tr[id$=\"@head\"] td.ratio .dots')]\
                .map(path => path.getAttribute('d').split('M').length - 1)";
    assert_eq!(browser.value(dots), Value::from(units));
}
