/* The files of a tokenizer, for a folder of weights that is to be whole by itself. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/save.h"
#include "base/str.h"
#include "norma/tokenizer.h"

static int copy(const char *from, const char *to, struct nr_error *err)
{
	struct nr_bytes b;
	struct stat a, z;
	if (!stat(from, &a) && !stat(to, &z) && a.st_dev == z.st_dev && a.st_ino == z.st_ino) return NR_OK;     /* the same file */
	if (nr_bytes_map(&b, from, err)) return err->code;
	const int code = nr_save_file(to, b.data, b.size, err);
	nr_bytes_release(&b);
	return code;
}

static bool ends_with(const char *s, const char *tail)
{
	const size_t n = strlen(s), m = strlen(tail);
	return n >= m && !strcmp(s + n - m, tail);
}

/* The name under which a folder's tokenizer has this file, or NULL: the folder that it stands in is the tokenizer. */
static const char *name_in_folder(const char *path)
{
	static const char *const tails[][2] = { { "merges.txt", "merges.txt" }, { ".txt", "vocab.txt" }, { "vocab.json", "vocab.json" },
		{ ".json", "tokenizer.json" } };
	struct stat st;
	if (!stat(path, &st) && S_ISDIR(st.st_mode)) return NULL;
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
		if (ends_with(path, tails[i][0])) return tails[i][1];
	return NULL;
}

/* Of a vocabulary that was named by its file, the others in its folder may belong to another tokenizer. */
static bool belongs(const char *name, const char *named)
{
	static const char *const words[] = { "vocab.txt", "tokenizer.json", "vocab.json", "merges.txt" };
	int is = -1, of = -1;
	for (int i = 0; i < 4; i++) {
		if (!strcmp(name, words[i])) is = i;
		if (named && !strcmp(named, words[i])) of = i;
	}
	return !named || is < 0 || (is >= 2 && of >= 2 && is != of);
}

int nr_tokenizer_copy(const char *path, const char *dir, struct nr_error *err)
{
	static const char *const names[] = { "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
		"vocab.txt", "vocab.json", "merges.txt" };
	struct stat st;
	const bool folder = !stat(path, &st) && S_ISDIR(st.st_mode);
	const char *slash = strrchr(path, '/'), *named = name_in_folder(path);
	int code = NR_OK;
	for (size_t i = 0; i < sizeof names / sizeof *names && !code; i++) {
		struct nr_str from = { 0 }, to = { 0 };
		const bool itself = named && !strcmp(names[i], named);
		if (itself) nr_str_add(&from, path);
		else if (folder) nr_str_printf(&from, "%s/%s", path, names[i]);
		else nr_str_printf(&from, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, names[i]);
		nr_str_printf(&to, "%s/%s", dir, names[i]);
		if (from.failed || to.failed) code = nr_fail(err, NR_EMEMORY, "cannot copy", path, "out of memory");
		else if ((itself || belongs(names[i], named)) && !access(from.text, R_OK)) code = copy(from.text, to.text, err);
		nr_str_release(&from);
		nr_str_release(&to);
	}
	return code;
}
