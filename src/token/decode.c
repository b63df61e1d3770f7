/* Ids to text. WordPiece: a blank before each token that does not continue a word, none before . ? ! and ,. BPE: the bytes that
 * the tokens' characters stand for; CLIP's words end with </w>. */
#include "base/str.h"
#include "token/bpe.h"
#include "token/unicode.h"

static void add_wordpiece(const struct nr_tokenizer *t, const char *token, size_t bytes, bool first, struct nr_str *out)
{
	const size_t prefix = strlen(t->prefix);
	if (!first && prefix && bytes >= prefix && !memcmp(token, t->prefix, prefix)) {
		nr_str_add_n(out, token + prefix, bytes - prefix);
		return;
	}
	const bool close = t->cleanup && ((bytes && strchr(".?!,", *token)) || (bytes >= 3 && !memcmp(token, "n't", 3)) ||
		(bytes >= 2 && token[0] == '\'' && (token[1] == 's' || token[1] == 'm')) ||
		(bytes >= 3 && (!memcmp(token, "'ve", 3) || !memcmp(token, "'re", 3))));
	if (!first && !close) nr_str_add(out, " ");
	nr_str_add_n(out, token, bytes);
}

/* The bytes of a token; a token with a character that stands for none is taken as it is written. */
static void add_bytes(const char *token, size_t bytes, struct nr_str *out)
{
	const size_t before = out->len;
	for (size_t i = 0; i < bytes;) {
		int32_t c;
		i += nr_utf8_get(token + i, &c);
		const int byte = bpe_byte_of_char(c);
		if (byte < 0) {
			out->len = before;
			nr_str_add_n(out, token, bytes);
			return;
		}
		nr_str_add_n(out, (const char[]){ (char)byte }, 1);
	}
}

static void add_repaired(const struct nr_str *from, struct nr_str *out)
{
	for (size_t at = 0; at < from->len;) {
		const size_t good = nr_utf8_span(from->text + at, from->len - at);
		nr_str_add_n(out, from->text + at, good);
		at += good;
		if (at == from->len) break;
		nr_str_add(out, "\xef\xbf\xbd");
		at += nr_utf8_broken(from->text + at, from->len - at);
	}
}

char *nr_decode(const struct nr_tokenizer *t, const int32_t *ids, int64_t count, bool skip_special, size_t *size)
{
	struct nr_str bytes = { 0 }, out = { 0 };
	bool first = true;
	for (int64_t i = 0; i < count; i++) {
		size_t n;
		const char *token = vocab_token(&t->vocab, ids[i], &n);
		if (!token || (skip_special && nr_tokenizer_is_special(t, ids[i]))) continue;
		const bool ends = t->bpe.clip && n > 4 && !memcmp(token + n - 4, "</w>", 4);
		if (t->kind == NR_BPE) add_bytes(token, ends ? n - 4 : n, &bytes);
		else add_wordpiece(t, token, n, first, &out);
		if (ends) nr_str_add(&bytes, " ");
		first = false;
	}
	if (t->bpe.clip && bytes.len && bytes.text[bytes.len - 1] == ' ') bytes.text[--bytes.len] = 0;
	nr_str_add(&out, "");                           /* no ids: an empty text, not none */
	add_repaired(&bytes, &out);
	out.failed |= bytes.failed;
	nr_str_release(&bytes);
	*size = out.len;
	return nr_str_take(&out);
}
