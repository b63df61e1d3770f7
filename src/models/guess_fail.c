/* What is said where a file does not tell which model it is. See guess.h. */
#include "models/guess.h"

int nr_guess_fail(const struct nr_guess *g, int seen, const char *what, const char *path, const char *norms_flag,
	struct nr_error *err)
{
	if (!seen) {
		nr_fail(err, NR_EUSAGE, what, path, "the file does not say which model it is, and looks like none that is known");
		return nr_hint(err, "name it: --model vit_tiny_patch16_224; `norma models --names` lists architectures");
	}
	if (*g->others) {
		nr_fail(err, NR_EUSAGE, what, path, "its tensors fit several architectures, and no config.json beside it says which: %s",
			g->others);
		return nr_hint(err, "choose one with --model");
	}
	if (!g->complete && g->misfit)
		nr_fail(err, NR_EUSAGE, what, path, "the file looks like %s, but %s", g->model, g->misfit);
	else nr_fail(err, NR_EUSAGE, what, path, "the file does not say which model it is%s%s", g->doubt ? ": " : "", g->doubt
		? g->doubt : "");
	if (!*g->norms) return nr_hint(err, "it looks like --model %s", g->model);
	return nr_hint(err, "it looks like --model %s %s \"%s\"", g->model, norms_flag, g->norms);
}
