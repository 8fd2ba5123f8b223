//! Capabilities of a terminal, and the detail of what is printed.

/// Colours and width of a terminal, and how much is printed. The other formats ignore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Columns; `None`: as wide as the tables get.
    pub width: Option<u16>,
    /// Every metric, interval and flag, in place of compact tables.
    pub long: bool,
}
