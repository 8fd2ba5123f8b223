//! The method as a page, from `docs/method.md`.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

const METHOD: &str = include_str!("../../../../docs/method.md");

pub(super) fn body() -> Markup {
    let mut text = String::new();
    pulldown_cmark::html::push_html(&mut text, inside(Parser::new_ext(METHOD, Options::ENABLE_TABLES)));
    html! { article.text { (PreEscaped(text)) } }
}

/// Headings have addresses. Links to files that the site does not have are plain text.
fn inside<'a>(events: impl Iterator<Item = Event<'a>>) -> impl Iterator<Item = Event<'a>> {
    let events: Vec<Event<'a>> = events.collect();
    let mut dropped = Vec::new();
    let mut kept = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                let is_ours = dest_url.starts_with('#') || dest_url.starts_with("https://");
                dropped.push(!is_ours);
                kept.extend(is_ours.then(|| event.clone()));
            }
            Event::End(TagEnd::Link) => kept.extend((dropped.pop() == Some(false)).then(|| event.clone())),
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let id = Some(CowStr::from(address(&events[at..])));
                let (level, classes, attrs) = (*level, classes.clone(), attrs.clone());
                kept.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
            }
            _ => kept.push(event.clone()),
        }
    }
    kept.into_iter()
}

/// The address of the heading at the start, as code forges make it: `before-and-during-the-measurement`.
fn address(events: &[Event<'_>]) -> String {
    let heading = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words = heading.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.to_lowercase()),
        _ => None,
    });
    let kept = |c: &char| c.is_alphanumeric() || *c == ' ' || *c == '-';
    words.collect::<String>().chars().filter(kept).collect::<String>().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_addresses_and_links_to_absent_files_are_text() {
        let text =
            "## From a trial, to a `verdict`\n\n[a](decisions/1.md) [b](https://example.org) [c](#d)\n";
        let mut html = String::new();
        pulldown_cmark::html::push_html(&mut html, inside(Parser::new(text)));
        assert!(html.contains("<h2 id=\"from-a-trial-to-a-verdict\">"), "{html}");
        let links = "<p>a <a href=\"https://example.org\">b</a> <a href=\"#d\">c</a></p>";
        assert!(html.contains(links), "{html}");
    }
}
