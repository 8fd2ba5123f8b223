//! The method and the message of a call of gRPC.

use crate::bounded;
use crate::error::Error;
use crate::measurement::PlannedRequest;
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
    /// Makes calls of `requests`, whose paths are methods: of `file` they have their own messages, as texts
    /// or with `base64:` before them, else the message of the option, whose file is relative to `folder`.
    ///
    /// # Errors
    /// A path that is no method, a file that cannot be read, or a text that is no Base64.
    pub fn call(
        &self,
        requests: &mut [PlannedRequest],
        file: Option<&Path>,
        folder: &Path,
    ) -> Result<(), Error> {
        let common = self.encoded(folder)?;
        for request in requests {
            let wrong = |what: String| match file {
                Some(file) => Error::Input(format!("{}: {}: {what}", file.display(), request.path)),
                None => Error::Input(what),
            };
            let method =
                rpc_method(&request.path).map_err(|what| wrong(format!("its path is no method: {what}")))?;
            let body = match file {
                Some(_) => encoded(&request.body).map_err(wrong)?,
                None => common.clone(),
            };
            (request.path, request.method, request.body) = (format!("/{method}"), "POST".into(), body.into());
        }
        Ok(())
    }

    /// In Base64.
    fn encoded(&self, folder: &Path) -> Result<String, Error> {
        let text = self.message.as_deref().unwrap_or_default();
        match text.strip_prefix('@') {
            Some(file) => Ok(STANDARD.encode(bounded::bytes(&folder.join(file))?)),
            None => {
                encoded(text.as_bytes()).map_err(|what| Error::Input(format!("--message {text}: {what}")))
            }
        }
    }
}

/// A message in Base64: as it is written after `base64:`, or its bytes.
fn encoded(message: &[u8]) -> Result<String, String> {
    let Some(text) = message.strip_prefix(b"base64:") else { return Ok(STANDARD.encode(message)) };
    let decoded = STANDARD.decode(text).map_err(|e| format!("this is no Base64: {e}"))?;
    Ok(STANDARD.encode(decoded))
}

/// A method as `package.Service/Method`, without the slash before it.
pub(crate) fn rpc_method(text: &str) -> Result<String, String> {
    let path = text.strip_prefix('/').unwrap_or(text);
    // What begins with a dot or has a space is a command that was taken for the option's value.
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', ' ']);
    match path.split_once('/') {
        Some((service, method)) if is_name(service) && is_name(method) => Ok(path.to_owned()),
        _ => Err("expected a method such as helloworld.Greeter/SayHello".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Body;

    #[test]
    fn calls_of_a_file_have_their_own_methods_and_messages_of_any_bytes() {
        let one = |path: &str, body: &[u8]| -> PlannedRequest {
            let json = serde_json::json!({ "method": "GET", "path": path });
            PlannedRequest { body: body.to_vec().into(), ..serde_json::from_value(json).unwrap() }
        };
        let called = |file: Option<&str>, mut all: Vec<PlannedRequest>| {
            let common = MessageArgs { message: Some("all".into()) };
            common.call(&mut all, file.map(Path::new), Path::new("/")).map_err(|e| e.to_string())?;
            Ok::<_, String>(all)
        };
        let file = Some("calls.jsonl");
        let all =
            called(file, vec![one("a.B/C", b"\xff\0"), one("/a.B/D", b"base64:/wA="), one("/a.B/E", b"")]);
        let all: Vec<_> = all.unwrap().into_iter().map(|one| (one.method, one.path, one.body)).collect();
        let call = |path: &str, body: &str| ("POST".to_owned(), path.to_owned(), Body::from(body));
        assert_eq!(all, [call("/a.B/C", "/wA="), call("/a.B/D", "/wA="), call("/a.B/E", "")]);
        assert_eq!(called(None, vec![one("/a.B/C", b"")]).unwrap()[0].body, Body::from("YWxs"));
        for (request, part) in [
            (one("/a", b""), "calls.jsonl: /a: its path is no method"),
            (one("/a.B/C", b"base64:?"), "calls.jsonl: /a.B/C: this is no Base64"),
        ] {
            let error = called(file, vec![request]).unwrap_err();
            assert!(error.starts_with(part), "{error}");
        }
    }

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
        for text in ["SayHello", "/", "a/b/c", "a/", "./server", "python3 a/b"] {
            assert!(rpc_method(text).is_err(), "{text}");
        }
    }
}
