/* Reference files of the tokenizers, wordpiece*.tsv (vocab.txt lies beside them) and bpe*.tsv (bpe/): every line must be written again as
 * it is there. */
#include <string.h>

#include "base/bytes.h"
#include "base/str.h"
#include "golden/tokenizer.h"
#include "token/hex.h"

enum { CUT = 24, TOLD = 5 };            /* length of the shortened pairs; differences that are told of each file */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool golden_is_tokens(const char *path)
{
	const char *name = base_name(path);
	const size_t n = strlen(name);
	return n > 4 && !strcmp(name + n - 4, ".tsv") && (!strncmp(name, "wordpiece", 9) || !strncmp(name, "bpe", 3));
}

static void check_line(struct golden_case *c, const struct nr_hex_lines *h, const char *line, size_t n, int64_t number)
{
	struct nr_str got = { 0 };
	struct nr_error err = { 0 };
	char text[1536];
	c->checks++;
	if (nr_hex_line(h, line, n, number, &got, &err)) golden_fail(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
	else if (got.len != n + 1 || memcmp(got.text, line, n)) {
		size_t same = 0;
		while (same < n && same < got.len && got.text[same] == line[same]) same++;
		if (c->failures < TOLD) golden_fail(c, NULL, "line %lld differs from column %zu on: '%.60s'", (long long)number, same + 1,
			same < got.len ? got.text + same : "");
		else c->failures++;
	}
	nr_str_release(&got);
}

static void check_lines(struct golden_case *c, struct nr_encoder *e, const struct nr_tokenizer *t, const struct nr_bytes *file)
{
	const char *s = (const char *)file->data, *end = s + file->size;
	struct nr_hex_lines h = { .encoder = e, .name = c->path };
	for (int64_t number = 1; s < end; number++) {
		const char *feed = memchr(s, '\n', (size_t)(end - s));
		const size_t n = (size_t)((feed ? feed : end) - s);
		if (number == 1) h.pair = nr_hex_is_pair(t, s, n);
		h.max_length = h.pair && nr_tokenizer_kind(t) == NR_WORDPIECE ? CUT : 0;
		check_line(c, &h, s, n, number);
		s += n + 1;
	}
	if (c->verbose && !c->failures) fprintf(c->out, "ok %s: %lld lines\n", c->path, (long long)c->checks);
}

void golden_tokens(struct golden_case *c)
{
	struct nr_error err = { 0 };
	struct nr_bytes file = { 0 };
	struct nr_tokenizer *t = NULL;
	struct nr_encoder *e = NULL;
	char text[1536];
	const char *name = base_name(c->path);
	const char *vocab = nr_arena_printf(c->arena, "%.*s%s", (int)(name - c->path), c->path, *name == 'w' ? "vocab.txt" : "bpe");
	if (!vocab || nr_bytes_map(&file, c->path, &err) || nr_tokenizer_open(&t, vocab, &err) || nr_encoder_make(&e, t, &err))
		golden_fail(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
	else
		check_lines(c, e, t, &file);
	nr_encoder_free(e);
	nr_tokenizer_close(t);
	nr_bytes_release(&file);
}
