/* Sentence embeddings with libnorma: each line of standard input as a row of numbers, as `norma embed MODEL` gives them.
 *
 *   cc embed.c -o embed $(pkg-config --cflags --libs norma) && echo "a sentence" | ./embed model/
 *
 * The folder has model.safetensors and the tokenizer's files, as Hugging Face, sentence-transformers and norma leave them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <norma/norma.h>

struct lines { char **text; int64_t count; };

static struct lines read_lines(FILE *f)
{
	struct lines l = { 0 };
	char *line = NULL;
	size_t room = 0;
	for (ssize_t n; (n = getline(&line, &room, f)) >= 0;) {
		if (n && line[n - 1] == '\n') line[n - 1] = 0;
		char **more = realloc(l.text, (size_t)(l.count + 1) * sizeof *more);
		if (!more || !(more[l.count] = strdup(line))) abort();
		l.text = more;
		l.count++;
	}
	free(line);
	return l;
}

static int embed(const char *folder, const struct lines *l, struct nr_error *err)
{
	struct nr_weights *w = NULL;
	struct nr_tokenizer *t = NULL;
	struct nr_text_runner *r = NULL;
	nr_real *out = NULL;
	int code = nr_weights_open(&w, folder, NULL, err);
	if (!code) code = nr_tokenizer_open(&t, folder, err);
	if (!code) code = nr_text_runner_open(&r, w, t, NULL, err);
	const int64_t width = code ? 0 : nr_text_runner_width(r);
	if (!code && !(out = malloc((size_t)(l->count * width + 1) * sizeof *out))) abort();
	if (!code) code = nr_text_runner_run(r, (const char *const *)l->text, l->count, out, err);
	for (int64_t i = 0; !code && i < l->count * width; i++) printf("%.9g%c", out[i], (i + 1) % width ? '\t' : '\n');
	free(out);
	nr_text_runner_close(r);
	nr_tokenizer_close(t);
	nr_weights_close(w);
	return code;
}

int main(int argc, char **argv)
{
	struct nr_error err = { 0 };
	char text[1024];
	if (argc != 2) return fprintf(stderr, "usage: %s MODEL < LINES\n", argv[0]), 2;
	struct lines l = read_lines(stdin);
	const int code = embed(argv[1], &l, &err);
	if (code) fprintf(stderr, "%s\n", nr_error_text(&err, text, sizeof text));
	for (int64_t i = 0; i < l.count; i++) free(l.text[i]);
	free(l.text);
	return code ? 1 : 0;
}
