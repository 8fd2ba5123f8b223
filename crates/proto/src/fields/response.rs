//! The fields of a response.

use super::{Fields, decimal, is_split};

/// The fields of a response that an engine needs.
#[derive(Debug, Default)]
pub(crate) struct ResponseFields {
    pub(crate) status: Option<u16>,
    pub(crate) length: Option<u64>,
    /// `grpc-status`, of the trailers or of a response without a body.
    pub(crate) rpc_status: Option<u32>,
    /// The content is that of a call of gRPC.
    pub(crate) is_rpc: bool,
    has_regular: bool,
    pub(crate) is_bad: bool,
}

impl Fields for ResponseFields {
    #[inline]
    fn take(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":status" => {
                let digits = value.first_chunk::<3>().filter(|_| value.len() == 3);
                let status = digits.and_then(|digits| decimal(digits));
                self.is_bad |= self.has_regular || self.status.is_some() || status.is_none();
                self.status = status.map(|status| status as u16);
            }
            b"content-length" => {
                let length = decimal(value);
                self.is_bad |= length.is_none() || self.length.is_some_and(|other| length != Some(other));
                self.length = length;
                self.has_regular = true;
            }
            b"grpc-status" => {
                let status = rpc_status(value);
                self.is_bad |= status.is_none() || self.rpc_status.is_some();
                self.rpc_status = status;
                self.has_regular = true;
            }
            b"content-type" => {
                let rest = value.strip_prefix(b"application/grpc");
                self.is_rpc = rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')));
                self.is_bad |= is_split(value);
                self.has_regular = true;
            }
            // Fields that concern one connection do not exist here (RFC 9113 section 8.2.2, RFC 9114 section
            // 4.2).
            b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive" | b"proxy-connection" => {
                self.is_bad = true;
            }
            name => {
                self.is_bad |= name.is_empty() || name[0] == b':' || name.iter().any(u8::is_ascii_uppercase);
                self.is_bad |= is_split(value);
                self.has_regular = true;
            }
        }
    }
}

/// A decimal number without a sign and without zeros in front.
fn rpc_status(value: &[u8]) -> Option<u32> {
    let is_number = value == b"0" || value.first().is_some_and(|first| (b'1'..=b'9').contains(first));
    decimal(value).filter(|_| is_number)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(all: &[(&[u8], &[u8])]) -> ResponseFields {
        let mut fields = ResponseFields::default();
        all.iter().for_each(|(name, value)| fields.take(name, value));
        fields
    }

    #[test]
    fn a_status_of_grpc_is_one_plain_number() {
        for (value, status) in
            [(&b"0"[..], Some(0)), (b"13", Some(13)), (b"+0", None), (b"000", None), (b"", None)]
        {
            let fields = taken(&[(b"grpc-status", value)]);
            assert_eq!((fields.rpc_status, fields.is_bad), (status, status.is_none()), "{value:?}");
        }
        assert!(taken(&[(b"grpc-status", b"13"), (b"grpc-status", b"0")]).is_bad);
    }

    #[test]
    fn the_content_of_a_call_says_so() {
        for (value, is_rpc) in [
            (&b"application/grpc"[..], true),
            (b"application/grpc+proto", true),
            (b"application/grpcx", false),
            (b"text/html", false),
        ] {
            assert_eq!(taken(&[(b"content-type", value)]).is_rpc, is_rpc);
        }
    }

    #[test]
    fn a_value_that_would_end_a_line_is_refused() {
        for value in [&b"a\0"[..], b"a\rb", b"a\nb: c", b"\r2345678", b"1234567\n9", b"12345678\x009abcdef"] {
            assert!(taken(&[(b"x", value)]).is_bad, "{value:?}");
        }
        for value in [&b"a\tb \xff"[..], b"a\tb\x0c\x0e\x8d\xff\x80", b"\t2345678\t"] {
            assert!(!taken(&[(b"x", value)]).is_bad, "{value:?}");
        }
    }

    #[test]
    fn a_status_has_three_digits_however_long_it_is() {
        let read = |value: &[u8]| {
            let mut fields = ResponseFields::default();
            fields.take(b":status", value);
            (!fields.is_bad).then_some(fields.status).flatten()
        };
        assert_eq!(read(b"404"), Some(404));
        for wrong in [&b""[..], b"40", b"4x4", b"200200200200", &[0xff; 9]] {
            assert_eq!(read(wrong), None, "{wrong:x?}");
        }
    }
}
