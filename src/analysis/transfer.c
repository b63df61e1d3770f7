/* Transfer tasks: rows, embeddings, features. See transfer.h. */
#include "analysis/transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/transfer_inner.h"

static const char what[] = "cannot evaluate";

/* ---- protocols ------------------------------------------------------------------------------------------------------------ */

/* A label that is out of range would be a place outside the classifier. */
static int check(const struct nr_features_of *f, int64_t least, struct nr_error *err)
{
	const char *subject = f->task ? f->task : "a transfer task";
	int64_t count = 0;
	if (f->rows < least)
		return nr_fail(err, NR_ESHAPE, what, subject,
			"it has %lld rows instead of %lld", (long long)f->rows, (long long)least);
	for (int64_t i = 0; i < f->rows; i++) {
		if (f->label[i] < 0 || f->label[i] >= f->classes)
			return nr_fail(err, NR_EVALUE, what, subject,
				"row %lld has label %d, but there are %d classes", (long long)i,
				f->label[i], f->classes);
		count += f->label[i] == f->label[0];
	}
	for (int64_t i = 0; i < f->rows * f->width; i++)
		if (!isfinite((double)f->x[i]))
			return nr_fail(err, NR_EDIVERGED, what, subject, "the features of row %lld are not finite",
				(long long)(i / f->width));
	if (count < f->rows || least < 2) return NR_OK;
	return nr_fail(err, NR_EVALUE, what, subject, "all rows are of class %d", f->label[0]);
}

int nr_transfer_folds(struct nr_transfer_score *s, const struct nr_transfer *o, const struct nr_features_of *f, struct nr_error *err)
{
	*s = (struct nr_transfer_score){ .rows = f->rows, .tests = f->rows, .f1 = NAN };
	const int code = check(f, 3 * NR_TRANSFER_FOLDS, err);
	if (code) return code;
	return o->protocol == NR_TRANSFER_CONVEX ? nr_convex_folds(s, o, f, err) : nr_senteval_folds(s, o, f, err);
}

int nr_transfer_split(struct nr_transfer_score *s, const struct nr_transfer *o, const struct nr_features_of *train,
	const struct nr_features_of *dev, const struct nr_features_of *test, struct nr_error *err)
{
	*s = (struct nr_transfer_score){ .rows = train->rows, .tests = test->rows, .folds = 1, .f1 = NAN };
	int code = check(train, 3 * NR_TRANSFER_FOLDS, err);
	if (!code && dev) code = check(dev, 1, err);
	if (!code) code = check(test, 1, err);
	if (code) return code;
	return o->protocol == NR_TRANSFER_CONVEX ? nr_convex_split(s, o, train, dev, test, err)
						 : nr_senteval_split(s, o, train, dev, test, err);
}

void nr_transfer_judge(struct nr_transfer_score *s, const struct nr_features_of *f, const int32_t *predicted)
{
	int64_t right = 0, found = 0, said = 0, there = 0;
	for (int64_t i = 0; i < f->rows; i++) {
		right += predicted[i] == f->label[i];
		said += predicted[i] == 1;
		there += f->label[i] == 1;
		found += predicted[i] == 1 && f->label[i] == 1;
	}
	s->accuracy = s->fold[0] = 100 * (double)right / (double)f->rows;
	s->f1 = f->classes != 2 ? NAN : said + there ? 200 * (double)found / (double)(said + there) : 0;
}

/* ---- rows to features ------------------------------------------------------------------------------------------------------ */

enum { PARTS = 3 };

struct rows {
	int parts;
	struct nr_tsv file[PARTS];
	int64_t *order[PARTS];                      /* of the rows */
	struct nr_features_of of[PARTS];
	int32_t *label;                             /* of all parts, one after another */
	real *x;
};

static void release(struct rows *r)
{
	for (int i = 0; i < r->parts; i++) {
		nr_tsv_release(&r->file[i]);
		free(r->order[i]);
	}
	free(r->label);
	free(r->x);
}

/* Train first; of tasks of one file that alone. */
static int open_parts(struct rows *r, const struct nr_transfer *o, const struct nr_senteval_task *task, struct nr_error *err)
{
	const char *name[PARTS] = { NULL, "test", "dev" };
	if (task->splits) name[0] = task->dev && o->sentences ? "train_sentences" : "train";
	const int parts = task->dev ? 3 : task->splits ? 2 : 1;
	int code = NR_OK;
	for (; !code && r->parts < parts; r->parts++) code = nr_senteval_open(&r->file[r->parts], o->root, task, name[r->parts], err);
	return code;
}

struct key { int64_t words[NR_TSV_TEXTS], row; double label; };

