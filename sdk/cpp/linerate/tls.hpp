// TLS settings for libraries that use OpenSSL: TLS 1.3 with AES-128-GCM only, the client verifies chain and name, no session
// is resumed. Included by programs that link OpenSSL (Debian: libssl-dev).
#pragma once

#include "spec.hpp"

#include <memory>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

namespace linerate::tls {

namespace detail {

inline void check(bool good, const char* what) {
    if (good) return;
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    throw BadSpec(std::string(what) + ": " + reason);
}

template <auto Free> struct Freed {
    template <class T> void operator()(T* p) const { Free(p); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

inline Bio pem(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), int(text.size()))); }
inline Certificate certificate(const std::string& text) {
    return Certificate(PEM_read_bio_X509(pem(text).get(), nullptr, nullptr, nullptr));
}

inline void configure(SSL_CTX* context) {
    check(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) && SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"),
          "OpenSSL has no TLS 1.3 with AES-128-GCM");
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

} // namespace detail

inline void configure_server(SSL_CTX* context, const Spec& spec) {
    need(!spec.tls.certificate.empty() && !spec.tls.key.empty(), "\"tls.certificate\" or \"tls.key\" is missing");
    detail::configure(context);
    auto leaf = detail::certificate(spec.tls.certificate);
    detail::Key key(PEM_read_bio_PrivateKey(detail::pem(spec.tls.key).get(), nullptr, nullptr, nullptr));
    detail::check(leaf && SSL_CTX_use_certificate(context, leaf.get()) == 1, "\"tls.certificate\"");
    detail::check(key && SSL_CTX_use_PrivateKey(context, key.get()) == 1, "\"tls.key\"");
}

inline void configure_client(SSL_CTX* context, const Spec& spec) {
    need(!spec.tls.authority.empty() && !spec.tls.name.empty(), "\"tls.authority\" or \"tls.name\" is missing");
    detail::configure(context);
    auto root = detail::certificate(spec.tls.authority);
    detail::check(root && X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root.get()) == 1, "\"tls.authority\"");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
}

// Before a client's handshake: the server name (SNI), which the certificate must have.
inline void expect_name(SSL* session, const Spec& spec) {
    SSL_set_tlsext_host_name(session, spec.tls.name.c_str());
    SSL_set1_host(session, spec.tls.name.c_str());
}

// After the handshake: version, cipher and library, as in `done`.
inline std::string describe(const SSL* session) {
    auto library = std::string(" OpenSSL ") + OpenSSL_version(OPENSSL_VERSION_STRING);
    return std::string(SSL_get_version(session)) + " " + SSL_get_cipher_name(session) + library;
}

} // namespace linerate::tls
