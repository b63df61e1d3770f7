/* The tokens of a vocabulary by id and by text: open addressing, a tag of the hash beside the id. */
#include <stdlib.h>

#include "token/tokenizer_inner.h"

bool slots_make(struct vocab_slots *t, int64_t count)
{
	t->bits = 4;
	while ((int64_t)1 << t->bits < 2 * count) t->bits++;
	t->used = 0;
	t->slot = malloc(sizeof *t->slot << t->bits);
	for (int64_t i = 0; t->slot && i < (int64_t)1 << t->bits; i++) t->slot[i] = (struct vocab_slot){ .id = -1 };
	return t->slot;
}

void slots_put(struct vocab_slots *t, uint64_t hash, int32_t id)
{
	const uint64_t mask = (UINT64_C(1) << t->bits) - 1;
	uint64_t i = hash >> (64 - t->bits);
	while (t->slot[i].id >= 0) i = (i + 1) & mask;
	t->slot[i] = (struct vocab_slot){ (uint32_t)(hash >> 8), id };
	t->used++;
}

static bool grow_slots(struct vocab *v)
{
	if (v->whole.slot && 2 * (v->whole.used + 1) <= (int64_t)1 << v->whole.bits) return true;
	struct vocab_slots wider;
	if (!slots_make(&wider, 2 * v->whole.used + 512)) return false;
	for (int64_t i = 0; i < v->count; i++)
		if (v->token[i].at) slots_put(&wider, nr_hash(NR_HASH_START, v->text + v->token[i].at, v->token[i].bytes), (int32_t)i);
	free(v->whole.slot);
	v->whole = wider;
	return true;
}

static bool grow(struct vocab *v, size_t bytes, int64_t id)
{
	if (v->used + bytes + 2 > v->room) {
		const size_t room = 2 * (v->room + bytes) + 4096;
		char *text = room < UINT32_MAX ? realloc(v->text, room) : NULL;
		if (!text) return false;
		v->text = text;
		v->room = room;
		if (!v->used) v->text[v->used++] = 0;           /* place 0 means no token */
	}
	if (id >= v->capacity) {
		const int64_t capacity = 2 * id + 1024;
		struct vocab_text *token = realloc(v->token, (size_t)capacity * sizeof *token);
		if (!token) return false;
		memset(token + v->capacity, 0, (size_t)(capacity - v->capacity) * sizeof *token);
		v->token = token;
		v->capacity = capacity;
	}
	return grow_slots(v);
}

int vocab_add(struct vocab *v, const char *token, size_t bytes, int64_t id)
{
	if (id < 0 || id >= VOCAB_MOST || !bytes || (id < v->count && v->token[id].at) || vocab_find(v, token, bytes) >= 0)
		return NR_EFORMAT;
	if (!grow(v, bytes, id)) return NR_EMEMORY;
	memcpy(v->text + v->used, token, bytes);
	v->text[v->used + bytes] = 0;
	v->token[id] = (struct vocab_text){ (uint32_t)v->used, (uint32_t)bytes };
	v->used += bytes + 1;
	if (id >= v->count) v->count = id + 1;
	slots_put(&v->whole, nr_hash(NR_HASH_START, token, bytes), (int32_t)id);
	return NR_OK;
}

int32_t vocab_find(const struct vocab *v, const char *token, size_t bytes)
{
	if (!v->whole.slot) return -1;
	const uint64_t hash = nr_hash(NR_HASH_START, token, bytes), mask = (UINT64_C(1) << v->whole.bits) - 1;
	for (uint64_t i = hash >> (64 - v->whole.bits); v->whole.slot[i].id >= 0; i = (i + 1) & mask) {
		const struct vocab_slot s = v->whole.slot[i];
		if (s.tag != (uint32_t)(hash >> 8) || v->token[s.id].bytes != bytes) continue;
		if (!memcmp(v->text + v->token[s.id].at, token, bytes)) return s.id;
	}
	return -1;
}

const char *vocab_token(const struct vocab *v, int32_t id, size_t *bytes)
{
	if (id < 0 || id >= v->count || !v->token[id].at) return NULL;
	if (bytes) *bytes = v->token[id].bytes;
	return v->text + v->token[id].at;
}

void vocab_release(struct vocab *v)
{
	free(v->text);
	free(v->token);
	free(v->whole.slot);
	*v = (struct vocab){ 0 };
}
