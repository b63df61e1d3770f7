/* Sentences of the training sets. See sentences.h. */
#include "data/sentences.h"

#include <stdlib.h>
#include <string.h>

#include "data/senteval.h"
#include "data/sts.h"

enum { FILES = NR_SENTEVAL_TASKS + 2, TABLE = 1 << 10 };   /* TABLE: least size of the set of texts seen */

struct set { int64_t *slot, room; };                /* slot: 1 + place in the list, 0: free; room a power of two */
struct all { struct nr_tsv file[FILES]; };

static uint64_t hash(const char *text)              /* FNV-1a */
{
	uint64_t h = 0xcbf29ce484222325;
	for (; *text; text++) h = (h ^ (uint8_t)*text) * 0x100000001b3;
	return h;
}

/* Where the text is, or the free place for it. */
static int64_t *find(const struct set *s, const char *const *list, const char *text)
{
	int64_t at = (int64_t)(hash(text) & (uint64_t)(s->room - 1));
	while (s->slot[at] && strcmp(list[s->slot[at] - 1], text)) at = (at + 1) & (s->room - 1);
	return &s->slot[at];
}

static int open_files(struct all *a, const char *root, struct nr_error *err)
{
	int n = 0, code = NR_OK;
	for (int i = 0; !code && i < NR_STS_TASKS; i++)
		if (nr_sts_tasks[i].splits) code = nr_sts_open(&a->file[n++], root, false, &nr_sts_tasks[i], "train", err);
	for (int i = 0; !code && i < NR_SENTEVAL_TASKS; i++) {
		const struct nr_senteval_task *t = &nr_senteval_tasks[i];
		code = nr_senteval_open(&a->file[n++], root, t, !t->splits ? NULL : t->dev ? "train_sentences" : "train", err);
	}
	return code;
}

void nr_sentences_release(struct nr_sentences *s)
{
	struct all *a = s->memory;
	for (int i = 0; a && i < FILES; i++) nr_tsv_release(&a->file[i]);
	free(a);
	free(s->text);
	*s = (struct nr_sentences){ 0 };
}

int nr_sentences_open(struct nr_sentences *s, const char *root, struct nr_error *err)
{
	struct all *a = calloc(1, sizeof *a);
	*s = (struct nr_sentences){ .memory = a };
	int code = a ? open_files(a, root, err) : nr_fail(err, NR_EMEMORY, "cannot list sentences", root, "out of memory");
	int64_t rows = 0;
	for (int i = 0; !code && i < FILES; i++) rows += a->file[i].count * (a->file[i].text[1] ? 2 : 1);
	struct set set = { .room = TABLE };
	while (set.room < 2 * rows) set.room *= 2;
	if (!code) {
		s->text = malloc((size_t)rows * sizeof *s->text + 1);
		set.slot = calloc((size_t)set.room, sizeof *set.slot);
		if (!s->text || !set.slot) code = nr_fail(err, NR_EMEMORY, "cannot list sentences", root, "out of memory");
	}
	for (int i = 0; !code && i < FILES; i++)
		for (int64_t r = 0; r < a->file[i].count; r++)
			for (int side = 0; side < NR_TSV_TEXTS && a->file[i].text[side]; side++) {
				const char *text = a->file[i].text[side][r];
				int64_t *slot = find(&set, s->text, text);
				if (*slot || !*text) continue;
				s->text[s->count++] = text;
				*slot = s->count;
			}
	free(set.slot);
	return code;
}
