/* What stands beside a vocabulary: tokenizer_config.json, special_tokens_map.json, added_tokens.json. */
#include <sys/stat.h>

#include "base/str.h"
#include "token/tokenizer_inner.h"

static json_t *beside(struct nr_tokenizer *t, const char *path, const char *name, struct nr_error *err)
{
	const char *slash = strrchr(path, '/');
	const char *file = nr_arena_printf(t->arena, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
	struct stat st;
	if (!file) tokenizer_memory(t, err);
	if (!file || stat(file, &st)) return NULL;
	json_t *o = nr_json_load_reals(file, err);       /* "no limit" is written as 10^30 */
	if (!o || json_is_object(o)) return o;
	nr_fail(err, NR_EFORMAT, "cannot read", file, "it is not a JSON object");
	json_decref(o);
	return NULL;
}

json_t *tokenizer_config(struct nr_tokenizer *t, const char *path, struct nr_error *err)
{
	json_t *config = beside(t, path, "tokenizer_config.json", err), *more;
	if (!config && !err->code) config = json_object();
	if (config && (more = beside(t, path, "special_tokens_map.json", err))) {
		json_object_update_missing(config, more);
		json_decref(more);
	}
	if (config && (more = beside(t, path, "added_tokens.json", err))) json_object_set_new(config, "added_tokens.json", more);
	if (!err->code) return config;
	json_decref(config);
	return NULL;
}

static int not_a(struct nr_tokenizer *t, const char *key, const char *what, struct nr_error *err)
{
	return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "%s in tokenizer_config.json is not %s", key, what);
}

/* true and false count; null and absence leave it as it is. */
static int read_switch(struct nr_tokenizer *t, const json_t *config, const char *key, bool *to, struct nr_error *err)
{
	const json_t *v = json_object_get(config, key);
	if (json_is_boolean(v)) *to = json_is_true(v);
	else if (v && !json_is_null(v)) return not_a(t, key, "true or false", err);
	return NR_OK;
}

int config_rules(struct nr_tokenizer *t, const json_t *config, struct nr_error *err)
{
	if (t->kind == NR_BPE) return read_switch(t, config, "add_prefix_space", &t->bpe.blank_first, err);
	const bool follows = t->bert.strip_accents == t->bert.lowercase;
	if (read_switch(t, config, "do_lower_case", &t->bert.lowercase, err) ||
		read_switch(t, config, "tokenize_chinese_chars", &t->bert.cjk, err))
		return err->code;
	if (follows) t->bert.strip_accents = t->bert.lowercase;  /* null: accents go with the case */
	return read_switch(t, config, "strip_accents", &t->bert.strip_accents, err);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------------------------- */

int config_add_token(struct nr_tokenizer *t, const json_t *o, int64_t id, struct nr_error *err)
{
	const char *content = json_string_value(json_object_get(o, "content"));
	if (!content || !*content) return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "an added token has no content");
	const int32_t there = vocab_find(&t->vocab, content, strlen(content));
	if (there >= 0 && there != id)
		return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "added token '%s' has id %lld, but %d in the vocabulary", content,
			(long long)id, (int)there);
	if (there < 0) {
		const int code = vocab_add(&t->vocab, content, strlen(content), id);
		if (code == NR_EMEMORY) return tokenizer_memory(t, err);
		if (code) return nr_fail(err, NR_EFORMAT, "cannot read", t->path,
			"added token '%s': id %lld is taken or out of range", content, (long long)id);
	}
	const bool special = json_is_true(json_object_get(o, "special"));
	const json_t *normalized = json_object_get(o, "normalized");
	const struct added_token token = {
		.special = special,
		.normalized = normalized ? json_is_true(normalized) : !special,
		.lstrip = json_is_true(json_object_get(o, "lstrip")),
		.rstrip = json_is_true(json_object_get(o, "rstrip")),
		.single_word = json_is_true(json_object_get(o, "single_word")),
	};
	return tokenizer_add_token(t, content, token, err);
}

static int64_t id_of(const json_t *v)
{
	const double x = json_is_number(v) ? json_number_value(v) : -1;
	return x >= 0 && x < VOCAB_MOST ? (int64_t)x : -1;
}

int config_added(struct nr_tokenizer *t, const json_t *config, struct nr_error *err)
{
	const char *key;
	json_t *v;
	int64_t id;
	json_object_foreach(json_object_get(config, "added_tokens_decoder"), key, v) {
		if (!nr_parse_int(key, &id)) return not_a(t, "added_tokens_decoder", "an object with ids as keys", err);
		if (config_add_token(t, v, id, err)) return err->code;
	}
	json_object_foreach(json_object_get(config, "added_tokens.json"), key, v) {
		json_t *o = json_pack("{s:s, s:b}", "content", key, "normalized", 1);
		const int code = o ? config_add_token(t, o, id_of(v), err) : tokenizer_memory(t, err);
		json_decref(o);
		if (code) return code;
	}
	return NR_OK;
}

static const struct role { const char *key; enum nr_special special; const char *usual[3]; } roles[] = {
	{ "pad_token", NR_TOKEN_PAD, { "[PAD]", "<pad>", NULL } },
	{ "unk_token", NR_TOKEN_UNK, { "[UNK]", "<unk>", NULL } },
	{ "cls_token", NR_TOKEN_CLS, { "[CLS]", "<s>", NULL } },
	{ "sep_token", NR_TOKEN_SEP, { "[SEP]", "</s>", NULL } },
	{ "mask_token", NR_TOKEN_MASK, { "[MASK]", "<mask>", NULL } },
};

int config_specials(struct nr_tokenizer *t, const json_t *config, bool usual, struct nr_error *err)
{
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		const struct role *r = &roles[i];
		const json_t *v = json_object_get(config, r->key);
		const char *name = json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
		if (v && !json_is_null(v) && !name) return not_a(t, r->key, "a token", err);
		int32_t id = name ? vocab_find(&t->vocab, name, strlen(name)) : -1;
		if (name && id < 0) {
			nr_fail(err, NR_EFORMAT, "cannot read", t->path, "its %s '%s' is not in the vocabulary", r->key, name);
			return nr_hint(err, "tokenizer_config.json or special_tokens_map.json names it: correct it there");
		}
		for (int k = 0; !v && id < 0 && r->usual[k]; k++) id = nr_tokenizer_find(t, r->usual[k]);
		if (t->special[r->special] < 0) t->special[r->special] = id;
		if (id >= 0 && (name || usual)) {
			const struct added_token token = { .special = true, .lstrip = json_is_true(json_object_get(v, "lstrip")) };
			if (tokenizer_add_token(t, vocab_token(&t->vocab, id, NULL), token, err)) return err->code;
		}
	}
	return NR_OK;
}
