/* norma data make: data sets that are drawn, not downloaded. */
#include <stdio.h>
#include <string.h>

#include "data.h"
#include "data/dataset.h"
#include "data/listops.h"

static void draw(void *bar, int64_t rows) { nr_progress_update(bar, rows, "expressions"); }

/* "500:2000" as n whole numbers of at least `least`. */
static int numbers(struct cli *c, const char *flag, const char *text, int64_t least, int n, int64_t *out)
{
	char *copy = nr_arena_strdup(c->arena, text), *word;
	int found = 0;
	bool good = copy != NULL;
	while (good && (word = strsep(&copy, ":"))) good = found < n && nr_parse_int(word, &out[found]) && out[found++] >= least;
	if (good && found == n) return NR_OK;
	cli_usage(c, "--%s '%s' is not %d whole numbers with colons between them", flag, text, n);
	return nr_hint(c->err, "%s", n == 2 ? "as in --length 500:2000" : "as in --samples 96000:2000:2000");
}

int data_make(struct cli *c, const struct data *o, const char *name, const char *root)
{
	struct nr_listops_files f = { .how = { .depth = o->depth, .arguments = o->arguments, .seed = (uint64_t)o->seed } };
	int64_t length[2];
	struct nr_progress bar;
	if (strcmp(name, "listops")) {
		nr_fail(c->err, NR_ENAME, "cannot make", name, "only listops is drawn");
		return nr_hint(c->err, "norma data make listops");
	}
	if (numbers(c, "length", o->length, 0, 2, length) || numbers(c, "samples", o->samples, 0, 3, f.count)) return c->err->code;
	if (length[1] < length[0] + 2)
		return cli_usage(c, "--length %s leaves no length in between", o->length);
	f.how.shortest = length[0], f.how.longest = length[1];
	const char *dir = *o->output ? o->output : nr_arena_printf(c->arena, "%s/listops", root);
	if (!dir) return nr_fail(c->err, NR_EMEMORY, "cannot make", name, "out of memory");
	nr_progress_init(&bar, stderr, name, f.count[0] + f.count[1] + f.count[2], 0);
	f.watch = draw, f.context = &bar;
	const int code = nr_listops_write(&f, dir, c->err);
	nr_progress_release(&bar);
	if (code) return code;
	if (o->json)
		return nr_json_line(stdout, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "name", name, "dir", dir, "train",
			(json_int_t)f.count[0], "val", (json_int_t)f.count[1], "test", (json_int_t)f.count[2], "drawn",
			(json_int_t)f.drawn), c->err);
	printf("listops: %lld + %lld + %lld expressions of %lld trees, in '%s'\n", (long long)f.count[0], (long long)f.count[1],
		(long long)f.count[2], (long long)f.drawn, dir);
	if (*o->output) printf("use: --data listops:path=%s\n", dir);
	return NR_OK;
}
