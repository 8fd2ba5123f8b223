//! As much of HTML as linerate writes: every element is closed, every attribute has quotes.

use std::collections::BTreeMap;

/// An element, with all text inside it.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: BTreeMap<String, String>,
    pub(crate) text: String,
    children: Vec<Element>,
}

const WITHOUT_END: [&str; 3] = ["meta", "link", "br"];

impl Element {
    /// Panics where a page has an element that is not closed, or closed twice.
    pub(crate) fn page(text: &str) -> Self {
        let mut open = vec![Self::default()];
        let mut rest = text;
        while let Some((before, tag)) = rest.split_once('<') {
            open.last_mut().unwrap().text += &decoded(before);
            let (tag, behind) = tag.split_once('>').expect("a tag has an end");
            rest = behind;
            if tag.starts_with("!DOCTYPE") {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                let closed = open.pop().unwrap();
                assert_eq!(closed.name, name, "another element was open");
                open.last_mut().expect("it was opened").adopt(closed);
                continue;
            }
            let element = Self::opened(tag);
            if WITHOUT_END.contains(&element.name.as_str()) {
                open.last_mut().unwrap().adopt(element);
                continue;
            }
            // Neither styles nor scripts are text.
            if let "style" | "script" = element.name.as_str() {
                rest = &rest[rest.find("</").expect("it has an end")..];
            }
            open.push(element);
        }
        assert_eq!(open.len(), 1, "{} is not closed", open.last().unwrap().name);
        open.remove(0)
    }

    fn opened(tag: &str) -> Self {
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut element = Self { name: name.to_owned(), ..Self::default() };
        while !rest.is_empty() {
            let end = rest.find([' ', '=']).unwrap_or(rest.len());
            let (key, behind) = rest.split_at(end);
            let (value, behind) = match behind.strip_prefix("=\"") {
                Some(quoted) => quoted.split_once('"').expect("a value has two quotes"),
                None => ("", behind),
            };
            let twice = element.attributes.insert(key.to_owned(), decoded(value));
            assert_eq!(twice, None, "{key} is twice in <{tag}>");
            rest = behind.trim_start();
        }
        element
    }

    fn adopt(&mut self, child: Self) {
        self.text += if child.name == "br" { "\n" } else { &child.text };
        self.children.push(child);
    }

    pub(crate) fn get(&self, attribute: &str) -> Option<&str> {
        self.attributes.get(attribute).map(String::as_str)
    }

    pub(crate) fn has_class(&self, class: &str) -> bool {
        self.get("class").is_some_and(|classes| classes.split(' ').any(|other| other == class))
    }

    /// All elements inside, in the order of the page.
    pub(crate) fn inside(&self) -> Vec<&Self> {
        self.children.iter().flat_map(|child| [vec![child], child.inside()].concat()).collect()
    }

    /// Elements inside, such as `td`, `td.ratio` or `.sign`.
    pub(crate) fn all(&self, selector: &str) -> Vec<&Self> {
        let (name, class) = selector.split_once('.').unwrap_or((selector, ""));
        let fits = |element: &&Self| {
            (name.is_empty() || element.name == name) && (class.is_empty() || element.has_class(class))
        };
        self.inside().into_iter().filter(fits).collect()
    }

    /// The one of [`Self::all`]; panics where there is another number of them.
    #[track_caller]
    pub(crate) fn one(&self, selector: &str) -> &Self {
        let found = self.all(selector);
        assert_eq!(found.len(), 1, "{selector} in {}", self.text);
        found[0]
    }

    #[track_caller]
    pub(crate) fn with_id(&self, id: &str) -> &Self {
        let found: Vec<_> = self.inside().into_iter().filter(|each| each.get("id") == Some(id)).collect();
        assert_eq!(found.len(), 1, "elements with the id {id}");
        found[0]
    }

    /// Names and texts of the lists of definitions inside.
    pub(crate) fn definitions(&self) -> BTreeMap<&str, &str> {
        let [names, texts] = ["dt", "dd"].map(|name| self.all(name));
        assert_eq!(names.len(), texts.len());
        names.iter().zip(texts).map(|(name, text)| (name.text.as_str(), text.text.as_str())).collect()
    }
}

fn decoded(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&").replace('\u{a0}', " ")
}
