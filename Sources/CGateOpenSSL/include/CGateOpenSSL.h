// OpenSSL's headers, and its macros as functions. No logic, no allocation, no policy.
#ifndef CGATE_OPENSSL_H
#define CGATE_OPENSSL_H

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>
#include <openssl/params.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

static inline EVP_PKEY *gate_ec_generate(const char *group) { return EVP_EC_gen(group); }
static inline int gate_pkey_public_key(void) { return EVP_PKEY_PUBLIC_KEY; }
static inline int gate_pkey_keypair(void) { return EVP_PKEY_KEYPAIR; }

// An OSSL_PARAM keeps its key's address, so the key has to be a constant of this file.
static inline OSSL_PARAM gate_param_ec_group(char *name) {
    return OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, name, 0);
}
static inline OSSL_PARAM gate_param_ec_point(void *bytes, size_t count) {
    return OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, bytes, count);
}
static inline OSSL_PARAM gate_param_ec_scalar(unsigned char *bytes, size_t count) {
    return OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, bytes, count);
}
static inline OSSL_PARAM gate_param_rsa_modulus(unsigned char *bytes, size_t count) {
    return OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_RSA_N, bytes, count);
}
static inline OSSL_PARAM gate_param_rsa_exponent(unsigned char *bytes, size_t count) {
    return OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_RSA_E, bytes, count);
}
static inline OSSL_PARAM gate_param_mac_digest(char *name) {
    return OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0);
}
static inline OSSL_PARAM gate_param_mac_key(void *bytes, size_t count) {
    return OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, bytes, count);
}

// The options, modes and reasons of libssl are macros of macros.
static const uint64_t gate_ssl_op_cipher_server_preference = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t gate_ssl_op_ignore_unexpected_eof = SSL_OP_IGNORE_UNEXPECTED_EOF;
static const uint64_t gate_ssl_op_no_compression = SSL_OP_NO_COMPRESSION;
static const uint64_t gate_ssl_op_no_renegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t gate_ssl_op_no_ticket = SSL_OP_NO_TICKET;
static const uint64_t gate_ssl_op_prioritize_chacha = SSL_OP_PRIORITIZE_CHACHA;
static const long gate_ssl_modes = SSL_MODE_ENABLE_PARTIAL_WRITE |
    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN;

static inline int gate_ssl_ctx_set_min_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int gate_ssl_ctx_clear_max_version(SSL_CTX *context) {
    return (int)SSL_CTX_set_max_proto_version(context, 0);
}
static inline void gate_ssl_ctx_set_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_mode(context, mode);
}
static inline void gate_ssl_ctx_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}
static inline void gate_ssl_ctx_set_read_ahead(SSL_CTX *context) {
    SSL_CTX_set_read_ahead(context, 1);
}
static inline int gate_ssl_ctx_set_groups(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_groups_list(context, list);
}
static inline int gate_ssl_ctx_set_signature_algorithms(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_sigalgs_list(context, list);
}
static inline int gate_ssl_set_host_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}
static inline int gate_err_reason(unsigned long code) { return ERR_GET_REASON(code); }

// Stacks are typed by macros.
static inline struct stack_st_X509 *gate_x509_stack_new(void) { return sk_X509_new_null(); }
static inline int gate_x509_stack_push(STACK_OF(X509) *stack, X509 *certificate) {
    return sk_X509_push(stack, certificate);
}
static inline void gate_x509_stack_free(STACK_OF(X509) *stack) {
    sk_X509_pop_free(stack, X509_free);
}
static inline int gate_names_count(const GENERAL_NAMES *names) {
    return sk_GENERAL_NAME_num(names);
}
// The name at `index` if it is a DNS name, else NULL; it lives as long as `names`.
static inline const ASN1_STRING *gate_names_dns(const GENERAL_NAMES *names, int index) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
    return name->type == GEN_DNS ? name->d.dNSName : NULL;
}

// The type of the name at `index`.
static inline int gate_names_type(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index)->type;
}
// The text of the name at `index` if it is a DNS name, a URI or an email address, else NULL; it
// lives as long as `names`.
static inline const ASN1_STRING *gate_names_text(const GENERAL_NAMES *names, int index) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
    switch (name->type) {
    case GEN_DNS: return name->d.dNSName;
    case GEN_EMAIL: return name->d.rfc822Name;
    case GEN_URI: return name->d.uniformResourceIdentifier;
    default: return NULL;
    }
}
static const unsigned long gate_name_rfc2253 = XN_FLAG_RFC2253;

#endif
