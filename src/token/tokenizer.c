/* The tokenizer as a whole: which files there are, what they lack, and what is asked of it. */
#include "token/tokenizer_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

int tokenizer_memory(const struct nr_tokenizer *t, struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot tokenize", t ? t->path : NULL, "out of memory");
}

int tokenizer_add_token(struct nr_tokenizer *t, const char *text, struct added_token token, struct nr_error *err)
{
	if (vocab_find(&t->added_names, text, strlen(text)) >= 0) return NR_OK;
	if (t->n_added == t->added_room) {
		const int64_t room = 2 * t->added_room + 16;
		struct added_token *more = nr_arena_alloc(t->arena, (size_t)room * sizeof *more);
		if (!more) return tokenizer_memory(t, err);
		if (t->n_added) memcpy(more, t->added, (size_t)t->n_added * sizeof *more);
		t->added = more;
		t->added_room = room;
	}
	token.text = nr_arena_strdup(t->arena, text);
	token.bytes = strlen(text);
	token.id = vocab_find(&t->vocab, text, token.bytes);
	if (!token.text || vocab_add(&t->added_names, text, token.bytes, t->n_added)) return tokenizer_memory(t, err);
	t->added[t->n_added++] = token;
	return NR_OK;
}

/* ---- what follows from the vocabulary ------------------------------------------------------------------------------------------ */

static int make_pieces(struct nr_tokenizer *t, struct nr_error *err)
{
	const size_t prefix = strlen(t->prefix);
	if (!slots_make(&t->inside, t->vocab.count)) return tokenizer_memory(t, err);
	for (int32_t id = 0; id < t->vocab.count; id++) {
		size_t n;
		const char *token = vocab_token(&t->vocab, id, &n);
		if (!token) continue;
		if (n > t->longest) t->longest = n;
		if (n <= prefix || memcmp(token, t->prefix, prefix)) continue;
		slots_put(&t->inside, nr_hash(NR_HASH_INSIDE, token + prefix, n - prefix), id);
	}
	if (t->longest > 512) return nr_fail(err, NR_ELIMIT, "cannot read", t->path, "a token has %zu bytes, more than 512", t->longest);
	return NR_OK;
}

/* Tokens that are looked for in normalised text are normalised themselves. */
static int normalize_added(struct nr_tokenizer *t, struct nr_error *err)
{
	struct text_room room = { 0 };
	int code = NR_OK;
	for (int64_t i = 0; !code && t->normalizes && i < t->n_added; i++) {
		struct added_token *a = &t->added[i];
		if (!a->normalized) continue;
		if (!bert_normalize(&t->bert, a->text, a->bytes, &room)) code = tokenizer_memory(t, err);
		else if (!(a->text = nr_arena_alloc(t->arena, room.bytes + 1))) code = tokenizer_memory(t, err);
		else memcpy(a->text, room.text, a->bytes = room.bytes);
	}
	free(room.text);
	return code;
}

static int finish(struct nr_tokenizer *t, struct nr_error *err)
{
	if (t->kind == NR_WORDPIECE && make_pieces(t, err)) return err ? (int)err->code : NR_EFORMAT;
	if (normalize_added(t, err)) return NR_EMEMORY;
	if (added_set_make(&t->raw, t->arena, t->added, t->n_added, false) || added_set_make(&t->normal, t->arena,
		t->added, t->n_added, true))
		return tokenizer_memory(t, err);
	return NR_OK;
}

