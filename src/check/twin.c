/* The program in double that `norma check` starts: values and results of the same subjects, as text. */
#include "base/mem.h"
#include "check/check.h"
#include "norma/plugin.h"

static void run(void *context, const struct nr_subject *s)
{
	if (s) nr_check_run(context, s);
}

int nr_check_twin(int argc, char **argv, FILE *out, FILE *log)
{
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_checker k = { .dump = out };
	char text[2048];
	for (int i = 1; arena && i < argc && !err.code; i++) {
		if (!strcmp(argv[i], "--plugin") && i + 1 < argc) nr_plugin_load(argv[++i], &err);
		else nr_subjects_find(argv[i], run, &k, arena, &err);
	}
	if (err.code) fprintf(log, "%s\n", nr_error_text(&err, text, sizeof text));
	nr_arena_free(arena);
	return err.code || !arena || fflush(out) ? 1 : 0;
}
