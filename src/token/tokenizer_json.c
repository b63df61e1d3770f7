/* Hugging Face's tokenizer.json, as far as BERT, RoBERTa, GPT-2 and the sentence encoders made of them use it. What is not understood
 * is refused by its key: tokens that are nearly right are worse than none. */
#include "base/str.h"
#include "token/tokenizer_inner.h"

static int refuse(struct nr_tokenizer *t, const char *key, const char *value, const char *known, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot read", t->path, "%s '%s' is not supported", key, value ? value : "");
	return nr_hint(err, "known: %s", known);
}

/* Every key must be one of the list. */
static int only(struct nr_tokenizer *t, const json_t *o, const char *where, const char *const *keys, struct nr_error *err)
{
	const char *key;
	json_t *v;
	if (!json_is_object(o)) return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "%s is not an object", where);
	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		int k = 0;
		while (keys[k] && strcmp(keys[k], key)) k++;
		if (keys[k]) continue;
		nr_fail(err, NR_EFORMAT, "cannot read", t->path,
			"%s has the key '%s', which is not supported", where, key);
		const char *near = nr_nearest(key, keys);
		return near ? nr_hint(err, "did you mean '%s'?", near) : err->code;
	}
	return NR_OK;
}

static const char *type_of(const json_t *o)
{
	const char *type = json_string_value(json_object_get(o, "type"));
	return type ? type : "";
}
static bool set_to(const json_t *o, const char *key, bool otherwise)
{
	const json_t *v = json_object_get(o, key);
	return json_is_boolean(v) ? json_is_true(v) : otherwise;
}
/* null, false, "" and 0 all mean that a feature is off. */
static bool is_off(const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) || (json_is_string(v) && !*json_string_value(v)) ||
		(json_is_number(v) && json_number_value(v) == 0);
}

/* A Sequence of one is that one, of none null. */
static const json_t *only_one(const json_t *o, const char *list)
{
	if (strcmp(type_of(o), "Sequence")) return o;
	const json_t *items = json_object_get(o, list);
	return json_array_size(items) == 1 ? json_array_get(items, 0) : json_array_size(items) ? o : NULL;
}

static int read_normalizer(struct nr_tokenizer *t, const json_t *o, struct nr_error *err)
{
	static const char *const keys[] = { "type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase", NULL };
	o = only_one(o, "normalizers");
	if (!o || json_is_null(o)) return NR_OK;
	if (strcmp(type_of(o), "BertNormalizer")) return refuse(t, "normalizer.type", type_of(o), "BertNormalizer, or null", err);
	if (only(t, o, "normalizer", keys, err)) return err->code;
	t->normalizes = true;
	t->bert = (struct bert_rules){ .clean = set_to(o, "clean_text", true), .cjk = set_to(o, "handle_chinese_chars", true),
		.lowercase = set_to(o, "lowercase", true) };
	t->bert.strip_accents = set_to(o, "strip_accents", t->bert.lowercase);
	return NR_OK;
}

static int read_pre_tokenizer(struct nr_tokenizer *t, const json_t *o, struct nr_error *err)
{
	static const char *const keys[] = { "type", "add_prefix_space", "trim_offsets", "use_regex", NULL };
	o = only_one(o, "pretokenizers");
	const char *wanted = t->kind == NR_BPE ? "ByteLevel" : "BertPreTokenizer";
	if (strcmp(type_of(o), wanted)) return refuse(t, "pre_tokenizer.type", o ? type_of(o) : "null", wanted, err);
	if (only(t, o, "pre_tokenizer", keys, err)) return err->code;
	if (!set_to(o, "use_regex", true)) return refuse(t, "pre_tokenizer.use_regex", "false", "true", err);
	t->bpe.blank_first = t->kind == NR_BPE && set_to(o, "add_prefix_space", true);
	return NR_OK;
}

static int read_decoder(struct nr_tokenizer *t, const json_t *o, struct nr_error *err)
{
	const char *wanted = t->kind == NR_BPE ? "ByteLevel" : "WordPiece";
	t->cleanup = set_to(o, "cleanup", true);
	if (!o || json_is_null(o) || !strcmp(type_of(o), wanted)) return NR_OK;
	return refuse(t, "decoder.type", type_of(o), wanted, err);
}

