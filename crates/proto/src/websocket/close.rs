//! The payload of a close frame (RFC 6455, sections 5.5.1 and 7.4).

use super::Broken;

/// The status of a normal end.
pub const NORMAL: u16 = 1000;

/// The code of a close frame's payload; `None` if it is empty.
///
/// # Errors
/// A code that may not be sent, half a code, or a reason that is not UTF-8.
pub fn parse(payload: &[u8]) -> Result<Option<u16>, Broken> {
    match payload {
        [] => Ok(None),
        [_] => Err(Broken::Protocol),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            if !may_be_sent(code) {
                return Err(Broken::Protocol);
            }
            std::str::from_utf8(reason).map_err(|_| Broken::NotUtf8)?;
            Ok(Some(code))
        }
    }
}

/// 1004 is reserved; 1005, 1006 and 1015 are never sent; 1012 to 1014 were registered later; codes from 3000
/// on are free.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_may_travel() {
        for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 3000, 3999, 4000, 4999_u16] {
            assert_eq!(parse(&code.to_be_bytes()), Ok(Some(code)));
        }
        for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535_u16] {
            assert_eq!(parse(&code.to_be_bytes()), Err(Broken::Protocol), "{code}");
        }
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&[3]), Err(Broken::Protocol));
        assert_eq!(parse(b"\x03\xe8good \xe2\x82\xac"), Ok(Some(1000)));
        assert_eq!(parse(b"\x03\xe8bad \xe2\x82"), Err(Broken::NotUtf8));
    }
}
