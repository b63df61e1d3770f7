/* What a request may ask for. Texts from outside are judged here and nowhere else; a name is only ever looked up in the catalogue,
 * never made into a path. */
#ifndef NR_SERVE_ROUTE_H
#define NR_SERVE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

enum { NR_NAME_MAX = 1024 };

enum nr_route {
	NR_ROUTE_BAD,           /* characters or segments that no name has */
	NR_ROUTE_NONE,          /* nothing lives there */
	NR_ROUTE_INDEX,
	NR_ROUTE_RUN, NR_ROUTE_STUDY, NR_ROUTE_REPORT, NR_ROUTE_DATA, NR_ROUTE_EVENTS,  /* of a name; EVENTS also without one */
	NR_ROUTE_REPORT_CSS, NR_ROUTE_UPLOT_CSS, NR_ROUTE_LIVE_CSS, NR_ROUTE_UPLOT_JS, NR_ROUTE_LIVE_JS,
	NR_ROUTE_ICON,          /* there is none, and that is no error */
};

/* path: as it came, with its escapes. name gets the decoded rest, "" if there is none. */
enum nr_route nr_route_find(const char *path, char name[NR_NAME_MAX]);
/* %41 becomes A. false: a broken escape, a control character, a backslash, no UTF-8, or too long. */
bool nr_url_decode(const char *from, char *to, size_t size);
/* localhost, 127.0.0.1 or [::1] with this port: a foreign name that resolves to loopback is refused. NULL is not fine. */
bool nr_host_ours(const char *host, int port);
/* The same after http://. NULL (a navigation has none) is fine. */
bool nr_origin_ours(const char *origin, int port);
/* Sec-Fetch-Site: what another site asked for is refused. NULL (not a browser, or an old one) is fine. */
bool nr_fetch_ours(const char *site);

#endif
