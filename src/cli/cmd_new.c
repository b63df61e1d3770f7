/* norma new KIND NAME: a commented source to begin a plug-in with. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/save.h"
#include "cli.h"
#include "new/templates.h"
#include "norma/norma.h"

struct begin { char *output; };
static const struct nr_option options[] = {
	{ .name = "output", .type = NR_TSTRING, .offset = offsetof(struct begin, output), .size = sizeof(char *), .text = "",
	  .metavar = "FILE", .help = "where to write it; default NAME.c, and - is standard output", .letter = 'o' },
	NR_OPT_END
};

static const struct { const char *kind, *text; } kinds[] = { { "norm", cli_new_norm_c_in }, { "model", cli_new_model_c_in },
	{ "task", cli_new_task_c_in }, { "optimizer", cli_new_optimizer_c_in }, { "data", cli_new_data_c_in } };
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *text_of(struct cli *c, const char *kind)
{
	struct nr_near near = { .word = kind };
	for (int i = 0; i < KINDS; i++) {
		if (!strcmp(kinds[i].kind, kind)) return kinds[i].text;
		nr_near_try(&near, kinds[i].kind);
	}
	nr_fail(c->err, NR_EUSAGE, "cannot write a", kind, "it should be norm, model, task, optimizer or data");
	if (near.best) nr_hint(c->err, "did you mean '%s'?", near.best);
	return NULL;
}

/* The name becomes a name in C as well. */
static int check_name(struct cli *c, const char *name)
{
	const char *s = name;
	while (islower((unsigned char)*s) || (s > name && (isdigit((unsigned char)*s) || *s == '_'))) s++;
	if (*name && !*s) return NR_OK;
	nr_fail(c->err, NR_EUSAGE, "not a name", name, "it must begin with a lower-case letter");
	return nr_hint(c->err, "lower-case letters, digits and _ may follow");
}

static bool word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* NAME stands alone or before an underscore: NAME_wide. */
static void fill(struct nr_str *to, const char *text, const char *name)
{
	static const char mark[] = "NAME";
	const size_t n = sizeof mark - 1;
	for (const char *s = text; *s; s++) {
		const bool here = !strncmp(s, mark, n) && (s == text || !word_char(s[-1])) && !isalnum((unsigned char)s[n]);
		if (here) nr_str_add(to, name);
		else nr_str_add_n(to, s, 1);
		if (here) s += n - 1;
	}
}

static int write_source(struct cli *c, const char *path, const struct nr_str *text)
{
	if (text->failed) return nr_fail(c->err, NR_EMEMORY, "cannot write", path, "out of memory");
	if (!strcmp(path, "-")) return fputs(nr_str_text(text), stdout) < 0 ? NR_EIO : NR_OK;
	if (!access(path, F_OK)) {
		nr_fail(c->err, NR_EVALUE, "cannot write", path, "it exists already");
		return nr_hint(c->err, "name another file: -o FILE");
	}
	if (nr_save_file(path, nr_str_text(text), text->len, c->err)) return c->err->code;
	printf("%s\nnext              norma check %s\n", path, path);
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct begin *o = conf;
	if (args->count != 2) return cli_usage(c, "new needs a kind and a name, as in `norma new norm my_norm`");
	const char *text = text_of(c, args->item[0]), *name = args->item[1];
	if (!text || check_name(c, name)) return c->err->code;
	struct nr_str source = { 0 };
	fill(&source, text, name);
	const int code = write_source(c, *o->output ? o->output : nr_arena_printf(c->arena, "%s.c", name), &source);
	nr_str_release(&source);
	return code;
}

static void words(struct nr_str *s)
{
	for (int i = 0; i < KINDS; i++) nr_str_printf(s, "%s\n", kinds[i].kind);
}

const struct cli_command cli_new = {
	.name = "new",
	.title = "write a starting file for a plug-in, which passes `norma check`",
	.usage = "norm | model | task | optimizer | data NAME",
	.about = "Writes NAME.c: a small, complete and commented plug-in for you to change. Its first lines say how to\n"
		 "compile, check and use it.",
	.conf_size = sizeof(struct begin),
	.options = options,
	.words = words,
	.run = run,
};
