/* crash-get URL FILE SHA256 FOLDER: a download and its unpacking, as `norma data get` does it, of a file that is no data set. */
#include <stdio.h>

#include "base/save.h"
#include "fetch/fetch.h"
#include "fetch/unpack.h"

int main(int argc, char **argv)
{
	struct nr_error err = { 0 };
	char text[2048];
	if (argc != 5) return 2;
	const struct nr_fetch f = { .url = argv[1], .path = argv[2], .sha256 = argv[3] };
	int code = nr_fetch(&f, &err);
	if (!code) code = nr_remove_tree(argv[4], NULL);
	if (!code) code = nr_folder_make(argv[4], &err);
	if (!code) code = nr_unpack(&(struct nr_unpack){ .archive = argv[2], .into = argv[4] }, &err);
	if (err.code) fprintf(stderr, "crash-get: %s\n", nr_error_text(&err, text, sizeof text));
	return code ? 1 : 0;
}
