/* Norm surgery from the command line: see surgery.h. */
#include "surgery.h"

#include <math.h>
#include <stdio.h>

#include "analysis/analysis.h"
#include "base/progress.h"
#include "base/table.h"
#include "norma/tokenizer.h"

enum { BATCH = 32 };

static int tell(void *context, int64_t done, int64_t of)
{
	struct nr_progress *bar = context;
	bar->total = of;
	nr_progress_update(bar, done, NULL);
	return 0;
}

static int open_samples(struct cli *c, const struct cli_surgery *o, const struct nr_weights *w, const char *path, struct nr_samples *s)
{
	struct nr_source *source;
	if (nr_source_open(&source, o->calibrate, *o->data_root ? o->data_root : NULL, c->err)) return c->err->code;
	const bool texts = w->model.of->reads == NR_TEXTS;
	int code = nr_source_expect(source, texts ? NR_TEXTS : NR_PICTURES, c->err);
	if (!code && !texts) code = nr_model_expect(&w->model, NR_PICTURES, c->err);
	if (!code && texts) {
		struct nr_tokenizer *t = NULL;
		code = nr_tokenizer_open(&t, *o->tokenizer ? o->tokenizer : path, c->err);
		if (!code) code = nr_samples_texts(s, w, t, source, o->samples, BATCH, c->err);
		nr_tokenizer_close(t);
	} else if (!code) {
		const int64_t side = nr_model_int(&w->model, "image"), channels = nr_model_int(&w->model, "channels");
		struct nr_evaluation e = { .source = source, .split = NR_TRAIN, .count = o->samples, .workers = 1,
			.augment = nr_augment_for_eval(&w->view, side, (int32_t)channels, w->view.crop_share) };
		e.augment.normalize = w->normalize;
		if (e.count > source->count[NR_TRAIN]) e.count = source->count[NR_TRAIN];
		code = nr_samples_pictures(s, w, &e, BATCH, c->err);
	}
	nr_source_close(source);
	return code;
}

int cli_surgery_run(struct cli *c, const struct cli_surgery *o, struct nr_weights *w, const char *path, struct nr_surgery *s)
{
	struct nr_samples samples = { 0 };
	struct nr_progress bar;
	*s = (struct nr_surgery){ .watch = tell, .context = &bar };
	if (*o->calibrate && open_samples(c, o, w, path, &samples)) return c->err->code;
	nr_progress_init(&bar, stderr, "sites", 1, 0);
	const int code = nr_surgery(w, o->norm, *o->calibrate ? &samples : NULL, s, c->err);
	nr_progress_release(&bar);
	nr_samples_release(&samples);
	return code;
}

void cli_surgery_print(const struct nr_surgery *s)
{
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "site", "was", "is", "copied", "fitted" };
	const bool measured = isfinite(s->cosine[1]);
	for (int i = 0; i < (measured ? 5 : 3); i++) nr_table_column(t, titles[i], i < 3 ? NR_LEFT : NR_RIGHT);
	for (int64_t i = 0; i < s->sites; i++) {
		const struct nr_surgery_site *k = &s->site[i];
		nr_table_cell(t, "%s", k->name);
		nr_table_cell(t, "%s", k->was);
		nr_table_cell(t, "%s", k->is);
		for (int j = 0; measured && j < 2; j++) nr_table_number(t, 100 * (j ? k->fitted : k->copied), " %");
	}
	printf("norms replaced at %lld sites%s\n", (long long)s->sites,
		measured ? "; change of the output there, with gain and bias copied and fitted" : "");
	cli_print_table(t);
	if (isfinite(s->cosine[0])) printf("special tokens  %.2f %% change, cosine %.4f\n", 100 * s->change[0], s->cosine[0]);
	if (measured) printf("other tokens    %.2f %% change, cosine %.4f\n", 100 * s->change[1], s->cosine[1]);
	if (s->sites && !measured)
		puts("not calibrated: running statistics, if any, have their initial values; --calibrate DATA "
		     "measures them and fits gain and bias");
}

json_t *cli_surgery_json(const struct nr_surgery *s)
{
	json_t *sites = json_array();
	for (int64_t i = 0; i < s->sites; i++)
		json_array_append_new(sites, json_pack("{s:s, s:s, s:s, s:o, s:o}", "site", s->site[i].name, "was", s->site[i].was,
			"is", s->site[i].is, "copied", nr_json_number(s->site[i].copied), "fitted", nr_json_number(s->site[i].fitted)));
	return json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "sites", sites, "carried", (json_int_t)s->carried,
		"fresh", (json_int_t)s->fresh, "change_special", nr_json_number(s->change[0]),
		"cosine_special", nr_json_number(s->cosine[0]), "change_tokens", nr_json_number(s->change[1]),
		"cosine_tokens", nr_json_number(s->cosine[1]));
}
