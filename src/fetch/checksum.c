/* MD5 and SHA-256: see checksum.h; computed by OpenSSL, with its plain functions: they take no memory, so they cannot fail. */
#define OPENSSL_API_COMPAT 0x10100000L
#include "fetch/checksum.h"

#include <errno.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

struct sum { enum nr_checksum kind; MD5_CTX md5; SHA256_CTX sha256; };

static void start(struct sum *s, enum nr_checksum kind)
{
	s->kind = kind;
	if (kind == NR_MD5) MD5_Init(&s->md5);
	else SHA256_Init(&s->sha256);
}

static void update(struct sum *s, const void *bytes, size_t size)
{
	if (s->kind == NR_MD5) MD5_Update(&s->md5, bytes, size);
	else SHA256_Update(&s->sha256, bytes, size);
}

static void finish(struct sum *s, char *hex)
{
	unsigned char sum[SHA256_DIGEST_LENGTH];
	const size_t n = s->kind == NR_MD5 ? MD5_DIGEST_LENGTH : SHA256_DIGEST_LENGTH;
	if (s->kind == NR_MD5) MD5_Final(sum, &s->md5);
	else SHA256_Final(sum, &s->sha256);
	for (size_t i = 0; i < n; i++) snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

void nr_checksum_bytes(const void *bytes, size_t size, enum nr_checksum kind, char *hex)
{
	struct sum s;
	start(&s, kind);
	update(&s, bytes, size);
	finish(&s, hex);
}

int nr_checksum_file(const char *path, enum nr_checksum kind, char *hex, struct nr_error *err)
{
	enum { ROOM = 1 << 18 };
	struct sum s;
	*hex = 0;
	const int fd = nr_file_open(path, err);
	if (fd < 0) return NR_EIO;
	char *room = malloc(ROOM);
	ssize_t n = -1;
	int e = room ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot check", path, "out of memory");
	start(&s, kind);
	while (!e && (n = read(fd, room, ROOM)) != 0) {
		if (n < 0 && errno == EINTR) continue;
		if (n < 0) e = nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
		else update(&s, room, (size_t)n);
	}
	free(room);
	close(fd);
	if (!e) finish(&s, hex);
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
