/* Fuzzer: any text as a request's path, Host, Origin and last event; any bytes as the files of a run. A name that is let through has
 * no way out of the catalogue; rows that are told are JSON. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "serve/follow.h"
#include "serve/backlog.h"
#include "serve/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_request(const char *text)
{
	static struct nr_backlog backlog = { .session = 0x5f, .first = 10, .next = 20 };
	char name[NR_NAME_MAX];
	uint64_t next;
	const enum nr_route route = nr_route_find(text, name);
	assert(strlen(name) < NR_NAME_MAX);
	if (route != NR_ROUTE_BAD) {
		assert(!strstr(name, "/../") && strncmp(name, "../", 3) && strcmp(name, "..") && *name != '/' && !strchr(name, '\\'));
		for (const char *p = name; *p; p++) assert((unsigned char)*p >= 0x20);
	}
	if (nr_host_ours(text, 7317)) assert(strstr(text, ":7317"));
	nr_origin_ours(text, 7317);
	nr_fetch_ours(text);
	if (nr_backlog_after(&backlog, text, &next)) assert(next >= 10 && next <= 20);
}

static void write_file(const char *dir, const char *name, const void *bytes, size_t size, const char *how)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, how);
	if (!f) return;
	fwrite(bytes, 1, size, f);
	fclose(f);
}

/* The first half is there, the second is appended. */
static void try_run(const uint8_t *data, size_t size)
{
	static char dir[64];
	static const char *const names[] = { "config.yaml", "env.json", "metrics.csv", "events.jsonl" };
	if (!*dir) {
		snprintf(dir, sizeof dir, "/tmp/fuzz-serve-XXXXXX");
		if (!mkdtemp(dir)) return;
	}
	struct nr_served e = { .name = "run", .dir = dir };
	struct nr_news news;
	for (int half = 0; half < 2; half++) {
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			write_file(dir, names[i], half ? data + size / 2 : data, half ? size - size / 2 : size / 2, half ? "ab" : "wb");
		nr_follow_run(&e, &news);
		struct nr_str rows = { 0 };
		nr_str_printf(&rows, "[%s]", nr_str_text(&news.rows));
		json_t *o = nr_json_parse(nr_str_text(&rows), rows.len, "rows", NULL);
		assert(o);
		json_decref(o);
		nr_str_release(&rows);
		nr_news_release(&news);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text) return 0;
	memcpy(text, data, size);
	text[size] = 0;
	try_request(text);
	try_run(data, size);
	free(text);
	return 0;
}
