/* The files of a tokenizer, for a folder of weights that is to be whole by itself. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/save.h"
#include "base/str.h"
#include "data/bytes.h"
#include "data/tokenizer.h"

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

int nr_tokenizer_copy(const char *path, const char *dir, struct nr_error *err)
{
	static const char *const names[] = { "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json",
		"merges.txt" };
	struct stat st;
	const bool folder = !stat(path, &st) && S_ISDIR(st.st_mode);
	const char *slash = strrchr(path, '/');
	int code = NR_OK;
	for (size_t i = 0; i < sizeof names / sizeof *names && !code; i++) {
		struct nr_str from = { 0 }, to = { 0 };
		if (folder) nr_str_printf(&from, "%s/%s", path, names[i]);
		else nr_str_printf(&from, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, names[i]);
		nr_str_printf(&to, "%s/%s", dir, names[i]);
		if (from.failed || to.failed) code = nr_fail(err, NR_EMEMORY, "cannot copy", path, "out of memory");
		else if (!access(from.text, R_OK)) code = copy(from.text, to.text, err);
		nr_str_release(&from);
		nr_str_release(&to);
	}
	return code;
}
