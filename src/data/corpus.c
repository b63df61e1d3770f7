/* Texts as ids: see corpus.h. */
#include "data/corpus.h"

#include <stdlib.h>
#include <string.h>

#include "norma/tokenizer.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot read the texts", NULL, "out of memory"); }

struct filling { struct nr_corpus *c; struct nr_encoder *encoder; struct nr_encode_how how; int64_t room; };

static int grow(struct filling *f, int64_t need, bool types, struct nr_error *err)
{
	struct nr_corpus *c = f->c;
	if (need <= f->room) return NR_OK;
	const int64_t room = 2 * need + 1024;
	int32_t *ids = realloc(c->ids, (size_t)room * sizeof *ids);
	if (ids) c->ids = ids;
	int32_t *of = types ? realloc(c->types, (size_t)room * sizeof *of) : NULL;
	if (of) c->types = of;
	if (!ids || (types && !of)) return out_of_memory(err);
	f->room = room;
	return NR_OK;
}

static int add(struct filling *f, int64_t at, const char *text, const char *pair, struct nr_error *err)
{
	struct nr_corpus *c = f->c;
	struct nr_encoding e;
	const int64_t sample = at / c->columns;
	if (nr_encode(f->encoder, text, strlen(text), pair, pair ? strlen(pair) : 0, &f->how, &e, err)) return err->code;
	if (grow(f, c->start[at] + e.count, pair != NULL, err)) return err->code;
	if (pair) memcpy(c->types + c->start[at], e.types, (size_t)e.count * sizeof *e.types);
	memcpy(c->ids + c->start[at], e.ids, (size_t)e.count * sizeof *e.ids);
	c->start[at + 1] = c->start[at] + e.count;
	c->cut += f->how.max_length && e.count == f->how.max_length;
	if (e.count > c->length[sample]) c->length[sample] = (int32_t)e.count;
	if (e.count > c->longest) c->longest = (int32_t)e.count;
	return NR_OK;
}

/* columns: texts of a sample that stay apart; 1 of two: they are joined. */
static int fill(struct nr_corpus *c, const struct nr_source *s, enum nr_split split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *t, int64_t max_length, int32_t columns, struct nr_error *err)
{
	*c = (struct nr_corpus){ .samples = count, .columns = columns };
	struct filling f = { .c = c, .how = { .max_length = max_length } };
	c->start = calloc((size_t)(count * columns + 1), sizeof *c->start);
	c->length = calloc((size_t)count + 1, sizeof *c->length);
	int code = c->start && c->length ? nr_encoder_make(&f.encoder, t, err) : out_of_memory(err);
	for (int64_t i = 0; i < count && !code; i++)
		for (int32_t k = 0; k < columns && !code; k++)
			code = add(&f, i * columns + k, nr_source_text(s, split, index ? index[i] : i, k),
				columns < s->columns ? nr_source_text(s, split, index ? index[i] : i, 1) : NULL, err);
	nr_encoder_free(f.encoder);
	if (code) nr_corpus_release(c);
	return code;
}

int nr_corpus_make(struct nr_corpus *c, const struct nr_source *s, enum nr_split split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *t, int64_t max_length, struct nr_error *err)
{
	return fill(c, s, split, index, count, t, max_length, s->columns, err);
}

int nr_corpus_join(struct nr_corpus *c, const struct nr_source *s, enum nr_split split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *t, int64_t max_length, struct nr_error *err)
{
	return fill(c, s, split, index, count, t, max_length, 1, err);
}

void nr_corpus_release(struct nr_corpus *c)
{
	free(c->types);
	free(c->ids);
	free(c->start);
	free(c->length);
	*c = (struct nr_corpus){ 0 };
}

const int32_t *nr_corpus_text(const struct nr_corpus *c, int64_t sample, int32_t column, int64_t *count)
{
	const int64_t at = sample * c->columns + column;
	*count = c->start[at + 1] - c->start[at];
	return c->ids + c->start[at];
}
