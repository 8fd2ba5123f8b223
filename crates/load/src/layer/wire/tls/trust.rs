//! Whom a client trusts, who it is itself, and why a handshake fails.

use super::config::{bad, certified};
use crate::refusal::Refusal;
use linerate_contract::{Tls, TlsFailure};
use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error,
    RootCertStore, SignatureScheme,
};
use std::sync::Arc;

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

/// The reason that a user can do something about, where there is one.
pub(super) fn reason(error: &Error) -> TlsFailure {
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
            _ => TlsFailure::Other(error.to_string()),
        },
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown,
        ) => TlsFailure::ClientCertificate,
        Error::InvalidMessage(_) => TlsFailure::NotTls,
        _ => TlsFailure::Other(error.to_string()),
    }
}

/// Whom to trust: this authority (PEM), or whom the system trusts if there is none.
pub(super) fn roots(authority: &str) -> Result<RootCertStore, Refusal> {
    if authority.is_empty() {
        return system_roots();
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        let certificate = certificate.map_err(|e| bad("authority", e))?;
        roots.add(certificate).map_err(|e| bad("authority", e))?;
    }
    if roots.is_empty() { Err(bad("authority", "there is no certificate in it")) } else { Ok(roots) }
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

/// Accepts every certificate. Signatures are still checked, as part of the cost of a handshake.
#[derive(Debug)]
pub(super) struct Anyone(Arc<CryptoProvider>);

impl Anyone {
    pub(super) fn by(provider: Arc<CryptoProvider>) -> Arc<Self> {
        Arc::new(Self(provider))
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
