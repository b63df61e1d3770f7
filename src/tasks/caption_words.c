/* See caption_words.h. Words are runs of ASCII letters and digits in lower case, and single signs; in other scripts, single characters.
 * They are sorted, so that the vocabulary does not depend on the order of the captions. */
#include "tasks/caption_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "fetch/checksum.h"

enum { MOST_WORDS = 1 << 20, LONGEST = 99 };

struct words { char **word; size_t count, room; };

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot make a vocabulary", NULL, "out of memory"); }

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorts, and leaves one of each. */
static void tidy(struct words *w)
{
	size_t n = 0;
	qsort(w->word, w->count, sizeof *w->word, by_text);
	for (size_t i = 0; i < w->count; i++) {
		if (n && !strcmp(w->word[i], w->word[n - 1])) free(w->word[i]);
		else w->word[n++] = w->word[i];
	}
	w->count = n;
}

static bool add(struct words *w, const char *s, size_t n)
{
	if (w->count == w->room) {
		if (w->count) tidy(w);
		if (2 * w->count >= w->room) {
			const size_t room = w->room ? 2 * w->room : 4096;
			char **more = realloc(w->word, room * sizeof *more);
			if (!more) return false;
			w->word = more;
			w->room = room;
		}
	}
	char *copy = strndup(s, n < LONGEST ? n : LONGEST);
	for (char *c = copy; c && *c; c++) *c = (char)tolower((unsigned char)*c);
	if (copy) w->word[w->count++] = copy;
	return copy;
}

static bool add_text(struct words *w, const char *s)
{
	while (*s) {
		const unsigned char c = (unsigned char)*s;
		size_t n = 1;
		if (c < 0x80 && isalnum(c))
			while ((unsigned char)s[n] < 0x80 && isalnum((unsigned char)s[n])) n++;
		else if (c >= 0x80)
			while (((unsigned char)s[n] & 0xc0) == 0x80) n++;
		if ((c >= 0x80 || isgraph(c)) && !add(w, s, n)) return false;
		s += n;
	}
	return true;
}

static int write_words(const struct words *w, const char *root, const char **path, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_str all = { 0 };
	char sum[80];
	nr_str_add(&all, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
	for (const char *c = "abcdefghijklmnopqrstuvwxyz0123456789"; *c; c++) nr_str_printf(&all, "%c\n##%c\n", *c, *c);
	for (size_t i = 0; i < w->count; i++) {
		const char *word = w->word[i];
		if (word[1] || !isalnum((unsigned char)*word)) nr_str_printf(&all, "%s\n", word);     /* letters are there */
	}
	if (all.failed) {
		nr_str_release(&all);
		return out_of_memory(err);
	}
	nr_checksum_bytes(nr_str_text(&all), all.len, NR_SHA256, sum);
	const char *folder = nr_arena_printf(arena, "%s/cache/words-%.16s", root, sum);
	*path = folder ? nr_arena_printf(arena, "%s/vocab.txt", folder) : NULL;
	int code = *path ? NR_OK : out_of_memory(err);
	if (!code && access(*path, R_OK)) code = nr_folder_make(folder, err) ? (int)err->code
		: nr_save_file(*path, nr_str_text(&all), all.len, err);
	nr_str_release(&all);
	return code;
}

int nr_caption_words(const char **path, const struct nr_source *s, enum nr_split split, const char *root, struct nr_arena *arena,
	struct nr_error *err)
{
	struct words w = { 0 };
	int code = NR_OK;
	for (int64_t i = 0; !code && i < s->count[split]; i++)
		if (!add_text(&w, nr_source_text(s, split, i, 0))) code = out_of_memory(err);
	if (!code && w.count) tidy(&w);
	if (!code && w.count > MOST_WORDS) {
		nr_fail(err, NR_ELIMIT, "cannot make a vocabulary", NULL, "the captions have more than %d different words", MOST_WORDS);
		nr_hint(err, "use --tokenizer");
		code = err->code;
	}
	if (!code) code = write_words(&w, root, path, arena, err);
	for (size_t i = 0; i < w.count; i++) free(w.word[i]);
	free(w.word);
	return code;
}
