/* norma-golden-model-1, task embed: embeddings of real sentences by a real model, which NORMA_MINILM names (its folder or its
 * weights); skipped without it. The tokens' numbers stand in the .tsv beside the file: hex of the text, ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "golden/text.h"
#include "infer/weights.h"
#include "norma/infer.h"
#include "norma/nn.h"

struct lines { int64_t count, longest; int32_t **ids, *length; };

static char *read_text(struct golden_case *c, const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	if (!f || fstat(fileno(f), &st)) golden_stop(c, NULL, "cannot read '%s': %s", path, strerror(errno));
	char *text = golden_alloc(c, st.st_size + 1, 1);
	const size_t got = fread(text, 1, (size_t)st.st_size, f);
	fclose(f);
	text[got] = 0;
	return text;
}

static struct lines read_lines(struct golden_case *c, int64_t count)
{
	const size_t stem = strlen(c->path) - strlen(".safetensors");
	char *s = read_text(c, nr_arena_printf(c->arena, "%.*s.tsv", (int)stem, c->path));
	struct lines l = { .ids = golden_alloc(c, count, sizeof *l.ids), .length = golden_alloc(c, count, sizeof *l.length) };
	for (; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		golden_expect(c, l.count < count, "more lines than embeddings");
		const char *end = s + strcspn(s, "\n"), *at = memchr(s, '\t', (size_t)(end - s));
		if (!at) golden_stop(c, NULL, "line %lld has no ids", (long long)l.count + 1);
		int32_t *ids = l.ids[l.count] = golden_alloc(c, end - at, sizeof *ids), n = 0;
		for (char *next; at < end; at = next) {
			ids[n] = (int32_t)strtol(at, &next, 10);
			if (next == at) break;
			n++;
		}
		l.length[l.count++] = n;
		if (n > l.longest) l.longest = n;
	}
	golden_expect(c, l.count == count, "fewer lines than embeddings");
	return l;
}

/* The checkpoint: the variable names it, or the folder that it lies in. NULL: not set. */
static const char *model_path(struct golden_case *c)
{
	const char *path = getenv("NORMA_MINILM");
	return path && *path ? nr_weights_path(path, c->arena) : NULL;
}

enum { BATCH = 10 };
struct outputs { nr_t *mean, *first, *pooler; };
struct results { real *mean, *unit, *first, *pooler; };

static void keep(struct results *r, const struct nr_plan *p, const struct outputs *o, int64_t from, int64_t rows, int64_t C)
{
	const size_t bytes = (size_t)(rows * C) * sizeof(real);
	memcpy(r->mean + from * C, nr_plan_data(p, o->mean), bytes);
	memcpy(r->first + from * C, nr_plan_data(p, o->first), bytes);
	memcpy(r->pooler + from * C, nr_plan_data(p, o->pooler), bytes);
	for (int64_t i = from; i < from + rows; i++) {
		double square = 0;
		for (int64_t k = 0; k < C; k++) square += (double)r->mean[i * C + k] * (double)r->mean[i * C + k];
		for (int64_t k = 0; k < C; k++) r->unit[i * C + k] = (real)((double)r->mean[i * C + k] / nr_sqrt((real)square));
	}
}

static void embed(struct golden_case *c, const struct nr_weights *w, const struct lines *l, struct results *r)
{
	struct nr_error err = { 0 };
	char line[1024];
	struct nr_net *n = nr_net_make(w->store);
	struct nr_plan *p = NULL;
	const int64_t T = l->longest, C = nr_model_int(&w->model, "dim");
	struct nr_text t = { 0 };
	if (!n) golden_stop(c, NULL, "out of memory");
	int code = nr_norms_use(n, w->norms, &w->model.norms, &err);
	const struct nr_inputs in = { .ids = nr_input(n, "ids", NR_I32, NR_SHAPE(BATCH, T)),
		.valid = nr_input(n, "valid", NR_I32, NR_SHAPE(BATCH)) };
	if (!code) nr_text_encode(n, &w->model, &in, &t);
	const struct outputs o = { .mean = nr_tap(n, "mean", nr_text_pool(n, &t, NR_TEXT_AVG)),
		.first = nr_tap(n, "first", nr_first_token(n, t.tokens)),
		.pooler = nr_tap(n, "pooler", nr_text_pooler(n, t.tokens)) };
	if (!code) code = nr_plan_make(&p, n, o.pooler, 0, &err);
	for (int64_t from = 0; !code && from < l->count; from += BATCH) {
		const int64_t rows = l->count - from < BATCH ? l->count - from : BATCH;
		int32_t *ids = memset(nr_plan_data(p, in.ids), 0, (size_t)(BATCH * T) * sizeof *ids), *valid = nr_plan_data(p, in.valid);
		for (int64_t b = 0; b < BATCH; b++) {
			valid[b] = b < rows ? l->length[from + b] : 1;
			if (b < rows) memcpy(ids + b * T, l->ids[from + b], (size_t)valid[b] * sizeof *ids);
		}
		nr_plan_run(p, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
		keep(r, p, &o, from, rows, C);
	}
	nr_plan_free(p);
	nr_net_free(n);
	if (code) golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
}

int golden_text_minilm(struct golden_case *c)
{
	const char *path = model_path(c);
	if (!path) {
		c->skipped = "NORMA_MINILM does not name the real model";
		return GOLDEN_SKIP;
	}
	struct nr_weights *w = NULL;
	struct nr_error err = { 0 };
	char line[1024];
	const int64_t count = golden_ints(c, 1, "in.num_tokens").n;
	const struct lines l = read_lines(c, count);
	if (nr_weights_open(&w, path, NULL, &err))
		golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	const int64_t C = nr_model_int(&w->model, "dim");
	real *all = golden_reals(c, 4 * count * C);
	struct results r = { all, all + count * C, all + 2 * count * C, all + 3 * count * C };
	embed(c, w, &l, &r);
	nr_weights_close(w);
	golden_check_ints(c, l.length, count, "in.num_tokens");
	golden_check(c, "out", r.mean, count * C, "out.mean_pooled");
	golden_check(c, "out", r.unit, count * C, "out.normalized");
	golden_check(c, "out", r.first, count * C, "out.cls_hidden");
	golden_check(c, "out", r.pooler, count * C, "out.pooler_output");
	return GOLDEN_RAN;
}
