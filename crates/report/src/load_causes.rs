//! Why the operations of a load failed: the first cause of each kind, in words, with the peer's bytes and the
//! next step.

use super::numbers::plain;
use linerate_contract::{Done, ErrorKind, Layer, Role, Spec, TlsFailure};
use serde::Serialize;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CauseJson {
    /// As in `done.errors`.
    pub(super) kind: String,
    /// The number of operations that failed so.
    pub(super) failed: u64,
    /// Why the first of them failed; absent if not known.
    pub(super) text: Option<String>,
    /// The bytes of the server that show it, escaped.
    pub(super) bytes: Option<String>,
    /// The next step.
    pub(super) next: Option<&'static str>,
}

impl CauseJson {
    /// `malformed: not a response of HTTP/1.1 ("SSH-2.0\r\n"); next step`.
    pub(super) fn sentence(&self) -> String {
        let text = self.text.as_deref().map_or_else(String::new, |text| format!(" {text}"));
        let bytes = self.bytes.as_deref().map_or_else(String::new, |bytes| format!(" (\"{bytes}\")"));
        let separator = if text.is_empty() { "" } else { ";" };
        let next = self.next.map_or_else(String::new, |next| format!("{separator} {next}"));
        format!("{}:{text}{bytes}{next}", self.kind)
    }
}

/// The causes of a run that are known, or that have a next step.
pub(super) fn causes(spec: &Spec, done: &Done) -> Vec<CauseJson> {
    let all = done.errors.0.iter().map(|(kind, failed)| {
        let cause = done.causes.0.get(kind);
        let text = cause.map(|cause| cause.text.clone()).or_else(|| usual(spec, *kind));
        let bytes = cause.map(|cause| cause.bytes.clone()).filter(|bytes| !bytes.is_empty());
        let tls = cause.and_then(|cause| cause.tls);
        let next = next_step(spec, *kind, tls, text.as_deref().unwrap_or_default());
        CauseJson { kind: kind.name(), failed: *failed, text, bytes, next }
    });
    all.filter(|cause| cause.text.is_some() || cause.next.is_some()).collect()
}

/// The cause of a kind that has only one.
fn usual(spec: &Spec, kind: ErrorKind) -> Option<String> {
    let seconds = plain(spec.timeout_ns.as_secs_f64());
    match kind {
        _ if spec.role == Role::Server => None,
        ErrorKind::Timeout => Some(format!("no whole response within {seconds} s")),
        ErrorKind::ConnectTimeout => Some(format!("no connection and handshake within {seconds} s")),
        _ => None,
    }
}

/// The next step, where one is known.
fn next_step(spec: &Spec, kind: ErrorKind, tls: Option<TlsFailure>, text: &str) -> Option<&'static str> {
    let layer = spec.layer;
    if spec.role == Role::Server {
        return next_step_of_client(kind, tls, text);
    }
    let is_plain = matches!(layer, Layer::Http | Layer::WebSocket | Layer::H2c);
    match kind {
        _ if text.contains("speaks TLS") => Some("the URL with TLS: https, h2, wss"),
        _ if text.contains("speaks HTTP/2") => Some("the URL of HTTP/2: h2c, h2"),
        _ if text.contains("speaks HTTP/1.1") => Some("the URL of HTTP/1.1: http, https"),
        ErrorKind::EmptyResponse if is_plain => Some("if the port speaks TLS: https, h2, wss"),
        ErrorKind::WrongStatus if layer.is_websocket() => next_of_upgrade(text),
        ErrorKind::WrongStatus if layer.is_http() && !text.contains("gRPC") => {
            Some("if the status is right: --expect status=N")
        }
        ErrorKind::WrongLength | ErrorKind::WrongContent if layer.is_websocket() => {
            Some("the server must send back what it gets; one that speaks first: --greetings N")
        }
        ErrorKind::WrongLength | ErrorKind::WrongContent if text.contains("sent") => {
            Some("the server must send back what it gets")
        }
        ErrorKind::ConnectRefused => Some("nothing listens there"),
        ErrorKind::ConnectTimeout if layer.is_of_datagrams() => {
            Some("nothing answers there: check the address, the protocol and a firewall")
        }
        ErrorKind::ConnectTimeout => Some("a firewall, or more connections at once than the server accepts"),
        ErrorKind::Timeout => Some("a longer time is --timeout"),
        ErrorKind::TlsFailed => next_of_tls(tls?),
        ErrorKind::AddressExhausted => {
            Some("this address has no port left: more of them by --source, or fewer new connections")
        }
        ErrorKind::DescriptorExhausted => Some("this process may open no more files: ulimit -n"),
        _ => None,
    }
}

