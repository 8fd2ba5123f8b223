//! The fields of a request.

use super::{Fields, decimal, is_split};

/// The methods that a server answers in different ways.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    #[default]
    Other,
}

impl Method {
    pub(crate) fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }
}

/// The fields of a request that a server needs.
#[derive(Debug, Default)]
pub(crate) struct RequestFields {
    pub(crate) method: Method,
    /// Pseudo-fields so far: method, scheme and path are necessary, each once.
    pseudo: [bool; 4],
    has_regular: bool,
    pub(crate) is_bad: bool,
    /// Bytes of the body, where the client says so.
    pub(crate) length: Option<u64>,
}

impl RequestFields {
    pub(crate) fn is_request(&self) -> bool {
        !self.is_bad && self.pseudo[..3] == [true; 3]
    }

    pub(crate) fn has_pseudo(&self) -> bool {
        self.pseudo != [false; 4]
    }
}

impl Fields for RequestFields {
    #[inline]
    fn take(&mut self, name: &[u8], value: &[u8]) {
        self.is_bad |= is_split(value);
        let pseudo = [&b":method"[..], b":scheme", b":path", b":authority"];
        if let Some(at) = pseudo.iter().position(|known| *known == name) {
            self.is_bad |= self.has_regular || std::mem::replace(&mut self.pseudo[at], true);
            self.is_bad |= name == b":path" && value.is_empty();
            if at == 0 {
                self.method = match value {
                    b"GET" => Method::Get,
                    b"HEAD" => Method::Head,
                    b"POST" => Method::Post,
                    _ => Method::Other,
                };
            }
            return;
        }
        self.has_regular = true;
        self.is_bad |= name.is_empty() || name[0] == b':' || name.iter().any(u8::is_ascii_uppercase);
        if name == b"content-length" {
            let length = decimal(value);
            self.is_bad |= length.is_none() || self.length.is_some_and(|earlier| Some(earlier) != length);
            self.length = length;
        }
        self.is_bad |= matches!(name, b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive")
            || name == b"te" && value != b"trailers";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_would_end_a_line_is_refused_in_every_field() {
        for name in [&b":path"[..], b"x"] {
            for value in [&b"/\0"[..], b"/\r", b"/\nHost: evil"] {
                let mut fields = RequestFields::default();
                fields.take(name, value);
                assert!(fields.is_bad, "{name:?} {value:?}");
            }
        }
    }
}
