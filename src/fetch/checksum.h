/* MD5 and SHA-256 of bytes and files, as lower case hexadecimal digits. MD5 tells a broken copy, not a forged one: the
 * published lists of data sets have no better. */
#ifndef NR_CHECKSUM_H
#define NR_CHECKSUM_H

#include <stddef.h>

#include "norma/err.h"

enum nr_checksum { NR_MD5, NR_SHA256 };

/* hex has room for 33 characters (MD5) or 65. "" if the system has no such sum (FIPS mode). */
void nr_checksum_bytes(const void *, size_t, enum nr_checksum, char *hex);
int nr_checksum_file(const char *path, enum nr_checksum, char *hex, struct nr_error *);
/* Compares with what is expected; a sum that is NULL is not asked for. */
int nr_checksum_expect(const char *path, const char *md5, const char *sha256, struct nr_error *);

#endif