/// The next step after an upgrade to WebSocket that has this cause: the path, or a header. `None`: it is the
/// cause of something else.
pub fn next_of_upgrade(text: &str) -> Option<&'static str> {
    let status = text.strip_prefix("the upgrade has status ")?;
    Some(match status.parse::<u16>().ok()? {
        401 | 403 | 407 => {
            "-H with what the server wants of a browser: Authorization (-u NAME:PASSWORD), Cookie or Origin"
        }
        300..=399 => "the URL of its Location header",
        400 | 426 => "--subprotocol, or -H with what the server wants of a browser, such as Origin",
        500.. => "see its log",
        _ => "another path: this one has pages and no WebSocket, which is often at /ws",
    })
}

/// The next step for the client of a server.
fn next_step_of_client(kind: ErrorKind, tls: Option<TlsFailure>, text: &str) -> Option<&'static str> {
    match (kind, tls) {
        _ if text.contains("speaks TLS") => Some("serve a URL with TLS: https, h2, wss"),
        _ if text.contains("speaks HTTP/2") => Some("serve a URL of HTTP/2: h2c, h2"),
        _ if text.contains("speaks HTTP/1.1") => Some("the client's URL with TLS, or serve http"),
        (ErrorKind::TlsFailed, Some(TlsFailure::ClientCertificate)) => {
            Some("the client has to trust it (serve --authority FILE), or not to verify it (--insecure)")
        }
        _ => None,
    }
}

fn next_of_tls(failure: TlsFailure) -> Option<&'static str> {
    match failure {
        TlsFailure::UnknownAuthority => Some("--authority FILE to trust it, or --insecure"),
        TlsFailure::OtherName => Some("the URL's name with --connect-to HOST:PORT, or --insecure"),
        TlsFailure::Expired => Some("--insecure, or a new one"),
        TlsFailure::ClientCertificate => Some("--cert FILE, with --key FILE"),
        TlsFailure::NotTls => Some("try the URL without TLS, or another port"),
        TlsFailure::Closed => Some("see its log"),
        TlsFailure::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Cause, Workload};

    fn shown(layer: Layer, kind: ErrorKind, cause: Option<Cause>) -> String {
        let mut done = Done::default();
        done.errors.add(kind, 3);
        done.causes.0.extend(cause.map(|cause| (kind, cause)));
        let all = causes(&Spec::new(Role::Client, layer, Workload::Rr), &done);
        all.iter().map(CauseJson::sentence).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_failure_has_its_cause_its_bytes_and_the_next_step() {
        let speaks = Cause::showing("not a response of HTTP/1.1: the server speaks TLS there", b"\x15\x03");
        assert_eq!(
            shown(Layer::Http, ErrorKind::Malformed, Some(speaks)),
            r#"malformed: not a response of HTTP/1.1: the server speaks TLS there ("\x15\x03"); "#.to_owned()
                + "the URL with TLS: https, h2, wss"
        );
        assert_eq!(
            shown(Layer::Http, ErrorKind::EmptyResponse, None),
            "empty_reply: if the port speaks TLS: https, h2, wss"
        );
        let status =
            shown(Layer::Https, ErrorKind::WrongStatus, Some(Cause::new("status 404 in place of 200")));
        assert_eq!(
            status,
            "wrong_status: status 404 in place of 200; if the status is right: --expect status=N"
        );
        let unknown =
            Cause::of_tls(TlsFailure::UnknownAuthority, "the certificate is of an unknown authority");
        assert_eq!(
            shown(Layer::H2, ErrorKind::TlsFailed, Some(unknown)),
            "tls_failed: the certificate is of an unknown authority; --authority FILE to trust it, or \
             --insecure"
        );
        for (status, part) in [
            (200, "another path"),
            (301, "Location"),
            (401, "-H"),
            (404, "another path"),
            (426, "--subprotocol"),
            (503, "log"),
        ] {
            let cause = Cause::new(format!("the upgrade has status {status}"));
            let shown = shown(Layer::Wss, ErrorKind::WrongStatus, Some(cause));
            assert!(shown.contains(part), "{shown}");
        }
        let late = shown(Layer::Tcp, ErrorKind::Timeout, None);
        assert_eq!(late, "timeout: no whole response within 10.0 s; a longer time is --timeout");
    }
}
