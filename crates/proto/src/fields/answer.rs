//! The fields of an answer.

use super::Fields;

/// The fields of an answer that an engine needs.
#[derive(Debug, Default)]
pub(crate) struct AnswerFields {
    pub(crate) status: Option<u16>,
    pub(crate) length: Option<u64>,
    /// `grpc-status`, of the trailers or of an answer without a body.
    pub(crate) rpc_status: Option<u32>,
    has_regular: bool,
    pub(crate) is_bad: bool,
}

impl Fields for AnswerFields {
    #[inline]
    fn take(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":status" => {
                let digits = value.len() == 3 && value.iter().all(u8::is_ascii_digit);
                self.is_bad |= self.has_regular || self.status.is_some() || !digits;
                let of_digits = value.iter().take(3).fold(0, |sum, digit| sum * 10 + u16::from(digit & 15));
                self.status = Some(of_digits);
            }
            b"content-length" => {
                let length = std::str::from_utf8(value).ok().filter(|text| !text.starts_with('+'));
                let length = length.and_then(|text| text.parse().ok());
                self.is_bad |= length.is_none() || self.length.is_some_and(|other| length != Some(other));
                self.length = length;
                self.has_regular = true;
            }
            b"grpc-status" => {
                self.rpc_status = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.has_regular = true;
            }
            // Fields that concern one connection do not exist here (RFC 9113 section 8.2.2, RFC 9114 section
            // 4.2).
            b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive" | b"proxy-connection" => {
                self.is_bad = true;
            }
            name => {
                self.is_bad |= name.is_empty() || name[0] == b':' || name.iter().any(u8::is_ascii_uppercase);
                self.has_regular = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_three_digits_however_long_it_is() {
        let read = |value: &[u8]| {
            let mut fields = AnswerFields::default();
            fields.take(b":status", value);
            (!fields.is_bad).then_some(fields.status).flatten()
        };
        assert_eq!(read(b"404"), Some(404));
        for wrong in [&b""[..], b"40", b"4x4", b"200200200200", &[0xff; 9]] {
            assert_eq!(read(wrong), None, "{wrong:x?}");
        }
    }
}
