//! The coordinates of a cell: axis name to value, in the suite's order.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// An ordered map of axis name to value, such as `server = nginx, path = haproxy-http`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Axes(pub Vec<(String, String)>);

impl Axes {
    pub fn get(&self, axis: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
    }

    /// Names and values, in the suite's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The axes with the values of `other` where it has the same axis.
    pub fn with(&self, other: &Self) -> Self {
        let replaced = |name: &String, value: &String| other.get(name).unwrap_or(value).to_owned();
        Self(self.0.iter().map(|(name, value)| (name.clone(), replaced(name, value))).collect())
    }
}

impl Serialize for Axes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Axes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of axis name to value")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Axes, A::Error> {
                let mut axes = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    axes.push(entry);
                }
                Ok(Axes(axes))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Axes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Axes".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<String, String>::json_schema(generator)
    }
}
