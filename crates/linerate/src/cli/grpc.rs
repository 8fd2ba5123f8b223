//! `linerate load grpc` and `linerate serve grpc`; and the message of a call.

use super::{MultiplexedArgs, ServePageArgs, u64_in};
use crate::error::Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use std::fs;
use std::path::Path;

/// Make calls of gRPC, several at the same time on each connection
///
/// The path of the URL is the method. The message is sent as it is: linerate knows no schema. A call with
/// status 0 (OK) in its trailers is a success; all statuses are counted. A response may have any number of
/// messages, which are counted, too. http URLs are loaded with prior knowledge, https URLs over TLS.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load grpc http://127.0.0.1:50051/helloworld.Greeter/SayHello --message base64:CgV3b3JsZA==
  linerate load grpc https://localhost:50051/shop.Items/Get --message @request.bin --authority ca.pem
  linerate load grpc http://127.0.0.1:50051/shop.Items/Get -c 4 --streams 100 --rate 20000
  linerate load grpc http://127.0.0.1:50051/shop.Items/PutAll --message @item.bin --messages 100

Exit status: 0 done, 1 too many calls failed or the server hung, 2 bad usage, \
3 no call succeeded, 130 interrupted (the partial result is printed).")]
pub struct LoadGrpcArgs {
    /// URL of the method, such as http://127.0.0.1:50051/package.Service/Method
    #[arg(value_name = "URL")]
    pub url: String,

    #[command(flatten)]
    pub multiplexed: MultiplexedArgs,

    #[command(flatten)]
    pub message: MessageArgs,

    /// Messages of each call, all the same: a method that takes a stream may have more than one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = u64_in(1..=10_000))]
    pub messages: u64,
}

#[derive(Debug, Clone, Args)]
pub struct MessageArgs {
    /// Message of a call of gRPC: TEXT, @FILE, or base64:TEXT [default: without a byte]
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["body", "method", "requests"])]
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
        Ok(STANDARD.encode(fs::read(&file).map_err(Error::file(&file))?))
    }
}

/// A method as `package.Service/Method`, without the slash before it.
pub(super) fn rpc_method(text: &str) -> Result<String, String> {
    let path = text.strip_prefix('/').unwrap_or(text);
    match path.split_once('/') {
        Some((service, method)) if !service.is_empty() && !method.is_empty() && !method.contains('/') => {
            Ok(path.to_owned())
        }
        _ => Err("expected a method such as helloworld.Greeter/SayHello".into()),
    }
}

/// Serve one message from memory for any call of gRPC, or a stream of them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve grpc --listen 127.0.0.1:50051 --size 100    \
    # for load grpc http://127.0.0.1:50051/any.Service/Method
  linerate serve grpc --listen 127.0.0.1:50051 --tls         \
    # for load grpc https://127.0.0.1:50051/any.Service/Method --insecure
  linerate serve grpc --size 100 --messages 50               # a stream of 50 for each call")]
pub struct ServeGrpcArgs {
    #[command(flatten)]
    pub page: ServePageArgs,

    /// Messages of each response
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = u64_in(1..=10_000))]
    pub messages: u64,
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
