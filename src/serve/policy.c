/* Content security policies: see policy.h. */
#include "serve/policy.h"

#include <stdio.h>
#include <string.h>

#include "draw/html.h"
#include "draw/web.h"
#include "fetch/checksum.h"

#define NR_POLICY_COMMON "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const char nr_live_policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
	NR_POLICY_COMMON;

/* What may be around our files inside an element: line ends and the marks that make it XML. */
enum { WRAPPING = 96 };

static bool ours(const char *text, size_t size)
{
	const char *const files[] = { nr_web_report_css, nr_web_uplot_css, nr_web_report_js, nr_web_uplot_js, nr_web_microscope_js };
	size_t known = 0;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const size_t n = strlen(files[i]);
		if (n && memmem(text, size, files[i], n)) known += n;
	}
	return known && known <= size && size - known <= WRAPPING;
}

static void add_sum(struct nr_str *s, const char *text, size_t size)
{
	char hex[65], byte[3] = "";
	unsigned char sum[32];
	unsigned value;
	nr_checksum_bytes(text, size, NR_SHA256, hex);
	if (!*hex) return;
	for (size_t i = 0; i < sizeof sum; i++) {
		memcpy(byte, hex + 2 * i, 2);
		if (sscanf(byte, "%x", &value) == 1) sum[i] = (unsigned char)value;
	}
	nr_str_add(s, " 'sha256-");
	nr_base64(s, sum, sizeof sum);
	nr_str_add(s, "'");
}

static void add_sums(struct nr_str *s, const char *page, const char *open, const char *close)
{
	for (const char *at = page; (at = strstr(at, open));) {
		const char *from = strchr(at, '>'), *end = from ? strstr(from, close) : NULL;
		if (!end) return;
		from++;
		if (ours(from, (size_t)(end - from))) add_sum(s, from, (size_t)(end - from));
		at = end;
	}
}

void nr_report_policy(struct nr_str *s, const char *page)
{
	nr_str_add(s, "default-src 'none'; img-src data:; script-src");
	add_sums(s, page, "<script", "</script>");
	nr_str_add(s, "; style-src");
	add_sums(s, page, "<style", "</style>");
	nr_str_add(s, "; " NR_POLICY_COMMON);
}
