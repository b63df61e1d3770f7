/* Texts as ids: see corpus.h. */
#include "data/corpus.h"

#include <stdlib.h>
#include <string.h>

#include "norma/tokenizer.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot read the texts", NULL, "out of memory"); }

struct filling { struct nr_corpus *c; struct nr_encoder *encoder; struct nr_encode_how how; int64_t room; };

static int add(struct filling *f, int64_t at, const char *text, struct nr_error *err)
{
	struct nr_corpus *c = f->c;
	struct nr_encoding e;
	const int64_t sample = at / c->columns;
	if (nr_encode(f->encoder, text, strlen(text), NULL, 0, &f->how, &e, err)) return err->code;
	while (c->start[at] + e.count > f->room) {
		const int64_t room = 2 * f->room + 1024;
		int32_t *ids = realloc(c->ids, (size_t)room * sizeof *ids);
		if (!ids) return out_of_memory(err);
		c->ids = ids;
		f->room = room;
	}
	memcpy(c->ids + c->start[at], e.ids, (size_t)e.count * sizeof *e.ids);
	c->start[at + 1] = c->start[at] + e.count;
	c->cut += f->how.max_length && e.count == f->how.max_length;
	if (e.count > c->length[sample]) c->length[sample] = (int32_t)e.count;
	if (e.count > c->longest) c->longest = (int32_t)e.count;
	return NR_OK;
}

int nr_corpus_make(struct nr_corpus *c, const struct nr_source *s, enum nr_split split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *t, int64_t max_length, struct nr_error *err)
{
	*c = (struct nr_corpus){ .samples = count, .columns = s->columns };
	struct filling f = { .c = c, .how = { .max_length = max_length } };
	c->start = calloc((size_t)(count * s->columns + 1), sizeof *c->start);
	c->length = calloc((size_t)count + 1, sizeof *c->length);
	int code = c->start && c->length ? nr_encoder_make(&f.encoder, t, err) : out_of_memory(err);
	for (int64_t i = 0; i < count && !code; i++)
		for (int32_t k = 0; k < s->columns && !code; k++)
			code = add(&f, i * s->columns + k, nr_source_text(s, split, index ? index[i] : i, k), err);
	nr_encoder_free(f.encoder);
	if (code) nr_corpus_release(c);
	return code;
}

void nr_corpus_release(struct nr_corpus *c)
{
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
