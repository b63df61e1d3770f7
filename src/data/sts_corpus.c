/* sts-senteval: every training sentence of STS-B, SICK and SentEval's transfer tasks, once: a corpus for SimCSE where Wikipedia is not at
 * hand. No pair, score or label is used. */
#include "base/mem.h"
#include "data/dataset.h"
#include "data/sentences.h"

static int open(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	struct nr_sentences *t = s->own = nr_arena_alloc(s->arena, sizeof *t);
	(void)conf;
	if (!t) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	if (nr_sentences_open(t, dir, err)) return err->code;
	s->columns = 1;
	s->count[NR_TRAIN] = t->count;
	return NR_OK;
}

static const char *text(const struct nr_source *s, enum nr_split split, int64_t i, int32_t column)
{
	(void)split, (void)column;
	return ((const struct nr_sentences *)s->own)->text[i];
}

static void close(struct nr_source *s)
{
	if (s->own) nr_sentences_release(s->own);
}

const struct nr_dataset nr_dataset_sts_senteval = {
	.name = "sts-senteval", .title = "training sentences of STS-B, SICK and SentEval", .cite = "", .licence = "research; of each set",
	.kind = NR_TEXTS, .facts = "folders sts and senteval in the data root", .open = open, .text = text, .close = close,
};