static int64_t count_words(const char *text)
{
	int64_t n = 0;
	for (; *text; n++) {
		text += strspn(text, " ");
		if (!*text) break;
		text += strcspn(text, " ");
	}
	return n;
}

static int by_words(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	for (int i = 0; i < NR_TSV_TEXTS; i++)
		if (x->words[i] != y->words[i]) return x->words[i] < y->words[i] ? -1 : 1;
	if (x->label != y->label) return x->label < y->label ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* As the files are; for SentEval's protocol by number of words, then label. */
static int64_t *order_of(const struct nr_tsv *t, bool sorted)
{
	int64_t *order = malloc((size_t)t->count * sizeof *order);
	struct key *key = sorted ? calloc((size_t)t->count, sizeof *key) : NULL;
	if (!order || (sorted && !key)) {
		free(order);
		free(key);
		return NULL;
	}
	for (int64_t i = 0; i < t->count; i++) {
		order[i] = i;
		if (!sorted) continue;
		key[i] = (struct key){ .row = i, .label = t->value[i] };
		for (int k = 0; k < NR_TSV_TEXTS && t->text[k]; k++) key[i].words[k] = count_words(t->text[k][i]);
	}
	if (sorted) qsort(key, (size_t)t->count, sizeof *key, by_words);
	for (int64_t i = 0; sorted && i < t->count; i++) order[i] = key[i].row;
	free(key);
	return order;
}

/* [|a - b|, a b] of rows 0 .. n and n .. 2n of e (2n,dim). */
static void pair_features(int64_t n, int64_t dim, const real *e, real *x)
{
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < n; i++) {
		const real *a = e + i * dim, *b = e + (n + i) * dim;
		for (int64_t k = 0; k < dim; k++) {
			x[i * 2 * dim + k] = a[k] > b[k] ? a[k] - b[k] : b[k] - a[k];
			x[i * 2 * dim + dim + k] = a[k] * b[k];
		}
	}
}

/* All texts of all parts in one call; second texts behind the first ones. */
static int embed(struct rows *r, const struct nr_senteval_task *task, const struct nr_embedder *e, struct nr_error *err)
{
	const int sides = task->pairs ? 2 : 1;
	int64_t n = 0;
	for (int i = 0; i < r->parts; i++) n += r->file[i].count;
	const char **text = malloc((size_t)(sides * n) * sizeof *text);
	real *out = malloc((size_t)(sides * n * e->dim) * sizeof *out);
	r->label = malloc((size_t)n * sizeof *r->label);
	int code = text && out && r->label ? NR_OK : nr_fail(err, NR_EMEMORY, what, task->name, "out of memory");
	for (int64_t i = 0, to = 0; !code && i < r->parts; i++)
		for (int64_t k = 0; k < r->file[i].count; k++, to++) {
			const int64_t from = r->order[i][k];
			for (int side = 0; side < sides; side++) text[side * n + to] = r->file[i].text[side][from];
			r->label[to] = (int32_t)r->file[i].value[from];
		}
	if (!code) code = e->embed(e->context, text, sides * n, out, err);
	if (!code && sides == 2) {
		r->x = malloc((size_t)(2 * n * e->dim) * sizeof *r->x);
		if (r->x) pair_features(n, e->dim, out, r->x);
		else code = nr_fail(err, NR_EMEMORY, what, task->name, "out of memory");
	} else if (!code) {
		r->x = out, out = NULL;
	}
	const int64_t width = sides * e->dim;
	for (int64_t i = 0, first = 0; !code && i < r->parts; first += r->file[i].count, i++)
		r->of[i] = (struct nr_features_of){ .task = task->name, .rows = r->file[i].count, .width = width, .classes = task->classes,
			.x = r->x + first * width, .label = r->label + first };
	free(text);
	free(out);
	return code;
}

int nr_transfer_evaluate(struct nr_transfer_score *s, const struct nr_transfer *o, const struct nr_senteval_task *task,
	const struct nr_embedder *e, struct nr_error *err)
{
	struct rows r = { 0 };
	int code = open_parts(&r, o, task, err);
	for (int i = 0; !code && i < r.parts; i++)
		if (!(r.order[i] = order_of(&r.file[i], o->protocol != NR_TRANSFER_CONVEX)))
			code = nr_fail(err, NR_EMEMORY, what, task->name, "out of memory");
	if (!code) code = embed(&r, task, e, err);
	if (!code) code = task->splits ? nr_transfer_split(s, o, &r.of[0], task->dev ? &r.of[2] : NULL, &r.of[1], err)
				       : nr_transfer_folds(s, o, &r.of[0], err);
	s->task = task;
	if (!task->pairs) s->f1 = NAN;
	release(&r);
	return code;
}
