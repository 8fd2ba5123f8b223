//! Fields that vary, as HTTP/2 and HTTP/3 write them: a text has its length before it.

use super::put_integer;
use crate::http::vary::{Numbers, Template};
use linerate_contract::Refusal;

/// How a protocol writes a field, and the name of one whose value follows.
pub(crate) struct Writing {
    pub(crate) field: fn(&mut Vec<u8>, &str, &str),
    pub(crate) name: fn(&mut Vec<u8>, &str),
}

/// The fields of a message whose values vary, and its body.
#[derive(Debug, Clone)]
pub(crate) struct VaryingMessage {
    /// Values that vary, with the bytes before each.
    values: Vec<(Vec<u8>, Template)>,
    /// The bytes behind the last one.
    rest: Vec<u8>,
    body: Template,
}

/// A message with its numbers. Its buffers are used again by the next one.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    pub(crate) fields: Vec<u8>,
    pub(crate) body: Vec<u8>,
    value: Vec<u8>,
}

impl VaryingMessage {
    /// `start` is in front of the fields. A body that varies counts its bytes.
    ///
    /// # Errors
    /// A place for a number that is none.
    pub(crate) fn new(
        start: &[u8],
        fields: &[(&str, &str)],
        body: Template,
        writing: &Writing,
    ) -> Result<Self, Refusal> {
        let (mut values, mut rest) = (Vec::new(), start.to_vec());
        for (name, value) in fields {
            let template = match *name {
                "content-length" if body.varies() => Template::length(),
                _ => Template::new(value.as_bytes())?,
            };
            if template.varies() {
                (writing.name)(&mut rest, name);
                values.push((std::mem::take(&mut rest), template));
            } else {
                (writing.field)(&mut rest, name, value);
            }
        }
        Ok(Self { values, rest, body })
    }

    /// Renders the message with this number.
    pub(crate) fn render(&self, rendered: &mut Rendered, sequence: u64, seed: u64) {
        let Rendered { fields, body, value } = rendered;
        let mut numbers = Numbers::new(sequence, seed);
        body.clear();
        self.body.render(body, 0, &mut numbers);
        fields.clear();
        for (before, template) in &self.values {
            value.clear();
            template.render(value, body.len(), &mut numbers);
            fields.extend_from_slice(before);
            put_integer(fields, 0, 7, value.len());
            fields.extend_from_slice(value);
        }
        fields.extend_from_slice(&self.rest);
    }
}
