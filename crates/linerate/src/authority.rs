//! The certificates of a trial or of `linerate serve`, for layers with TLS: a new CA and one certificate
//! signed by it.
//!
//! They are made anew each time and passed in the specs, so no secret is on disk and the machine's trust
//! store is not used.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use linerate_contract::{Layer, Role, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::net::IpAddr;

/// The name in the certificates of servers; `.test` is reserved (RFC 2606).
const NAME: &str = "linerate.test";
/// The name of the CA.
const ISSUER: &str = "linerate, made for one run";
/// A CA and a server certificate; EC P-256, as on most web servers.
pub(crate) struct Authority {
    authority: String,
    certificate: String,
    key: String,
}

impl Authority {
    /// `None` if the layer has no TLS.
    ///
    /// # Errors
    /// The system's random numbers are not available.
    pub(crate) fn for_layer(layer: Layer) -> Result<Option<Self>, String> {
        if !layer.has_tls() {
            return Ok(None);
        }
        Self::new(vec![NAME.to_owned()]).map(Some)
    }

    /// A certificate for a server at `address`: valid for it and for every name of the loopback.
    ///
    /// # Errors
    /// The system's random numbers are not available.
    pub(crate) fn for_address(address: IpAddr) -> Result<Self, String> {
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(Into::into).into();
        if !address.is_unspecified() && !address.is_loopback() {
            names.push(address.to_string());
        }
        Self::new(names)
    }

    /// True for a text of [`Self::pem`], of this process or another one, and nothing else.
    pub(crate) fn is_made_here(text: &str) -> bool {
        let text = text.trim();
        let body = text.strip_prefix("-----BEGIN CERTIFICATE-----");
        let body = body.and_then(|rest| rest.strip_suffix("-----END CERTIFICATE-----"));
        let base64 = body.map(|body| body.split_whitespace().collect::<String>());
        let der = base64.and_then(|text| STANDARD.decode(text).ok());
        // Its name is there twice: it is its own issuer.
        der.is_some_and(|der| {
            der.windows(ISSUER.len()).filter(|part| *part == ISSUER.as_bytes()).count() == 2
        })
    }

    /// The CA certificate that clients must trust, as PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.authority
    }

    fn new(names: Vec<String>) -> Result<Self, String> {
        Self::sign(names).map_err(|e| format!("making a certificate: {e}"))
    }

    fn sign(names: Vec<String>) -> Result<Self, rcgen::Error> {
        let mut issuer = CertificateParams::new([])?;
        issuer.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        issuer.distinguished_name.push(DnType::CommonName, ISSUER);
        let issuer = CertifiedIssuer::self_signed(issuer, KeyPair::generate()?)?;
        let first = names.first().cloned().unwrap_or_default();
        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name.push(DnType::CommonName, first);
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &issuer)?.pem();
        Ok(Self { authority: issuer.pem(), certificate, key: key.serialize_pem() })
    }

    /// The part that this role needs.
    pub(crate) fn for_role(&self, role: Role) -> Option<Tls> {
        match role {
            Role::Server => {
                let (certificate, key) = (self.certificate.clone(), self.key.clone());
                Some(Tls { certificate, key, ..Tls::default() })
            }
            Role::Client => {
                Some(Tls { authority: self.authority.clone(), name: NAME.into(), ..Tls::default() })
            }
            Role::Relay | Role::Describe => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_that_ends_tls_has_the_same_layer_without_it_behind_it() {}

    #[test]
    fn only_a_ca_certificate_of_serve_is_made_here() {
        let made = Authority::for_layer(Layer::Tls).unwrap().unwrap();
        assert!(Authority::is_made_here(made.pem()));
        let two = made.pem().repeat(2);
        let with_key = made.pem().to_owned() + &made.key;
        for other in ["", "text", &made.certificate, &made.key, &two, &with_key] {
            assert!(!Authority::is_made_here(other), "{other}");
        }
    }

    #[test]
    fn a_server_gets_the_key_and_a_client_the_ca_certificate() {
        assert!(Authority::for_layer(Layer::Tcp).unwrap().is_none());
        let made = Authority::for_layer(Layer::Wss).unwrap().unwrap();
        let (server, client) = (made.for_role(Role::Server).unwrap(), made.for_role(Role::Client).unwrap());
        assert!(server.key.starts_with("-----BEGIN PRIVATE KEY-----") && server.authority.is_empty());
        assert!(client.authority.starts_with("-----BEGIN CERTIFICATE-----") && client.key.is_empty());
        assert!([&server.certificate, &server.key, &client.authority].iter().all(|pem| pem.len() < 2048));
        assert_ne!(made.key, Authority::for_layer(Layer::Tls).unwrap().unwrap().key);
    }
}
