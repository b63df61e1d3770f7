/* Tokens: see token.h. */
#include "serve/token.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

bool nr_token_make(char token[NR_TOKEN])
{
	uint8_t bytes[(NR_TOKEN - 1) / 2];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return false;
	for (size_t i = 0; i < sizeof bytes; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

bool nr_token_same(const char *token, const char *given)
{
	unsigned different = 0;
	if (!given || strlen(given) != NR_TOKEN - 1) return false;
	for (int i = 0; i < NR_TOKEN - 1; i++) different |= (unsigned)(unsigned char)token[i] ^ (unsigned char)given[i];
	return !different;
}

const char *nr_token_cookie(int port, char *buf, size_t size)
{
	snprintf(buf, size, "norma-%d", port);
	return buf;
}

bool nr_origin_of_host(const char *origin, const char *host)
{
	static const char scheme[] = "http://";
	if (!origin) return true;
	return host && !strncasecmp(origin, scheme, sizeof scheme - 1) && !strcasecmp(origin + sizeof scheme - 1, host);
}
