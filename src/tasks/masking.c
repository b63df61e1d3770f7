/* See masking.h. */
#include "tasks/masking.h"

#include <math.h>

#include "models/text_heads.h"
#include "norma/nn.h"

static int64_t most_of(int64_t tokens, double share)
{
	const int64_t most = (int64_t)(share * (double)tokens + 6 * sqrt(share * (1 - share) * (double)tokens)) + 2;
	return most < tokens ? most : tokens;
}

nr_t *nr_masked_tokens(struct nr_net *n, nr_t *x, double share, struct nr_masked *m)
{
	if (!x) return NULL;
	const int64_t tokens = x->d[0] * x->d[1], K = most_of(tokens, share);
	m->index = nr_input(n, "index", NR_I32, NR_SHAPE(1, K));
	m->labels = nr_input(n, "labels", NR_I32, NR_SHAPE(1, K));
	return nr_take_tokens(n, nr_reshape(n, x, NR_SHAPE(1, tokens, x->d[2])), m->index);
}

struct nr_masker nr_masker_begin(const struct nr_tokenizer *t, double share, const struct nr_plan *plan, const struct nr_masked *m)
{
	return (struct nr_masker){ .tokenizer = t, .share = share, .index = nr_plan_data(plan, m->index), .room = m->index->d[1],
		.labels = nr_plan_data(plan, m->labels) };
}

void nr_masker_add(struct nr_masker *m, struct nr_rng rng, uint64_t first, int64_t place, int64_t n, const int32_t *ids, int32_t *masked)
{
	const int32_t mask = nr_tokenizer_special(m->tokenizer, NR_TOKEN_MASK);
	for (int64_t i = 0; i < n; i++) {
		uint32_t word[4];
		masked[i] = ids[i];
		if (m->count == m->room || nr_tokenizer_is_special(m->tokenizer, ids[i])) continue;
		nr_rng_block(rng, first + (uint64_t)i, word);
		if ((double)nr_rng_unit(word[0]) >= m->share) continue;
		m->index[m->count] = (int32_t)(place + i);
		m->labels[m->count++] = ids[i];
		const float what = nr_rng_unit(word[1]);
		if (what < 0.8f) masked[i] = mask;
		else if (what < 0.9f) masked[i] = (int32_t)((uint64_t)word[2] * (uint64_t)nr_tokenizer_size(m->tokenizer) >> 32);
	}
}

void nr_masker_end(struct nr_masker *m)
{
	for (; m->count < m->room; m->count++) {
		m->index[m->count] = 0;
		m->labels[m->count] = NR_TEXT_IGNORED;
	}
}

int nr_masking_check(const struct nr_tokenizer *t, const char *path, double share, struct nr_error *err)
{
	if (!(share > 0)) return nr_fail(err, NR_EVALUE, "bad value for", "mask", "0 leaves no word to predict");
	if (nr_tokenizer_special(t, NR_TOKEN_MASK) >= 0) return NR_OK;
	return nr_fail(err, NR_EVALUE, "cannot mask words", path, "the tokenizer has no [MASK]");
}
