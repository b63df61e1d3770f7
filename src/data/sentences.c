/* Sentences of the training sets. See sentences.h. */
#include "data/sentences.h"

#include <stdlib.h>
#include <string.h>

#include "base/equal.h"
#include "data/senteval.h"
#include "data/sts.h"

enum { FILES = NR_SENTEVAL_TASKS + 2 };

static const char what[] = "cannot list sentences";

struct all { struct nr_tsv file[FILES]; };

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

/* Keeps the first of equal texts, and none that is empty. */
static int keep_different(struct nr_sentences *s, const char *root, struct nr_error *err)
{
	const size_t n = (size_t)s->count;
	struct nr_piece *piece = malloc(n * sizeof *piece + 1);
	int32_t *first = malloc(n * sizeof *first + 1);
	for (size_t i = 0; piece && i < n; i++) piece[i] = (struct nr_piece){ s->text[i], strlen(s->text[i]) };
	const bool failed = !piece || !first || nr_equal_pieces(piece, s->count, first) < 0;
	s->count = 0;
	for (size_t i = 0; !failed && i < n; i++)
		if (first[i] == (int32_t)i && piece[i].bytes) s->text[s->count++] = s->text[i];
	free(piece);
	free(first);
	return failed ? nr_fail(err, NR_EMEMORY, what, root, "out of memory") : NR_OK;
}

int nr_sentences_open(struct nr_sentences *s, const char *root, struct nr_error *err)
{
	struct all *a = calloc(1, sizeof *a);
	*s = (struct nr_sentences){ .memory = a };
	int code = a ? open_files(a, root, err) : nr_fail(err, NR_EMEMORY, what, root, "out of memory");
	int64_t rows = 0;
	for (int i = 0; !code && i < FILES; i++) rows += a->file[i].count * (a->file[i].text[1] ? 2 : 1);
	if (!code && !(s->text = malloc((size_t)rows * sizeof *s->text + 1))) code = nr_fail(err, NR_EMEMORY, what, root, "out of memory");
	for (int i = 0; !code && i < FILES; i++)
		for (int64_t r = 0; r < a->file[i].count; r++)
			for (int side = 0; side < NR_TSV_TEXTS && a->file[i].text[side]; side++)
				s->text[s->count++] = a->file[i].text[side][r];
	return code ? code : keep_different(s, root, err);
}
