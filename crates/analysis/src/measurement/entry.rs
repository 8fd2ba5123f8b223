//! Reading a line of the journal in one pass.
//!
//! serde's own reader of tagged enums first collects a line in a tree, with an allocation for each pair of a
//! histogram, since the tag could be last. Here it is first.

use super::{Duet, Entry, Trial};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    Trial,
    Duet,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trial or a duet that begins with its kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut line: A) -> Result<Entry, A::Error> {
        if line.next_key::<String>()?.as_deref() != Some("kind") {
            return Err(A::Error::custom("the first key is not `kind`"));
        }
        Ok(match line.next_value()? {
            EntryKind::Trial => Entry::Trial(Trial::deserialize(MapAccessDeserializer::new(line))?),
            EntryKind::Duet => Entry::Duet(Duet::deserialize(MapAccessDeserializer::new(line))?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_needs_its_kind_first() {
        let duet =
            r#""suite":"s","cells":["a","b"],"unit":1,"sharing":"turns","at":0,"outcome":"ok","stages":{}"#;
        let line = format!(r#"{{"kind":"duet",{duet}}}"#);
        let entry: Entry = serde_json::from_str(&line).unwrap();
        assert!(matches!(entry, Entry::Duet(_)));
        assert_eq!(serde_json::to_string(&entry).unwrap(), line);
        for wrong in [format!(r#"{{{duet},"kind":"duet"}}"#), format!(r#"{{"kind":"solo",{duet}}}"#)] {
            assert!(serde_json::from_str::<Entry>(&wrong).is_err(), "{wrong}");
        }
    }
}
