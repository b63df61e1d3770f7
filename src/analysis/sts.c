/* Semantic textual similarity. See sts.h. */
#include "analysis/sts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/spearman.h"

static const char what[] = "cannot evaluate";

void nr_sts_cosines(int64_t n, int64_t dim, const real *a, const real *b, double *out)
{
#pragma omp parallel for schedule(static) if (n * dim > 20000)
	for (int64_t i = 0; i < n; i++) {
		const real *x = a + i * dim, *y = b + i * dim;
		double xx = 0, yy = 0, xy = 0;
		for (int64_t k = 0; k < dim; k++) {
			xx += (double)x[k] * (double)x[k];
			yy += (double)y[k] * (double)y[k];
			xy += (double)x[k] * (double)y[k];
		}
		out[i] = xx == 0 || yy == 0 ? 0 : (double)(float)(xy / sqrt(xx * yy));
	}
}

/* All pairs of a task, the subsets one after another. */
struct pairs {
	int files;
	struct nr_tsv file[NR_STS_SUBSETS];
	int64_t first[NR_STS_SUBSETS + 1];
	double *score, *cosine;
};

static void release(struct pairs *p)
{
	for (int i = 0; i < p->files; i++) nr_tsv_release(&p->file[i]);
	free(p->score);
	free(p->cosine);
}

/* subset ends with NULL */
static int open_pairs(struct pairs *p, const struct nr_sts_task *task, const char *const *subset, const char *root, bool raw,
	struct nr_error *err)
{
	int code = NR_OK;
	for (; !code && subset[p->files]; p->files++) {
		code = nr_sts_open(&p->file[p->files], root, raw, task, subset[p->files], err);
		p->first[p->files + 1] = p->first[p->files] + p->file[p->files].count;
	}
	return code;
}

/* Every sentence of both sides in one call. */
static int embed(struct pairs *p, const struct nr_sts_task *task, const struct nr_embedder *e, struct nr_error *err)
{
	const int64_t n = p->first[p->files];
	const char **text = malloc((size_t)(2 * n) * sizeof *text);
	real *out = malloc((size_t)(2 * n * e->dim) * sizeof *out);
	p->score = malloc((size_t)n * sizeof *p->score);
	p->cosine = malloc((size_t)n * sizeof *p->cosine);
	int code = text && out && p->score && p->cosine ? NR_OK : nr_fail(err, NR_EMEMORY, what, task->name, "out of memory");
	for (int f = 0; !code && f < p->files; f++) {
		const struct nr_tsv *t = &p->file[f];
		const size_t count = (size_t)t->count, first = (size_t)p->first[f];
		memcpy(text + first, t->text[0], count * sizeof *text);
		memcpy(text + (size_t)n + first, t->text[1], count * sizeof *text);
		memcpy(p->score + first, t->value, count * sizeof *p->score);
	}
	if (!code) code = e->embed(e->context, text, 2 * n, out, err);
	if (!code) nr_sts_cosines(n, e->dim, out, out + n * e->dim, p->cosine);
	for (int64_t i = 0; !code && i < n; i++)
		if (!isfinite(p->cosine[i]))
			code = nr_fail(err, NR_EDIVERGED, what, task->name, "pair %lld: an embedding is not finite, '%.60s' or '%.60s'",
				(long long)i, text[i], text[n + i]);
	free(text);
	free(out);
	return code;
}

static int correlate(const struct pairs *p, int64_t first, int64_t end, struct nr_correlation *c, struct nr_error *err)
{
	const int code = nr_spearman_by_chance(end - first, p->cosine + first, p->score + first, &c->spearman, err);
	c->spearman *= 100;
	c->pearson = 100 * nr_pearson(end - first, p->cosine + first, p->score + first);
	return code;
}

static int summarise(struct nr_sts_score *s, const struct pairs *p, const char *const *name, struct nr_error *err)
{
	const int from = s->task->splits ? p->files - 1 : 0;    /* of tasks with splits the last, test, alone */
	int code = correlate(p, p->first[from], p->first[p->files], &s->all, err);
	s->pairs = p->first[p->files] - p->first[from];
	s->subsets = p->files;
	for (int i = 0; !code && i < p->files; i++) {
		struct nr_sts_subset *b = &s->subset[i];
		*b = (struct nr_sts_subset){ .name = name[i], .pairs = p->file[i].count };
		code = correlate(p, p->first[i], p->first[i + 1], &b->with, err);
		if (i < from) continue;
		const double share = 1. / (p->files - from), weight = (double)b->pairs / (double)s->pairs;
		s->mean.spearman += share * b->with.spearman;
		s->mean.pearson += share * b->with.pearson;
		s->wmean.spearman += weight * b->with.spearman;
		s->wmean.pearson += weight * b->with.pearson;
	}
	return code;
}

int nr_sts_evaluate(struct nr_sts_score *s, const struct nr_sts_task *task, const struct nr_embedder *e, const char *root, bool raw,
	struct nr_error *err)
{
	const char *const *subset = task->subset + (task->splits ? 1 : 0);      /* not train */
	struct pairs p = { 0 };
	*s = (struct nr_sts_score){ .task = task };
	int code = open_pairs(&p, task, subset, root, raw, err);
	if (!code) code = embed(&p, task, e, err);
	if (!code) code = summarise(s, &p, subset, err);
	release(&p);
	return code;
}

int nr_sts_dev(double *spearman, const struct nr_sts_task *task, const struct nr_embedder *e, const char *root, bool raw,
	struct nr_error *err)
{
	static const char *const dev[] = { "dev", NULL };
	struct pairs p = { 0 };
	struct nr_correlation c = { 0 };
	if (!task->splits) return nr_fail(err, NR_EVALUE, what, task->name, "it has no dev split");
	int code = open_pairs(&p, task, dev, root, raw, err);
	if (!code) code = embed(&p, task, e, err);
	if (!code) code = correlate(&p, 0, p.first[1], &c, err);
	*spearman = c.spearman;
	release(&p);
	return code;
}
