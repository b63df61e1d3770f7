/* MD5 and SHA-256: see checksum.h; computed by OpenSSL. */
#include "fetch/checksum.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static EVP_MD_CTX *start(enum nr_checksum kind)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	if (c && EVP_DigestInit_ex(c, kind == NR_MD5 ? EVP_md5() : EVP_sha256(), NULL) == 1) return c;
	EVP_MD_CTX_free(c);
	return NULL;
}

static bool finish(EVP_MD_CTX *c, char *hex)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	const bool good = c && EVP_DigestFinal_ex(c, sum, &n) == 1;
	EVP_MD_CTX_free(c);
	*hex = 0;
	for (unsigned i = 0; good && i < n; i++) snprintf(hex + 2 * (size_t)i, 3, "%02x", sum[i]);
	return good;
}

void nr_checksum_bytes(const void *bytes, size_t size, enum nr_checksum kind, char *hex)
{
	EVP_MD_CTX *c = start(kind);
	if (c && EVP_DigestUpdate(c, bytes, size) != 1) {
		EVP_MD_CTX_free(c);
		c = NULL;
	}
	finish(c, hex);
}

int nr_checksum_file(const char *path, enum nr_checksum kind, char *hex, struct nr_error *err)
{
	enum { ROOM = 1 << 18 };
	*hex = 0;
	const int fd = nr_file_open(path, err);
	if (fd < 0) return NR_EIO;
	EVP_MD_CTX *c = start(kind);
	char *room = malloc(ROOM);
	ssize_t n = -1;
	int e = c && room ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot check", path,
		"out of memory, or %s is not supported here",
		kind ? "SHA-256" : "MD5");
	while (!e && (n = read(fd, room, ROOM)) != 0) {
		if (n < 0 && errno == EINTR) continue;
		if (n < 0) e = nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
		else if (EVP_DigestUpdate(c, room, (size_t)n) != 1) e = nr_fail(err, NR_EIO, "cannot check",
			path, "OpenSSL failed");
	}
	free(room);
	close(fd);
	if (!finish(c, hex) && !e) e = nr_fail(err, NR_EIO, "cannot check", path, "OpenSSL failed");
	return e;
}

static int expect(const char *path, enum nr_checksum kind, const char *want, struct nr_error *err)
{
	char hex[65];
	const int e = want ? nr_checksum_file(path, kind, hex, err) : NR_OK;
	if (e || !want || !strcmp(hex, want)) return e;
	return nr_fail(err, NR_EFORMAT, "wrong checksum of", path, "%s is %s instead of %s", kind == NR_MD5 ?
		"md5" : "sha256", hex, want);
}

int nr_checksum_expect(const char *path, const char *md5, const char *sha256, struct nr_error *err)
{
	const int e = expect(path, NR_SHA256, sha256, err);
	return e ? e : expect(path, NR_MD5, md5, err);
}
