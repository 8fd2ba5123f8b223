//! A static site of runs: an index, each run's page, the history of ratios, the documents that suites repeat,
//! and the method. Plain files that refer to each other and to nothing else.

mod history;
mod index;
mod method;
mod published;

use super::html;
use super::model::Report;
use maud::{Markup, html};

/// A run of the site.
#[derive(Debug)]
pub struct SiteRun {
    /// The run's folder, which names its page.
    pub name: String,
    pub report: Report,
}

impl SiteRun {
    /// The name of its page, which is its address as well: a folder's name may have characters that an
    /// address gives a meaning.
    fn file(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let plain = |c: char| if is_plain(c) { c.to_string() } else { format!("_{:x}_", u32::from(c)) };
        format!("run-{}.html", self.name.chars().map(plain).collect::<String>())
    }

    fn day(&self) -> &str {
        self.report.run.started.split('T').next().unwrap_or_default()
    }

    /// The name that distinguishes machines: ratios of one need not be those of another.
    fn host(&self) -> String {
        let host = &self.report.host;
        let virtualised = host.facts.get("virtualised").is_some_and(|value| value == "yes");
        let kind = if virtualised { ", virtual machine" } else { "" };
        format!("{} x {}{kind}", host.cpus, host.cpu_model)
    }
}

/// Name and content of each file of a site. Runs are in the order of their start, the oldest first.
pub fn site(mut runs: Vec<SiteRun>) -> Vec<(String, String)> {
    runs.sort_by(|a, b| (&a.report.run.started, &a.name).cmp(&(&b.report.run.started, &b.name)));
    let documents = published::documents(&runs);
    let pages = [
        ("index.html", "Published runs", index::body(&runs)),
        ("history.html", "History of ratios", history::body(&runs)),
        (DOCUMENTS, published::TITLE, published::body(&documents)),
        ("method.html", "The method", method::body()),
    ];
    let has_documents = !documents.is_empty();
    let is_there = |file: &str| has_documents || file != DOCUMENTS;
    let navigation = |current: &str| navigation(current, is_there);
    let own = pages.into_iter().filter(|(file, ..)| is_there(file)).map(|(file, title, body)| {
        let body = html! { (navigation(file)) (body) };
        (file.to_owned(), html::page(&format!("linerate: {title}"), &body))
    });
    let text = has_documents.then(|| (DOCUMENTS.replace(".html", ".md"), published::text(&documents)));
    let of_runs = runs.iter().map(|run| (run.file(), html::render_below(&run.report, &navigation(""))));
    own.chain(of_runs).chain(text).collect()
}

/// Absent where no run is of a document's tables alone.
const DOCUMENTS: &str = "published.html";

fn navigation(current: &str, is_there: impl Fn(&str) -> bool) -> Markup {
    let pages = [
        ("index.html", "Runs"),
        ("history.html", "History"),
        (DOCUMENTS, "Measured again"),
        ("method.html", "Method"),
    ];
    html! {
        nav.site aria-label="site" {
            @for (file, title) in pages.into_iter().filter(|(file, _)| is_there(file)) {
                a href=(file) aria-current=[(file == current).then_some("page")] { (title) }
            }
        }
    }
}
