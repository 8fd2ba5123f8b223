//! The method and the message of a call of gRPC.

use crate::bounded;
use crate::error::Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use std::path::Path;

#[derive(Debug, Clone, Args)]
pub struct MessageArgs {
    /// Message of a call of gRPC: TEXT, @FILE, or base64:TEXT [default: without a byte]
    #[arg(
        hide_short_help = true,
        long, value_name = "BYTES", conflicts_with_all = ["body", "method", "requests"]
    )]
    pub message: Option<String>,
}

impl MessageArgs {
    /// In Base64; files are relative to `folder`.
    ///
    /// # Errors
    /// A file that cannot be read, or a text that is no Base64.
    pub fn encoded(&self, folder: &Path) -> Result<String, Error> {
        let text = self.message.as_deref().unwrap_or_default();
        if let Some(encoded) = text.strip_prefix("base64:") {
            let decoded = STANDARD.decode(encoded);
            return match decoded {
                Ok(_) => Ok(encoded.into()),
                Err(e) => Err(Error::Input(format!("--message base64:{encoded}: {e}"))),
            };
        }
        let Some(file) = text.strip_prefix('@') else { return Ok(STANDARD.encode(text)) };
        let file = folder.join(file);
        Ok(STANDARD.encode(bounded::bytes(&file)?))
    }
}

/// A method as `package.Service/Method`, without the slash before it.
pub(crate) fn rpc_method(text: &str) -> Result<String, String> {
    let path = text.strip_prefix('/').unwrap_or(text);
    match path.split_once('/') {
        Some((service, method)) if !service.is_empty() && !method.is_empty() && !method.contains('/') => {
            Ok(path.to_owned())
        }
        _ => Err("expected a method such as helloworld.Greeter/SayHello".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_text_a_file_or_base64() {
        let encoded = |text: &str| {
            MessageArgs { message: Some(text.into()) }.encoded(Path::new("/")).map_err(|e| e.to_string())
        };
        assert_eq!(encoded("hello"), Ok("aGVsbG8=".into()));
        assert_eq!(encoded("base64:CgV3b3JsZA=="), Ok("CgV3b3JsZA==".into()));
        assert_eq!(MessageArgs { message: None }.encoded(Path::new("")).unwrap(), "");
        assert!(encoded("base64:?").unwrap_err().contains("--message base64:?"));
        assert!(encoded("@no/such/file").unwrap_err().contains("/no/such/file"));
    }

    #[test]
    fn a_method_has_a_service() {
        for text in ["helloworld.Greeter/SayHello", "/helloworld.Greeter/SayHello"] {
            assert_eq!(rpc_method(text), Ok("helloworld.Greeter/SayHello".into()));
        }
        for text in ["SayHello", "/", "a/b/c", "a/"] {
            assert!(rpc_method(text).is_err(), "{text}");
        }
    }
}
