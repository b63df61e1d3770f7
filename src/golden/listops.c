/* See listops.h: both forms of every line must have its value, its length and the same words. */
#include "golden/listops.h"

#include <string.h>

#include "base/bytes.h"
#include "data/listops.h"

bool golden_is_listops(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const size_t n = strlen(name);
	return n > 4 && !strncmp(name, "listops", 7) && !strcmp(name + n - 4, ".tsv");
}

/* The cells of a line: where each begins, and its bytes. */
struct cells { const char *at[4]; size_t bytes[4]; int count; };

static struct cells cut(const char *line, size_t n)
{
	struct cells c = { .count = 0 };
	for (const char *end = line + n; line <= end && c.count < 4; c.count++) {
		const char *tab = memchr(line, '\t', (size_t)(end - line));
		c.at[c.count] = line;
		c.bytes[c.count] = (size_t)((tab ? tab : end) - line);
		line += c.bytes[c.count] + 1;
	}
	return c;
}

static int64_t number(const char *s, size_t n)
{
	char text[32];
	int64_t v = -1;
	snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), s);
	return nr_parse_int(text, &v) ? v : -1;
}

static void check_line(struct golden_case *c, const char *line, size_t n, int64_t at)
{
	const struct cells x = cut(line, n);
	struct nr_listops source, flat;
	struct nr_str words[2] = { { 0 } };
	struct nr_error err = { 0 };
	char text[1536];
	c->checks++;
	if (x.count != 4) golden_fail(c, NULL, "line %lld has %d columns", (long long)at, x.count);
	else if (nr_listops_read(x.at[0], x.bytes[0], &source, &words[0], c->path, at, &err) ||
		 nr_listops_read(x.at[2], x.bytes[2], &flat, &words[1], c->path, at, &err))
		golden_fail(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
	else if (source.value != number(x.at[1], x.bytes[1]) || flat.value != source.value)
		golden_fail(c, NULL, "line %lld gives %d", (long long)at, source.value);
	else if (source.length != number(x.at[3], x.bytes[3]) || flat.length != source.length)
		golden_fail(c, NULL, "line %lld has length %lld", (long long)at, (long long)source.length);
	else if (strcmp(nr_str_text(&words[0]), nr_str_text(&words[1])) != 0)
		golden_fail(c, NULL, "line %lld: the words of both forms differ", (long long)at);
	nr_str_release(&words[0]);
	nr_str_release(&words[1]);
}

void golden_listops(struct golden_case *c)
{
	struct nr_error err = { 0 };
	struct nr_bytes file = { 0 };
	char text[1536];
	if (nr_bytes_map(&file, c->path, &err)) {
		golden_fail(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
		return;
	}
	const char *s = (const char *)file.data, *end = s + file.size;
	for (int64_t line = 1; s < end; line++) {
		const char *feed = memchr(s, '\n', (size_t)(end - s));
		const size_t n = (size_t)((feed ? feed : end) - s);
		if (n && line > 1) check_line(c, s, n - (s[n - 1] == '\r'), line);
		s += n + 1;
	}
	if (!c->checks) golden_fail(c, NULL, "nothing was compared");
	if (c->verbose && !c->failures) fprintf(c->out, "ok %s: %lld lines\n", c->path, (long long)c->checks);
	nr_bytes_release(&file);
}
