//! The body of a request: any bytes, in JSON as a text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;

/// The bytes of a body. In JSON they are a text where they are UTF-8, or else `{"bytes": "..."}`, each
/// character of which is a byte, U+0000 to U+00FF.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body(Vec<u8>);

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Json<T> {
    Text(T),
    Bytes { bytes: String },
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = std::str::from_utf8(self).map_or_else(
            |_| Json::Bytes { bytes: self.iter().copied().map(char::from).collect() },
            Json::Text,
        );
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_no_byte = || serde::de::Error::custom("each character of \"bytes\" is U+0000 to U+00FF");
        match Json::<String>::deserialize(deserializer)? {
            Json::Text(text) => Ok(text.into()),
            Json::Bytes { bytes } => {
                let bytes = bytes.chars().map(|one| u8::try_from(one).ok()).collect::<Option<_>>();
                bytes.map(Self).ok_or_else(is_no_byte)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_the_same_after_json() {
        let all: Vec<u8> = (0..=255).collect();
        for (bytes, start) in
            [(&b"caf\xc3\xa9"[..], "\"caf\u{e9}\""), (&all, "{\"bytes\":\"\\u0000"), (b"", "\"\"")]
        {
            let json = serde_json::to_string(&Body::from(bytes.to_vec())).unwrap();
            assert!(json.starts_with(start), "{json}");
            assert_eq!(&*serde_json::from_str::<Body>(&json).unwrap(), bytes);
        }
        let error = serde_json::from_str::<Body>(r#"{"bytes": "Ā"}"#).unwrap_err().to_string();
        assert!(error.contains("U+00FF"), "{error}");
    }
}