/* ---- model ------------------------------------------------------------------------------------------------------------------------ */

static int find_unk(struct nr_tokenizer *t, const json_t *model, int32_t *id, struct nr_error *err)
{
	const char *name = json_string_value(json_object_get(model, "unk_token"));
	*id = name ? nr_tokenizer_find(t, name) : -1;
	if (!name || *id >= 0) return NR_OK;
	return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "model.unk_token '%s' is not in the vocabulary", name);
}

static int read_wordpiece(struct nr_tokenizer *t, const json_t *model, struct nr_error *err)
{
	static const char *const keys[] = { "type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab", NULL };
	if (only(t, model, "model", keys, err) || tokenizer_add_vocab(t, t->path, json_object_get(model, "vocab"), err)) return err->code;
	const char *prefix = json_string_value(json_object_get(model, "continuing_subword_prefix"));
	const json_t *most = json_object_get(model, "max_input_chars_per_word");
	t->prefix = nr_arena_strdup(t->arena, prefix ? prefix : "##");
	t->max_chars = json_is_integer(most) ? json_integer_value(most) : 100;
	if (!t->prefix) return tokenizer_memory(t, err);
	if (find_unk(t, model, &t->special[NR_TOKEN_UNK], err)) return err->code;
	return t->special[NR_TOKEN_UNK] >= 0 ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", t->path, "model.unk_token is missing");
}

/* ["a", "b"] or "a b" */
static int read_merge(struct nr_tokenizer *t, const json_t *m, size_t rank, struct nr_error *err)
{
	char where[64];
	snprintf(where, sizeof where, "model.merges, entry %zu", rank + 1);
	const char *left = json_string_value(json_is_array(m) ? json_array_get(m, 0) : m);
	const char *right = json_string_value(json_is_array(m) ? json_array_get(m, 1) : m), *blank = left ? strchr(left, ' ') : NULL;
	if (left && right && json_is_array(m) && json_array_size(m) == 2 && *left && *right)
		return bpe_add_merge(t, left, strlen(left), right, strlen(right), (int32_t)rank, where, err);
	if (json_is_string(m) && blank && blank > left && blank[1] && !strchr(blank + 1, ' '))
		return bpe_add_merge(t, left, (size_t)(blank - left), blank + 1, strlen(blank + 1), (int32_t)rank, where, err);
	return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "%s is not two tokens", where);
}

static int read_bpe(struct nr_tokenizer *t, const json_t *model, struct nr_error *err)
{
	static const char *const keys[] = { "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
		"byte_fallback", "ignore_merges", "vocab", "merges", NULL };
	static const char *const off[] = { "dropout", "continuing_subword_prefix", "end_of_word_suffix",
		"fuse_unk", "byte_fallback", NULL };
	if (only(t, model, "model", keys, err) || tokenizer_add_vocab(t, t->path, json_object_get(model, "vocab"), err)) return err->code;
	for (int i = 0; off[i]; i++) {
		const char *suffix = json_string_value(json_object_get(model, off[i]));
		if (is_off(json_object_get(model, off[i])) || (!strcmp(off[i], "end_of_word_suffix") && suffix && !strcmp(suffix, "</w>")))
			continue;
		return nr_fail(err, NR_EFORMAT, "cannot read", t->path,
			"model.%s is set, which is not supported", off[i]);
	}
	if (find_unk(t, model, &t->bpe.unk, err)) return err->code;
	t->bpe.ignore_merges = set_to(model, "ignore_merges", false);
	const json_t *merges = json_object_get(model, "merges"), *m;
	size_t i;
	if (!json_is_array(merges)) return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "model.merges is not a list");
	if (bpe_start(t, (int64_t)json_array_size(merges) + 1)) return tokenizer_memory(t, err);
	json_array_foreach(merges, i, m)
		if (read_merge(t, m, i, err)) return err->code;
	bpe_bytes(t);
	bpe_clip(t);
	const bool ends = !is_off(json_object_get(model, "end_of_word_suffix"));
	return ends == t->bpe.clip ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", t->path,
		"model.end_of_word_suffix is set, which is supported for CLIP alone");
}

