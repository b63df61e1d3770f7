/* Special tokens around one text and two: templates, and tokenizer.json's post_processor. */
#include "token/tokenizer_inner.h"

int template_add(struct nr_tokenizer *t, struct template *to, int32_t part, int32_t type)
{
	const size_t n = (size_t)to->count;
	if (!(n & (n - 1))) {                           /* full at powers of two */
		const size_t room = n ? 2 * n : 1;
		int32_t *parts = nr_arena_alloc(t->arena, room * sizeof *parts), *types = nr_arena_alloc(t->arena, room * sizeof *types);
		if (!parts || !types) return NR_EMEMORY;
		if (n) {
			memcpy(parts, to->part, n * sizeof *parts);
			memcpy(types, to->type, n * sizeof *types);
		}
		to->part = parts;
		to->type = types;
	}
	to->part[to->count] = part;
	to->type[to->count++] = type;
	to->added += part >= 0;
	return NR_OK;
}

static int fill(struct nr_tokenizer *t, struct template *to, int count, const int32_t (*rows)[2])
{
	*to = (struct template){ 0 };
	for (int i = 0; i < count; i++)
		if (template_add(t, to, rows[i][0], rows[i][1])) return NR_EMEMORY;
	return NR_OK;
}

/* [CLS] A [SEP]; [CLS] A [SEP] B [SEP] */
int template_bert(struct nr_tokenizer *t, int32_t cls, int32_t sep)
{
	const int32_t rows[][2] = { { cls, 0 }, { PART_A, 0 }, { sep, 0 }, { PART_B, 1 }, { sep, 1 } };
	return fill(t, &t->single, 3, rows) || fill(t, &t->pair, 5, rows) ? NR_EMEMORY : NR_OK;
}

/* <s> A </s>; <s> A </s> </s> B </s>, all of type 0 */
int template_roberta(struct nr_tokenizer *t, int32_t cls, int32_t sep)
{
	const int32_t rows[][2] = { { cls, 0 }, { PART_A, 0 }, { sep, 0 }, { sep, 0 }, { PART_B, 0 }, { sep, 0 } };
	return fill(t, &t->single, 3, rows) || fill(t, &t->pair, 6, rows) ? NR_EMEMORY : NR_OK;
}

int template_none(struct nr_tokenizer *t)
{
	const int32_t rows[][2] = { { PART_A, 0 }, { PART_B, 1 } };
	return fill(t, &t->single, 1, rows) || fill(t, &t->pair, 2, rows) ? NR_EMEMORY : NR_OK;
}

/* ---- post_processor ------------------------------------------------------------------------------------------------------------- */

static int bad(struct nr_tokenizer *t, const char *what, struct nr_error *err)
{
	return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "post_processor: %s", what);
}

/* ["[SEP]", 102] */
static int32_t pair_id(struct nr_tokenizer *t, const json_t *post, const char *key)
{
	const json_t *id = json_array_get(json_object_get(post, key), 1);
	const int64_t v = json_is_integer(id) ? json_integer_value(id) : -1;
	return v >= 0 && v < t->vocab.count ? (int32_t)v : -1;
}

static int add_special(struct nr_tokenizer *t, const json_t *post, const json_t *item, struct template *to,
	int32_t type, struct nr_error *err)
{
	const char *name = json_string_value(json_object_get(item, "id"));
	const json_t *ids = json_object_get(json_object_get(json_object_get(post, "special_tokens"), name ? name : ""), "ids"), *v;
	size_t i;
	if (!json_array_size(ids)) return bad(t, "a special token of the template is not in special_tokens", err);
	json_array_foreach(ids, i, v) {
		const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
		if (id < 0 || id >= t->vocab.count) return bad(t, "the id of a special token is not in the vocabulary", err);
		if (template_add(t, to, (int32_t)id, type)) return tokenizer_memory(t, err);
	}
	return NR_OK;
}

static int read_template(struct nr_tokenizer *t, const json_t *post, const char *key, struct template *to, struct nr_error *err)
{
	const json_t *list = json_object_get(post, key), *item;
	size_t i;
	int seen[2] = { 0, 0 };
	*to = (struct template){ 0 };
	json_array_foreach(list, i, item) {
		const json_t *special = json_object_get(item, "SpecialToken"), *sequence = json_object_get(item, "Sequence");
		const json_t *v = json_object_get(special ? special : sequence, "type_id");
		const int32_t type = (int32_t)(json_is_integer(v) ? json_integer_value(v) : 0);
		if (special) {
			if (add_special(t, post, special, to, type, err)) return err->code;
			continue;
		}
		const char *id = json_string_value(json_object_get(sequence, "id"));
		if (!id || (strcmp(id, "A") && strcmp(id, "B"))) return bad(t,
			"its template has a part other than A, B or a special token", err);
		seen[*id == 'B']++;
		if (template_add(t, to, *id == 'A' ? PART_A : PART_B, type)) return tokenizer_memory(t, err);
	}
	const bool pair = to == &t->pair;
	return seen[0] == 1 && seen[1] == pair ? NR_OK : bad(t, pair ? "pair needs A and B once each" :
		"single needs A once and no B", err);
}

static int read_sequence(struct nr_tokenizer *t, const json_t *post, struct nr_error *err)
{
	const json_t *item;
	size_t i;
	int n = 0;
	json_array_foreach(json_object_get(post, "processors"), i, item) {
		const char *type = json_string_value(json_object_get(item, "type"));
		if (type && !strcmp(type, "ByteLevel")) continue;       /* it changes offsets, not ids */
		if (type && !strcmp(type, "Sequence")) return bad(t, "a Sequence within a Sequence", err);
		if (n++) return bad(t, "more than one part of the Sequence adds tokens", err);
		if (tokenizer_read_post(t, item, err)) return err->code;
	}
	return NR_OK;
}

int tokenizer_read_post(struct nr_tokenizer *t, const json_t *post, struct nr_error *err)
{
	const char *type = json_string_value(json_object_get(post, "type"));
	if (template_none(t)) return tokenizer_memory(t, err);
	if (!post || json_is_null(post) || (type && !strcmp(type, "ByteLevel"))) return NR_OK;
	if (type && !strcmp(type, "Sequence")) return read_sequence(t, post, err);
	if (type && !strcmp(type, "TemplateProcessing"))
		return read_template(t, post, "single", &t->single, err) || read_template(t, post, "pair",
		&t->pair, err) ? err->code : NR_OK;
	const bool roberta = type && !strcmp(type, "RobertaProcessing");
	if (!roberta && (!type || strcmp(type, "BertProcessing"))) {
		nr_fail(err, NR_EFORMAT, "cannot read", t->path,
			"post_processor.type '%s' is not supported", type ? type : "");
		return nr_hint(err,
			"supported: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
	}
	const int32_t cls = pair_id(t, post, "cls"), sep = pair_id(t, post, "sep");
	if (cls < 0 || sep < 0) return bad(t, "cls or sep is not in the vocabulary", err);
	return (roberta ? template_roberta(t, cls, sep) : template_bert(t, cls, sep)) ? tokenizer_memory(t, err) : NR_OK;
}
