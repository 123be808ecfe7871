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
#include <openssl/rand.h>

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

#endif