/* ---- opening -------------------------------------------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}
static bool is_file(const char *path)
{
	struct stat st;
	return path && !stat(path, &st) && !S_ISDIR(st.st_mode);
}
static bool ends_with(const char *s, const char *tail)
{
	const size_t n = strlen(s), m = strlen(tail);
	return n >= m && !strcmp(s + n - m, tail);
}

static int open_folder(struct nr_tokenizer *t, const char *folder, struct nr_error *err)
{
	const char *json = nr_arena_printf(t->arena, "%s/tokenizer.json", folder);
	const char *txt = nr_arena_printf(t->arena, "%s/vocab.txt", folder);
	const char *vocab = nr_arena_printf(t->arena, "%s/vocab.json", folder);
	const char *merges = nr_arena_printf(t->arena, "%s/merges.txt", folder);
	if (is_file(json)) return tokenizer_read_json(t, json, err);
	if (is_file(txt)) return tokenizer_read_vocab_txt(t, txt, err);
	if (is_file(vocab) && is_file(merges)) return tokenizer_read_bpe(t, vocab, merges, err);
	nr_fail(err, NR_EIO, "cannot find a tokenizer in", folder,
		"there is no tokenizer.json, vocab.txt or vocab.json with merges.txt");
	return is_file(vocab) ? nr_hint(err, "vocab.json needs the merges.txt that belongs to it") : nr_hint(err,
		"name a file, or copy them there");
}

static int open_file(struct nr_tokenizer *t, const char *path, struct nr_error *err)
{
	const char *slash = strrchr(path, '/');
	const char *folder = slash ? nr_arena_printf(t->arena, "%.*s", (int)(slash - path), path) : ".";
	if (ends_with(path, ".safetensors")) return open_folder(t, folder, err);
	if (ends_with(path, ".txt")) {
		if (!ends_with(path, "merges.txt")) return tokenizer_read_vocab_txt(t, path, err);
		return tokenizer_read_bpe(t, nr_arena_printf(t->arena, "%s/vocab.json", folder), path, err);
	}
	if (ends_with(path, "vocab.json")) return tokenizer_read_bpe(t, path, nr_arena_printf(t->arena, "%s/merges.txt", folder), err);
	if (ends_with(path, ".json")) return tokenizer_read_json(t, path, err);
	if (access(path, F_OK)) return nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
	nr_fail(err, NR_EFORMAT, "cannot read", path, "it is not the name of a vocabulary file");
	return nr_hint(err, "give tokenizer.json, vocab.txt, vocab.json, or their folder");
}

static const char *without_slash(struct nr_tokenizer *t, const char *path)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/') n--;
	return nr_arena_printf(t->arena, "%.*s", (int)n, path);
}

int nr_tokenizer_open(struct nr_tokenizer **out, const char *path, struct nr_error *err)
{
	struct nr_error none = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_tokenizer *t = arena ? nr_arena_alloc(arena, sizeof *t) : NULL;
	*out = NULL;
	if (!err) err = &none;
	if (!t) {
		nr_arena_free(arena);
		return tokenizer_memory(NULL, err);
	}
	t->arena = arena;
	t->path = without_slash(t, path);
	t->bpe.unk = -1;
	for (int i = 0; i < NR_SPECIALS; i++) t->special[i] = -1;
	int code = !t->path ? tokenizer_memory(NULL, err) : is_folder(path) ? open_folder(t, t->path, err) : open_file(t, t->path, err);
	if (!code) code = finish(t, err);
	if (code) {
		nr_tokenizer_close(t);
		return code;
	}
	*out = t;
	return NR_OK;
}

void nr_tokenizer_close(struct nr_tokenizer *t)
{
	if (!t) return;
	vocab_release(&t->vocab);
	vocab_release(&t->added_names);
	free(t->inside.slot);
	nr_arena_free(t->arena);
}

/* ---- questions ------------------------------------------------------------------------------------------------------------------- */

enum nr_tokenizer_kind nr_tokenizer_kind(const struct nr_tokenizer *t) { return t->kind; }
int64_t nr_tokenizer_size(const struct nr_tokenizer *t) { return t->vocab.count; }
int32_t nr_tokenizer_special(const struct nr_tokenizer *t, enum nr_special s) { return t->special[s]; }
const char *nr_tokenizer_token(const struct nr_tokenizer *t, int32_t id) { return vocab_token(&t->vocab, id, NULL); }
int32_t nr_tokenizer_find(const struct nr_tokenizer *t, const char *token) { return vocab_find(&t->vocab, token, strlen(token)); }
int64_t nr_tokenizer_added(const struct nr_tokenizer *t, bool pair) { return pair ? t->pair.added : t->single.added; }

bool nr_tokenizer_is_special(const struct nr_tokenizer *t, int32_t id)
{
	for (int64_t i = 0; i < t->n_added; i++)
		if (t->added[i].id == id && t->added[i].special) return true;
	return false;
}
