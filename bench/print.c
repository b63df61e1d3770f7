/* Records for people: one row for us, one for each peer, with a bar as long as the step. */
#include <string.h>

#include "bench.h"

enum { BAR = 24 };

static double num(const json_t *r, const char *key) { return json_number_value(json_object_get(r, key)); }

static void bar(char *out, double ms, double longest)
{
	const int n = longest > 0 ? (int)(ms / longest * BAR + .5) : 0;
	memset(out, '#', (size_t)(n > BAR ? BAR : n));
	out[n > BAR ? BAR : n] = 0;
}

void bench_print_header(FILE *f)
{
	fprintf(f, "%-22s %-14s %9s %9s %9s  %-*s %6s %9s %9s %9s\n", "case", "", "ms", "best", "p95", BAR, "", "ratio",
		"of peak", "of SGEMM", "peak MiB");
}

void bench_print(FILE *f, const json_t *r)
{
	const json_t *peers = json_object_get(r, "peers");
	const char *mode;
	json_t *peer;
	double longest = num(r, "ms");
	char text[BAR + 1];
	json_object_foreach((json_t *)(uintptr_t)peers, mode, peer)
		if (num(peer, "ms") > longest) longest = num(peer, "ms");
	bar(text, num(r, "ms"), longest);
	fprintf(f, "%-22s %-14s %9.2f %9.2f %9.2f  %-*s %6s %7.0f %% %7.0f %% %9.0f\n",
		json_string_value(json_object_get(r, "case")), "norma", num(r, "ms"), num(r, "ms_best"), num(r, "ms_p95"), BAR,
		peers ? text : "", "", 100 * num(r, "share_of_peak"), 100 * num(r, "share_of_ref"), num(r, "peak_rss_mib"));
	json_object_foreach((json_t *)(uintptr_t)peers, mode, peer) {
		const char *won = json_string_value(json_object_get(peer, "candidate"));
		bar(text, num(peer, "ms"), longest);
		fprintf(f, "%-22s %-14s %9.2f %9.2f %9.2f  %-*s %5.2fx %9s %9s %9.0f\n", won ? won : "", bench_peer_title(mode),
			num(peer, "ms"), num(peer, "ms_best"), num(peer, "ms_p95"), BAR, text, num(peer, "ratio"), "", "",
			num(peer, "rss_mib"));
	}
	fflush(f);
}
