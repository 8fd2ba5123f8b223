//! The request of `load http`, and of `compare` and `gate` of commands.

use crate::error::Error;
use crate::measurement::PlannedRequest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Args)]
pub struct RequestArgs {
    /// Request method [default: GET, or POST with --body]
    #[arg(long, short = 'X', value_name = "METHOD")]
    pub method: Option<String>,

    /// Additional header, 'Name: value' (repeatable)
    #[arg(long, short = 'H', value_name = "LINE")]
    pub header: Vec<String>,

    /// Request body; @FILE: from a file
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,

    /// Basic authentication (RFC 7617)
    #[arg(long, short = 'u', value_name = "NAME:PASSWORD", value_parser = credentials)]
    pub user: Option<String>,
}

impl RequestArgs {
    /// The request of `path`; a file of the body is relative to `folder`.
    ///
    /// # Errors
    /// The file of the body cannot be read, or is not UTF-8.
    pub fn request(&self, path: &str, folder: &Path) -> Result<PlannedRequest, Error> {
        let body = match self.body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
            None => String::new(),
            Some((text, None)) => text.to_owned(),
            Some((_, Some(file))) => {
                let file = folder.join(file);
                fs::read_to_string(&file).map_err(Error::file(&file))?
            }
        };
        let usual = if self.body.is_some() { "POST" } else { "GET" };
        let basic = |user: &String| format!("Authorization: Basic {}", STANDARD.encode(user));
        Ok(PlannedRequest {
            method: self.method.clone().unwrap_or_else(|| usual.into()),
            path: path.into(),
            headers: self.header.iter().cloned().chain(self.user.as_ref().map(basic)).collect(),
            body,
        })
    }
}

fn credentials(text: &str) -> Result<String, String> {
    if text.contains(':') { Ok(text.into()) } else { Err("expected NAME:PASSWORD".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_makes_a_post_and_credentials_make_a_header() {
        let mut args = RequestArgs { method: None, header: vec!["A: b".into()], body: None, user: None };
        assert_eq!(args.request("/x", Path::new("")).unwrap().method, "GET");
        (args.body, args.user) = (Some("hello".into()), Some("Aladdin:open sesame".into()));
        let request = args.request("/x", Path::new("")).unwrap();
        assert_eq!((request.method.as_str(), request.body.as_str()), ("POST", "hello"));
        // The example of RFC 7617, section 2.
        assert_eq!(request.headers, ["A: b", "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]);
        args.method = Some("PUT".into());
        assert_eq!(args.request("/x", Path::new("")).unwrap().method, "PUT");
        args.body = Some("@/no/such/file".into());
        assert!(args.request("/x", Path::new("")).unwrap_err().to_string().contains("/no/such/file"));
    }
}
