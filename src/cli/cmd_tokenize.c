/* norma tokenize: lines of text to token ids, and back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "token/hex.h"

static const char *const cuts[] = { "longest_first", "only_first", "only_second", NULL };

struct tokenize {
	char *vocab;
	bool pair, hex, tokens, decode, json, types, special;
	int64_t max_length, pad;
	int32_t cut;
};
static const struct nr_option options[] = {
	CLI_TEXT(struct tokenize, vocab, NULL, "PATH",
		"tokenizer.json, vocab.txt or vocab.json, a folder with one of them, or weights beside one"),
	NR_OPT_BOOL(struct tokenize, pair, "0", "read two texts per line, separated by a tab"),
	NR_OPT_INT(struct tokenize, max_length, 0, 0, 1000000000,
		"cut to N ids, special tokens included; 0: do not cut"),
	NR_OPT_ENUM(struct tokenize, cut, "longest_first", cuts, "which text of a pair is cut"),
	NR_OPT_INT(struct tokenize, pad, 0, 0, 1000000000, "pad to N ids; 0: do not pad"),
	NR_OPT_BOOL(struct tokenize, special, "1", "add special tokens; with --decode: keep them"),
	NR_OPT_BOOL(struct tokenize, tokens, "0", "write the tokens instead of their ids"),
	NR_OPT_BOOL(struct tokenize, types, "0", "also write the type ids, after a tab"),
	NR_OPT_BOOL(struct tokenize, decode, "0", "read ids and write the text"),
	NR_OPT_BOOL(struct tokenize, hex, "0",
		"read and write tab-separated lines with the texts in hexadecimal (see above)"),
	NR_OPT_BOOL(struct tokenize, json, "0", "print one line of JSON per text"),
	NR_OPT_END
};

struct work {
	struct cli *cli;
	const struct tokenize *opt;
	const struct nr_tokenizer *of;
	struct nr_encoder *encoder;
	struct nr_str out;
	int32_t *row, *row_types;       /* padded */
	int64_t line;
	bool pair;                      /* --hex: decided by the first line */
};

static int write_out(struct work *w)
{
	if (w->out.failed) return nr_fail(w->cli->err, NR_EMEMORY, "cannot tokenize", NULL, "out of memory");
	if (w->out.len && fwrite(w->out.text, 1, w->out.len, stdout) != w->out.len)
		return nr_fail(w->cli->err, NR_EIO, "cannot write", "standard output", "%s", strerror(errno));
	w->out.len = 0;
	return NR_OK;
}

static void put_ids(struct nr_str *out, const int32_t *id, int64_t n)
{
	char text[12];
	for (int64_t i = 0; i < n; i++) {
		int at = sizeof text;
		uint32_t v = (uint32_t)id[i];
		do text[--at] = (char)('0' + v % 10);
		while (v /= 10);
		if (i) text[--at] = ' ';
		nr_str_add_n(out, text + at, sizeof text - (size_t)at);
	}
}

static int put_json(struct work *w, const struct nr_encoding *e)
{
	json_t *ids = json_array(), *types = json_array(), *tokens = json_array();
	for (int64_t i = 0; i < e->count; i++) {
		json_array_append_new(ids, json_integer(e->ids[i]));
		json_array_append_new(types, json_integer(e->types[i]));
		json_array_append_new(tokens, json_string(nr_tokenizer_token(w->of, e->ids[i])));
	}
	return nr_json_add(&w->out, json_pack("{s:o, s:o, s:o}", "ids", ids, "types", types, "tokens", tokens), w->cli->err);
}

static int put(struct work *w, const struct nr_encoding *e)
{
	if (w->opt->json) return put_json(w, e);
	for (int64_t i = 0; w->opt->tokens && i < e->count; i++) {
		nr_str_add(&w->out, i ? " " : "");
		nr_str_add(&w->out, nr_tokenizer_token(w->of, e->ids[i]));
	}
	if (!w->opt->tokens) put_ids(&w->out, e->ids, e->count);
	if (w->opt->types) {
		nr_str_add(&w->out, "\t");
		put_ids(&w->out, e->types, e->count);
	}
	nr_str_add(&w->out, "\n");
	return NR_OK;
}

static int encode_line(struct work *w, const char *s, size_t n)
{
	const struct tokenize *o = w->opt;
	const char *tab = o->pair ? memchr(s, '\t', n) : NULL;
	if (o->pair && !tab) {
		nr_fail(w->cli->err, NR_EFORMAT, "cannot read", "standard input",
			"line %lld has no tab between two texts", (long long)w->line);
		return nr_hint(w->cli->err, "leave out --pair for one text per line");
	}
	const struct nr_encode_how how = { .max_length = o->max_length, .cut = (enum nr_cut)o->cut, .plain = !o->special };
	struct nr_encoding e;
	if (nr_encode(w->encoder, s, tab ? (size_t)(tab - s) : n, tab ? tab + 1 : NULL, tab ? n - (size_t)(tab - s) - 1 : 0, &how, &e,
		    w->cli->err)) {
		struct nr_error *err = w->cli->err;
		const size_t end = strlen(err->detail);
		snprintf(err->detail + end, sizeof err->detail - end, " (line %lld)", (long long)w->line);
		return err->code;
	}
	if (e.count < o->pad) {
		nr_encoding_pad(w->of, &e, o->pad, w->row, w->row_types, NULL);
		e = (struct nr_encoding){ w->row, w->row_types, o->pad };
	}
	return put(w, &e);
}

