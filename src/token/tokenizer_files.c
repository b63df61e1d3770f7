/* vocab.txt (one token a line, its number is the id), vocab.json (token to id) and merges.txt (two tokens a line, by rank). */
#include "base/bytes.h"
#include "base/str.h"
#include "token/tokenizer_inner.h"

static size_t line_bytes(const char *s, const char *end)
{
	const char *feed = memchr(s, '\n', (size_t)(end - s));
	return (size_t)((feed ? feed : end) - s);
}

static int add_line(struct nr_tokenizer *t, const char *path, const char *s, size_t n, int64_t id, struct nr_error *err)
{
	const long long line = (long long)id + 1;
	if (!n) return nr_fail(err, NR_EFORMAT, "cannot read", path, "line %lld is empty", line);
	if (memchr(s, 0, n) || !nr_utf8_valid(s, n)) return nr_fail(err, NR_EFORMAT, "cannot read", path,
		"line %lld is not UTF-8 text", line);
	const int code = vocab_add(&t->vocab, s, n, id);
	if (code == NR_EMEMORY) return tokenizer_memory(t, err);
	if (!code) return NR_OK;
	const int32_t before = vocab_find(&t->vocab, s, n);
	if (before < 0) return nr_fail(err, NR_ELIMIT, "cannot read", path, "more than %d tokens", (int)VOCAB_MOST);
	nr_fail(err, NR_EFORMAT, "cannot read", path, "line %lld: '%.*s' is already token %d (line %d)", line,
		n > 64 ? 64 : (int)n, s, (int)before,
		(int)before + 1);
	return nr_hint(err,
		"each token must be on its own line, whose number is its id: the file is damaged or was edited");
}

static int read_lines(struct nr_tokenizer *t, const char *path, struct nr_error *err)
{
	struct nr_bytes file;
	if (nr_bytes_map(&file, path, err)) return err->code;
	const char *s = (const char *)file.data, *end = s + file.size;
	int code = NR_OK;
	for (int64_t id = 0; !code && s < end; id++) {
		const size_t whole = line_bytes(s, end), n = whole && s[whole - 1] == '\r' ? whole - 1 : whole;
		code = add_line(t, path, s, n, id, err);
		s += whole + 1;
	}
	nr_bytes_release(&file);
	return code;
}

static int needs(struct nr_tokenizer *t, const char *path, enum nr_special s, const char *usual, struct nr_error *err)
{
	if (t->special[s] >= 0) return NR_OK;
	nr_fail(err, NR_EFORMAT, "cannot read", path, "it has no token '%s'", usual);
	return nr_hint(err, "name another in a tokenizer_config.json beside it");
}

int tokenizer_read_vocab_txt(struct nr_tokenizer *t, const char *path, struct nr_error *err)
{
	if (!path) return tokenizer_memory(t, err);
	t->kind = NR_WORDPIECE;
	t->prefix = "##";
	t->max_chars = 100;
	t->cleanup = t->normalizes = true;
	t->bert = (struct bert_rules){ true, true, true, true };
	if (read_lines(t, path, err)) return err->code;
	json_t *config = tokenizer_config(t, path, err);
	int code = config ? config_rules(t, config, err) : err->code;
	if (!code) code = config_added(t, config, err);
	if (!code) code = config_specials(t, config, true, err);
	json_decref(config);
	if (!code) code = needs(t, path, NR_TOKEN_UNK, "[UNK]", err);
	if (!code) code = needs(t, path, NR_TOKEN_CLS, "[CLS]", err);
	if (!code) code = needs(t, path, NR_TOKEN_SEP, "[SEP]", err);
	return code || !template_bert(t, t->special[NR_TOKEN_CLS], t->special[NR_TOKEN_SEP]) ? code : tokenizer_memory(t, err);
}

/* ---- BPE -------------------------------------------------------------------------------------------------------------------------- */

