//! Capabilities of a terminal, and the detail of what is printed.

use std::io::IsTerminal;

/// Colours and width of a terminal, and how much is printed. The other formats ignore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Columns; `None`: as wide as the tables get.
    pub width: Option<u16>,
    /// Every metric, interval and flag, in place of compact tables.
    pub long: bool,
}

impl Style {
    /// The style for standard error, which may be a file while standard output is a terminal.
    #[must_use]
    pub(crate) fn on_stderr(self) -> Self {
        Self { colour: self.colour && std::io::stderr().is_terminal(), ..self }
    }
}
