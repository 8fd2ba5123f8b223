//! The numbers of the page, to download: `report.json`, compressed, inside the page.

use crate::report::model::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{Markup, html};
use std::io::Write;

/// Works without scripts: the file is in the link.
pub(super) fn link(report: &Report) -> Markup {
    let json = serde_json::to_vec(report).expect("a report has string keys only, so it always serialises");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&json).expect("memory can be written");
    let packed = encoder.finish().expect("memory can be written");
    html! {
        a download="report.json.gz" href={ "data:application/gzip;base64," (STANDARD.encode(packed)) } {
            "Download the numbers (JSON)"
        }
    }
}
