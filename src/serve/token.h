/* Who may read: the printed address carries a token, which the first visit turns into a cookie. */
#ifndef NR_SERVE_TOKEN_H
#define NR_SERVE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

enum { NR_TOKEN = 33 };                     /* 128 bits in hexadecimal, and a zero */

/* false: the system gave no random bytes. */
bool nr_token_make(char token[NR_TOKEN]);
/* In a time that does not depend on where they differ. given may be NULL. */
bool nr_token_same(const char *token, const char *given);
/* Cookies of one host are shared by its ports: each server has its own name. */
const char *nr_token_cookie(int port, char *buf, size_t size);
/* With Host headers of any name (--host): a page's origin is the host that it came from. */
bool nr_origin_of_host(const char *origin, const char *host);

#endif
