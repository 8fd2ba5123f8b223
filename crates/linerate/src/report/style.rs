//! Capabilities of a terminal.

/// Colours and width of a terminal. The other formats ignore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Columns; `None`: as wide as the tables get.
    pub width: Option<u16>,
}
