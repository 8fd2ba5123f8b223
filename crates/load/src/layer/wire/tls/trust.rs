//! Whom a client trusts, who it is itself, and why a handshake fails.

use super::config::{bad, certified};
use crate::cause::note;
use crate::refusal::Refusal;
use linerate_contract::{Cause, ErrorKind, Tls, TlsFailure};
use linerate_proto::speech::spoken;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error,
    RootCertStore, SignatureScheme,
};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Certificates that this thread has looked at: each is of a full handshake.
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

/// Full handshakes that clients of this thread have begun.
pub(in crate::layer) fn full_handshakes() -> u64 {
    LOOKED_AT.get()
}

fn look() {
    LOOKED_AT.set(LOOKED_AT.get() + 1);
}

/// The client's own certificate, if the spec has one.
pub(super) fn identified(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    tls: &Tls,
) -> Result<ClientConfig, Refusal> {
    if tls.certificate.is_empty() {
        return Ok(builder.with_no_client_auth());
    }
    let (chain, key) = certified(tls)?;
    builder.with_client_auth_cert(chain, key).map_err(|e| bad("certificate", e))
}

/// A handshake or a record has failed with `error`, on `bytes` of the peer.
#[cold]
pub(in crate::layer) fn note_tls(error: &Error, bytes: &[u8]) -> ErrorKind {
    note(ErrorKind::TlsFailed, || {
        let failure = reason(error);
        let text = match (failure, spoken(bytes)) {
            (TlsFailure::UnknownAuthority, _) => "the certificate is of an unknown authority".to_owned(),
            (TlsFailure::OtherName, _) => "the certificate is for another name".into(),
            (TlsFailure::Expired, _) => "the certificate has expired or is not valid yet".into(),
            (TlsFailure::ClientCertificate, _) => {
                format!("the server asks for a certificate that it accepts ({error})")
            }
            (TlsFailure::NotTls, Some(protocol)) if protocol != "TLS" => {
                format!("not TLS: the server speaks {protocol} there")
            }
            (TlsFailure::NotTls, _) => "the server does not speak TLS there".into(),
            (TlsFailure::Closed | TlsFailure::Other, _) => error.to_string(),
        };
        let bytes = if failure == TlsFailure::NotTls { bytes } else { &[] };
        Cause { tls: Some(failure), ..Cause::showing(text, bytes) }
    })
}

/// The peer has closed the connection during the handshake.
#[cold]
pub(super) fn note_closed() -> ErrorKind {
    let text = "the server closed the connection during the handshake";
    note(ErrorKind::TlsFailed, || Cause::of_tls(TlsFailure::Closed, text))
}

/// The reason that a user can do something about, where there is one.
fn reason(error: &Error) -> TlsFailure {
    match error {
        Error::InvalidCertificate(wrong) => match wrong {
            // One with the name of an authority that the client trusts, and another key, has a bad signature.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFailure::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TlsFailure::OtherName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => TlsFailure::Expired,
            // A server that is its own authority, and that nobody has named.
            CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => {
                TlsFailure::UnknownAuthority
            }
            _ => TlsFailure::Other,
        },
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown,
        ) => TlsFailure::ClientCertificate,
        Error::InvalidMessage(_) => TlsFailure::NotTls,
        _ => TlsFailure::Other,
    }
}

/// Checks a server's certificate: against this authority (PEM), against those of the system if there is none,
/// or not at all (`insecure`).
pub(super) fn verifier(
    insecure: bool,
    authority: &str,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Refusal> {
    if insecure {
        return Ok(Arc::new(Verifier { trust: None, provider }));
    }
    let given = CertificateDer::pem_slice_iter(authority.as_bytes());
    let given = given.collect::<Result<Vec<_>, _>>().map_err(|e| bad("authority", e))?;
    let mut roots = if authority.is_empty() { system_roots()? } else { RootCertStore::empty() };
    for certificate in &given {
        roots.add(certificate.clone()).map_err(|e| bad("authority", e))?;
    }
    if roots.is_empty() {
        return Err(bad("authority", "there is no certificate in it"));
    }
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let chain = chain.map_err(|e| bad("authority", e))?;
    Ok(Arc::new(Verifier { trust: Some(Trust { chain, given }), provider }))
}

/// Certificates that the given authorities have signed, and these themselves: a server that signs its own
/// certificate is its authority, as for curl.
#[derive(Debug)]
struct Trust {
    chain: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

/// Checks certificates by `trust`; `None`: accepts every one. Signatures are checked in any case, as part of
/// the cost of a handshake.
#[derive(Debug)]
struct Verifier {
    trust: Option<Trust>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        look();
        let Some(Trust { chain, given }) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // Its time was checked before that it is no end of a chain, and its name was not.
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if given.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn system_roots() -> Result<RootCertStore, Refusal> {
    let mut roots = RootCertStore::empty();
    // A root that cannot be read is one that a chain cannot end in: the handshake then says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Refusal::Unsupported(
            "TLS: no root certificates on this system (Debian: ca-certificates); \"insecure\" does without"
                .into(),
        ));
    }
    Ok(roots)
}