static int read_model(struct nr_tokenizer *t, const json_t *model, struct nr_error *err)
{
	const char *type = type_of(model);
	if (!*type) type = json_object_get(model, "merges") ? "BPE" : "WordPiece";      /* old files do not say */
	t->kind = strcmp(type, "BPE") ? NR_WORDPIECE : NR_BPE;
	if (t->kind == NR_BPE) return read_bpe(t, model, err);
	return strcmp(type, "WordPiece") ? refuse(t, "model.type", type, "WordPiece, BPE", err) : read_wordpiece(t, model, err);
}

/* ---- the rest --------------------------------------------------------------------------------------------------------------------- */

static int read_added(struct nr_tokenizer *t, const json_t *list, struct nr_error *err)
{
	const json_t *v;
	size_t i;
	json_array_foreach(list, i, v) {
		const json_t *id = json_object_get(v, "id");
		if (!json_is_integer(id)) return nr_fail(err, NR_EFORMAT, "cannot read", t->path,
			"added_tokens, entry %zu has no id", i + 1);
		if (config_add_token(t, v, json_integer_value(id), err)) return err->code;
	}
	return NR_OK;
}

/* Lengths are the caller's matter; which side is cut and padded is not. */
static void read_sides(struct nr_tokenizer *t, const json_t *root)
{
	const json_t *pad = json_object_get(root, "padding");
	const char *side = json_string_value(json_object_get(pad, "direction"));
	const char *cut = json_string_value(json_object_get(json_object_get(root, "truncation"), "direction"));
	t->pad_left = side && !strcmp(side, "Left");
	t->cut_left = cut && !strcmp(cut, "Left");
	t->pad_type = (int32_t)json_integer_value(json_object_get(pad, "pad_type_id"));
}

/* Named by the template: what stands before the text, and what ends it. */
static void read_ends(struct nr_tokenizer *t)
{
	const struct template *s = &t->single;
	if (s->count > 1 && s->part[0] >= 0) t->special[NR_TOKEN_CLS] = s->part[0];
	if (s->count > 1 && s->part[s->count - 1] >= 0) t->special[NR_TOKEN_SEP] = s->part[s->count - 1];
}

/* How texts become words, and back; CLIP's rules go with its vocabulary. */
static int read_words(struct nr_tokenizer *t, const json_t *root, struct nr_error *err)
{
	if (read_normalizer(t, json_object_get(root, "normalizer"), err)) return err->code;
	if (read_pre_tokenizer(t, json_object_get(root, "pre_tokenizer"), err)) return err->code;
	return read_decoder(t, json_object_get(root, "decoder"), err);
}

static int read_root(struct nr_tokenizer *t, const json_t *root, const json_t *config, struct nr_error *err)
{
	static const char *const keys[] = { "version", "truncation", "padding", "added_tokens", "normalizer",
		"pre_tokenizer", "post_processor",
		"decoder", "model", NULL };
	if (only(t, root, "the file", keys, err)) return err->code;
	if (read_model(t, json_object_get(root, "model"), err) || read_added(t, json_object_get(root, "added_tokens"), err) ||
		(!t->bpe.clip && read_words(t, root, err)) ||
		tokenizer_read_post(t, json_object_get(root, "post_processor"), err) || config_rules(t, config, err))
		return err->code;
	read_sides(t, root);
	read_ends(t);
	return config_specials(t, config, false, err);
}

int tokenizer_read_json(struct nr_tokenizer *t, const char *path, struct nr_error *err)
{
	if (!path) return tokenizer_memory(t, err);
	t->path = path;
	json_t *root = nr_json_load(path, err), *config = root ? tokenizer_config(t, path, err) : NULL;
	const int code = config ? read_root(t, root, config, err) : err->code;
	json_decref(root);
	json_decref(config);
	return code;
}
