//! The run in full: progress, time, versions, host, reading guide.

use crate::layout;
use crate::model::Report;
use maud::{Markup, html};

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #run {
            h2 { "The run" }
            ul {
                @for line in layout::progress(report) { li { (line) } }
                li { "started " (report.run.started) ", with linerate " (report.run.linerate) }
                li { (layout::time(report)) }
            }
            h2 #versions { "Versions" } (pairs(&layout::versions(&report.suites)))
            @for (index, (title, of_host)) in layout::hosts(report).iter().enumerate() {
                h2 id=[(index == 0).then_some("host")] { (title) } (pairs(of_host))
            }
            h2 #reading { "How to read it" }
            ul { @for line in layout::HOW_TO_READ.iter().chain(HOW_TO_READ_THE_PLOTS) { li { (line) } } }
        }
    }
}

/// The reading guide of the plots that only the page has.
const HOW_TO_READ_THE_PLOTS: &[&str] = &[
    "Plot beside a ratio: the thick line is the 95 % interval, the short bar in it the estimate; each dot is \
     one unit, the first one at the top, so that a drift is a slope. The axis is logarithmic. Shaded: the \
     margin around the baseline; a dashed line: the limit; a dotted line: the reference.",
    "CPU bars: client, relay and server, in the shares that they have in trials alone. Interrupts and the \
     packet filter belong to no role: machine, among all numbers of a row, contains them.",
    "Latency by percentile: each step to the right is a tenth of the operations left. The band is from the \
     smallest to the largest of the trials; lines end where fewer than five operations are slower.",
];

fn pairs(pairs: &[(String, String)]) -> Markup {
    html! { dl.facts { @for (name, value) in pairs { div { dt { (name) } dd { (value) } } } } }
}
