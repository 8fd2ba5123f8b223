//! A static site of runs: an index, each run's page, the history of ratios, and the method. Plain files that
//! refer to each other and to nothing else.

mod history;
mod index;
mod method;

use super::html;
use super::model::Report;
use maud::{Markup, html};

/// A run of the site.
#[derive(Debug)]
pub struct SiteRun {
    /// Its folder, which names its page.
    pub name: String,
    pub report: Report,
}

impl SiteRun {
    fn file(&self) -> String {
        format!("run-{}.html", self.name)
    }

    fn day(&self) -> &str {
        self.report.run.started.split('T').next().unwrap_or_default()
    }

    /// What distinguishes machines: ratios of one need not be those of another.
    fn host(&self) -> String {
        let host = &self.report.host;
        let virtualised = host.facts.get("virtualised").is_some_and(|value| value == "yes");
        let kind = if virtualised { ", virtual machine" } else { "" };
        format!("{} x {}{kind}", host.cpus, host.cpu_model)
    }
}

/// Name and content of each file of a site. Runs are in the order of their start, the oldest first.
#[must_use]
pub fn site(mut runs: Vec<SiteRun>) -> Vec<(String, String)> {
    runs.sort_by(|a, b| (&a.report.run.started, &a.name).cmp(&(&b.report.run.started, &b.name)));
    let pages = [
        ("index.html", "Published runs", index::body(&runs)),
        ("history.html", "History of ratios", history::body(&runs)),
        ("method.html", "The method", method::body()),
    ];
    let own = pages.into_iter().map(|(file, title, body)| {
        let body = html! { (navigation(file)) (body) };
        (file.to_owned(), html::page(&format!("linerate: {title}"), &body))
    });
    let of_runs = runs.iter().map(|run| (run.file(), html::render_below(&run.report, &navigation(""))));
    own.chain(of_runs).collect()
}

fn navigation(current: &str) -> Markup {
    let pages = [("index.html", "Runs"), ("history.html", "History"), ("method.html", "Method")];
    html! {
        nav.site aria-label="site" {
            @for (file, title) in pages {
                a href=(file) aria-current=[(file == current).then_some("page")] { (title) }
            }
        }
    }
}