/* Ids separated by blanks. */
static int decode_line(struct work *w, char *s)
{
	int32_t *ids = NULL;
	int64_t count = 0, room = 0;
	int code = NR_OK;
	char *save = NULL;
	for (char *word = strtok_r(s, " \t", &save); word && !code; word = strtok_r(NULL, " \t", &save)) {
		int64_t id;
		if (!nr_parse_int(word, &id) || id < 0 || id > INT32_MAX || !nr_tokenizer_token(w->of, (int32_t)id)) {
			nr_fail(w->cli->err, NR_EVALUE, "cannot decode", word,
				"line %lld: it is not an id of this vocabulary", (long long)w->line);
			code = nr_hint(w->cli->err, "ids are from 0 to %lld", (long long)nr_tokenizer_size(w->of) - 1);
			break;
		}
		if (count == room) {
			int32_t *more = realloc(ids, (size_t)(room = 2 * room + 64) * sizeof *ids);
			if (!more) code = nr_fail(w->cli->err, NR_EMEMORY, "cannot decode", NULL, "out of memory");
			else ids = more;
		}
		if (!code) ids[count++] = (int32_t)id;
	}
	size_t bytes = 0;
	char *text = code ? NULL : nr_decode(w->of, ids, count, !w->opt->special, &bytes);
	if (!code && !text) code = nr_fail(w->cli->err, NR_EMEMORY, "cannot decode", NULL, "out of memory");
	if (text) nr_str_add_n(&w->out, text, bytes);
	nr_str_add(&w->out, "\n");
	free(text);
	free(ids);
	return code;
}

static int hex_line(struct work *w, const char *s, size_t n)
{
	if (w->line == 1) w->pair = w->opt->pair || nr_hex_is_pair(w->of, s, n);
	const bool cut = w->pair && !w->opt->max_length && nr_tokenizer_kind(w->of) == NR_WORDPIECE;
	const struct nr_hex_lines h = { .encoder = w->encoder, .pair = w->pair, .name = "standard input",
		.max_length = cut ? 24 : w->opt->max_length };
	return nr_hex_line(&h, s, n, w->line, &w->out, w->cli->err);
}

static int read_lines(struct work *w)
{
	char *line = NULL;
	size_t room = 0;
	int code = NR_OK;
	for (ssize_t n; !code && (n = getline(&line, &room, stdin)) >= 0;) {
		w->line++;
		if (n && line[n - 1] == '\n') line[--n] = 0;
		code = w->opt->hex ? hex_line(w, line, (size_t)n) : w->opt->decode ? decode_line(w, line) : encode_line(w, line, (size_t)n);
		if (!code && w->out.len > 1 << 16) code = write_out(w);
	}
	if (!code && ferror(stdin)) code = nr_fail(w->cli->err, NR_EIO, "cannot read", "standard input", "%s", strerror(errno));
	if (!code) code = write_out(w);
	if (!code && fflush(stdout)) code = nr_fail(w->cli->err, NR_EIO, "cannot write", "standard output", "%s", strerror(errno));
	free(line);
	return code;
}

static int check(struct cli *c, const struct tokenize *o)
{
	if (o->decode && (o->hex || o->pair || o->tokens || o->json || o->types)) return cli_usage(c,
		"--decode reads ids and writes texts, nothing else");
	if (o->hex && (o->tokens || o->json || o->types || o->pad || !o->special || o->cut)) return cli_usage(c,
		"--hex has its own output format");
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	struct work w = { .cli = c, .opt = conf };
	struct nr_tokenizer *t = NULL;
	if (args->count) return cli_usage(c, "tokenize reads standard input and takes no arguments");
	if (check(c, w.opt) || nr_tokenizer_open(&t, w.opt->vocab, c->err)) return c->err->code;
	w.of = t;
	const size_t pad = (size_t)w.opt->pad * sizeof *w.row;
	int code = nr_encoder_make(&w.encoder, t, c->err);
	if (!code && pad && (!(w.row = nr_arena_alloc(c->arena, pad)) || !(w.row_types = nr_arena_alloc(c->arena, pad))))
		code = nr_fail(c->err, NR_EMEMORY, "cannot tokenize", NULL, "out of memory");
	if (!code) code = read_lines(&w);
	nr_str_release(&w.out);
	nr_encoder_free(w.encoder);
	nr_tokenizer_close(t);
	return code;
}

const struct cli_command cli_tokenize = {
	.name = "tokenize",
	.title = "turn texts into token ids and back, as Hugging Face does",
	.usage = "<TEXTS",
	.about = "Reads one text per line and writes its ids. Supports WordPiece (BERT) and byte-level BPE (RoBERTa, GPT-2) from the\n"
		 "files that come with models; follows tokenizer_config.json beside them (do_lower_case and so on).\n"
		 "\n"
		 "With --hex the texts are hexadecimal UTF-8 in the first column (pairs: the first two) and may contain any\n"
		 "character; further columns are ignored. It writes these columns, the ids, and for BPE without pairs the ids with a\n"
		 "space put in front; for WordPiece pairs the type ids, and both again cut to --max-length (default 24). A second\n"
		 "column that is itself hexadecimal makes the lines pairs.",
	.conf_size = sizeof(struct tokenize),
	.options = options,
	.run = run,
};