int tokenizer_add_vocab(struct nr_tokenizer *t, const char *path, const json_t *object, struct nr_error *err)
{
	const char *token;
	json_t *v;
	if (!json_is_object(object) || !json_object_size(object))
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "its vocabulary is not an object of tokens and ids");
	json_object_foreach((json_t *)(uintptr_t)object, token, v) {
		const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
		const int code = vocab_add(&t->vocab, token, strlen(token), id);
		if (code == NR_EMEMORY) return tokenizer_memory(t, err);
		if (!code) continue;
		const char *other = id >= 0 && id < VOCAB_MOST ? vocab_token(&t->vocab, (int32_t)id, NULL) : NULL;
		if (other) return nr_fail(err, NR_EFORMAT, "cannot read", path,
			"tokens '%s' and '%s' both have id %lld", other, token, (long long)id);
		return nr_fail(err, NR_EFORMAT, "cannot read", path,
			"token '%s' needs a text, and an id from 0 to %d", token, (int)VOCAB_MOST - 1);
	}
	return NR_OK;
}

static int add_merge_line(struct nr_tokenizer *t, const char *path, const char *s, size_t n, int64_t line,
	int32_t rank, struct nr_error *err)
{
	char where[64];
	const char *blank = memchr(s, ' ', n);
	const size_t left = blank ? (size_t)(blank - s) : 0, right = blank ? n - left - 1 : 0;
	if (!left || !right || memchr(blank + 1, ' ', right)) {
		nr_fail(err, NR_EFORMAT, "cannot read", path,
			"line %lld is not two tokens separated by a space: '%.*s'", (long long)line,
			n > 64 ? 64 : (int)n, s);
		return nr_hint(err, "is it the merges.txt of this vocabulary?");
	}
	snprintf(where, sizeof where, "line %lld of the merges", (long long)line);
	return bpe_add_merge(t, s, left, blank + 1, right, rank, where, err);
}

static int read_merges(struct nr_tokenizer *t, const char *path, struct nr_error *err)
{
	struct nr_bytes file;
	if (nr_bytes_map(&file, path, err)) return err->code;
	const char *s = (const char *)file.data, *end = s + file.size;
	int64_t lines = 1;
	for (size_t i = 0; i < file.size; i++) lines += s[i] == '\n';
	int code = bpe_start(t, lines) ? tokenizer_memory(t, err) : NR_OK;
	int32_t rank = 0;
	for (int64_t line = 1; !code && s < end; line++) {
		const size_t whole = line_bytes(s, end), n = whole && s[whole - 1] == '\r' ? whole - 1 : whole;
		const bool version = n >= 8 && !memcmp(s, "#version", 8), last = !n && s + whole + 1 >= end;
		if (!version && !last) code = add_merge_line(t, path, s, n, line, rank++, err);
		s += whole + 1;
	}
	nr_bytes_release(&file);
	return code;
}

static int bpe_template(struct nr_tokenizer *t)
{
	const int32_t cls = t->special[NR_TOKEN_CLS], sep = t->special[NR_TOKEN_SEP];
	return cls >= 0 && sep >= 0 ? template_roberta(t, cls, sep) : template_none(t);
}

int tokenizer_read_bpe(struct nr_tokenizer *t, const char *vocab, const char *merges, struct nr_error *err)
{
	if (!vocab || !merges) return tokenizer_memory(t, err);
	t->kind = NR_BPE;
	json_t *o = nr_json_load(vocab, err), *config = NULL;
	int code = o ? tokenizer_add_vocab(t, vocab, o, err) : err->code;
	json_decref(o);
	if (!code) code = read_merges(t, merges, err);
	if (!code && !(config = tokenizer_config(t, vocab, err))) code = err->code;
	if (!code) code = config_rules(t, config, err);
	if (!code) code = config_added(t, config, err);
	if (!code) code = config_specials(t, config, true, err);
	json_decref(config);
	if (code) return code;
	bpe_bytes(t);
	bpe_clip(t);
	static const char *const ends[] = { "<|endoftext|>", "<|startoftext|>" };
	const struct added_token end = { .special = true };
	for (int i = 0; i < (t->bpe.clip ? 2 : 1); i++)
		if (nr_tokenizer_find(t, ends[i]) >= 0 && tokenizer_add_token(t, ends[i], end, err)) return err->code;
	return bpe_template(t) ? tokenizer_memory(t, err) : NR_OK;
}
