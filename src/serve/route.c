/* Routes and the checks of requests: see route.h. */
#include "serve/route.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9') return c - '0';
	if (c >= 'a' && c <= 'f') return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool nr_url_decode(const char *from, char *to, size_t size)
{
	size_t n = 0;
	for (; *from; from++) {
		int c = (unsigned char)*from;
		if (c == '%') {
			const int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
			if (low < 0) return false;
			c = 16 * high + low;
			from += 2;
		}
		if (c < 0x20 || c == 0x7F || c == '\\' || n + 1 >= size) return false;
		to[n++] = (char)c;
	}
	to[n] = 0;
	return nr_utf8_valid(to, n);
}

/* No part may be empty or a step upwards. */
static bool plain_parts(const char *name)
{
	for (const char *part = name;; part++) {
		const size_t n = strcspn(part, "/");
		if (n == 0 || (n == 1 && *part == '.') || (n == 2 && part[0] == '.' && part[1] == '.')) return false;
		part += n;
		if (!*part) return true;
	}
}

enum nr_route nr_route_find(const char *path, char name[NR_NAME_MAX])
{
	static const struct { const char *text; enum nr_route route; } whole[] = {
		{ "/", NR_ROUTE_INDEX }, { "/events", NR_ROUTE_EVENTS }, { "/report.css", NR_ROUTE_REPORT_CSS },
		{ "/uplot.css", NR_ROUTE_UPLOT_CSS }, { "/live.css", NR_ROUTE_LIVE_CSS }, { "/uplot.js", NR_ROUTE_UPLOT_JS },
		{ "/live.js", NR_ROUTE_LIVE_JS }, { "/favicon.ico", NR_ROUTE_ICON },
	}, named[] = {
		{ "/run/", NR_ROUTE_RUN }, { "/study/", NR_ROUTE_STUDY }, { "/report/", NR_ROUTE_REPORT }, { "/data/", NR_ROUTE_DATA },
		{ "/events/", NR_ROUTE_EVENTS },
	};
	char text[NR_NAME_MAX];
	name[0] = 0;
	if (!nr_url_decode(path, text, sizeof text) || text[0] != '/') return NR_ROUTE_BAD;
	if (text[1] && !plain_parts(text + 1)) return NR_ROUTE_BAD;
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		if (!strcmp(text, whole[i].text)) return whole[i].route;
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		const size_t n = strlen(named[i].text);
		if (strncmp(text, named[i].text, n)) continue;
		memcpy(name, text + n, strlen(text + n) + 1);
		return named[i].route;
	}
	return NR_ROUTE_NONE;
}

bool nr_host_ours(const char *host, int port)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
	char digits[16];
	snprintf(digits, sizeof digits, ":%d", port);
	for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
		const size_t n = strlen(names[i]);
		if (strncasecmp(host, names[i], n)) continue;
		if (!strcmp(host + n, digits) || (port == 80 && !host[n])) return true;
	}
	return false;
}

bool nr_origin_ours(const char *origin, int port)
{
	static const char scheme[] = "http://";
	return !origin || (!strncasecmp(origin, scheme, sizeof scheme - 1) && nr_host_ours(origin + sizeof scheme - 1, port));
}

bool nr_fetch_ours(const char *site) { return !site || !strcmp(site, "same-origin") || !strcmp(site, "none"); }
