//! Flow control in one direction (section 5.2).

use super::Code;

/// The window of a stream and of a connection, unless settings say otherwise.
pub(super) const USUAL: u32 = 65_535;
/// The largest window.
pub(super) const LARGEST: u32 = (1 << 31) - 1;

/// The bytes that the peer may still receive. Smaller settings may make it negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) fn new(size: u32) -> Self {
        Self(size.into())
    }

    /// Bytes that may be sent, `most` at most.
    #[inline]
    pub(super) fn room(self, most: usize) -> usize {
        usize::try_from(self.0).map_or(0, |left| left.min(most))
    }

    #[inline]
    pub(super) fn spend(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// # Errors
    /// The window would be larger than the largest one.
    pub(super) fn grow(&mut self, by: i64) -> Result<(), Code> {
        self.0 += by;
        if self.0 > i64::from(LARGEST) { Err(Code::FLOW_CONTROL_ERROR) } else { Ok(()) }
    }
}

/// The bytes that the peer may still send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReceiveWindow {
    size: u32,
    left: u32,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { size, left: size }
    }

    /// Takes the bytes of a frame.
    ///
    /// # Errors
    /// They are more than the peer may send.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Code> {
        self.left = self.left.checked_sub(bytes as u32).ok_or(Code::FLOW_CONTROL_ERROR)?;
        Ok(())
    }

    /// The increment of an update that is due: one for each half of the window.
    #[inline]
    pub(super) fn update(&mut self) -> Option<u32> {
        let used = self.size - self.left;
        (used > self.size / 2).then(|| {
            self.left = self.size;
            used
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_grants_half_of_its_window_at_once_and_no_byte_more() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!((window.take(50), window.update()), (Ok(()), None));
        assert_eq!((window.take(1), window.update()), (Ok(()), Some(51)));
        assert_eq!((window.take(100), window.take(1)), (Ok(()), Err(Code::FLOW_CONTROL_ERROR)));
    }

    #[test]
    fn a_sender_waits_below_zero_and_refuses_an_overflow() {
        let mut window = SendWindow::new(10);
        window.spend(8);
        assert_eq!((window.grow(-5), window.room(9)), (Ok(()), 0));
        assert_eq!((window.grow(8), window.room(9), window.room(3)), (Ok(()), 5, 3));
        assert_eq!(window.grow(i64::from(LARGEST)), Err(Code::FLOW_CONTROL_ERROR));
    }
}
