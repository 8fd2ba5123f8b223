//! Enums of names that cross the edge as text: in JSON, TOML and on the command line.

/// Defines an enum whose values have names: `as_str`, `Display`, `FromStr`, serde, and `ALL` of them.
macro_rules! named {
    (
        $(#[$doc:meta])* $kind:ident, $what:literal {
            $($(#[doc = $about:literal])* $value:ident = $name:literal),* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $kind {
            /// No name: of a task that describes a program.
            #[default]
            #[serde(rename = "")]
            Unnamed,
            $($(#[doc = $about])* #[serde(rename = $name)] $value,)*
        }

        impl $kind {
            /// All that have a name.
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            /// The description, if there is one.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self {
                    Self::Unnamed => "",
                    $(Self::$value => concat!($($about),*),)*
                }
            }

            /// The name in JSON, in manifests and suites, and in reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    Self::Unnamed => "",
                    $(Self::$value => $name,)*
                }
            }
        }

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|one| one.as_str() == name);
                found.copied().ok_or_else(|| {
                    let near = crate::nearest::suggestion(name, Self::ALL.iter().map(|one| one.as_str()));
                    format!("there is no {} {name:?}; {near}", $what)
                })
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }
    };
}
pub(crate) use named;
