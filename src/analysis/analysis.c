/* The parts of an analysis and the pass that they share. See analysis.h. */
#include "analysis/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/plot.h"
#include "base/save.h"
#include "base/table.h"
#include "draw/scatter.h"
#include "graph/comm.h"
#include "infer/finite.h"

#define PART(name) extern const struct nr_part nr_part_##name;
#include "analysis/parts.def"
#undef PART
#define PART(name) &nr_part_##name,
const struct nr_part *const nr_parts[] = {
#include "analysis/parts.def"
	NULL
};
#undef PART
_Static_assert(sizeof nr_parts / sizeof *nr_parts - 1 <= NR_PARTS_MAX, "a bit for each part");

int nr_parts_read(const char *names, unsigned *want, struct nr_error *err)
{
	*want = 0;
	for (const char *s = names + strspn(names, ", "); *s; s += strspn(s, ", ")) {
		char word[64];
		const size_t n = strcspn(s, ", ");
		snprintf(word, sizeof word, "%.*s", (int)(n < 63 ? n : 63), s);
		struct nr_near near = { .word = word };
		unsigned bit = 0;
		for (int i = 0; nr_parts[i]; i++) {
			if (!strcmp(nr_parts[i]->name, word)) bit = 1u << i;
			nr_near_try(&near, nr_parts[i]->name);
		}
		if (!bit) {
			nr_fail(err, NR_EUSAGE, "unknown part of the analysis", word, NULL);
			return near.best ? nr_hint(err, "did you mean '%s'?", near.best)
					 : nr_hint(err, "norma analyze --help lists them");
		}
		*want |= bit;
		s += n;
	}
	return *want ? NR_OK : nr_fail(err, NR_EUSAGE, "no part of the analysis was given", names, NULL);
}

int nr_analysis_tick(struct nr_analysis *a, struct nr_error *err)
{
	a->step++;
	if (!a->what.watch || !a->what.watch(a->what.context, a->step, a->steps)) return NR_OK;
	return nr_fail(err, NR_EVALUE, "cannot analyse", a->w->model.text, "interrupted");
}

static int begin(struct nr_analysis *a, struct nr_error *err)
{
	unsigned taps = 0;
	for (int i = 0; nr_parts[i]; i++)
		if (a->want >> i & 1) taps |= nr_parts[i]->taps;
	const bool graphs = a->view.form != NULL;
	if (nr_taps_open_graphs(&a->taps, a->w, graphs ? &a->view : NULL, a->batch, taps, a->sites, err)) return err->code;
	if (a->other && nr_taps_open_graphs(&a->other_taps, a->other, graphs ? &a->other_view : NULL, a->batch, 0, NULL,
		err)) return err->code;
	for (int i = 0; nr_parts[i]; i++) {
		if (!(a->want >> i & 1)) continue;
		if (!(a->own[i] = nr_arena_alloc(a->arena, nr_parts[i]->size + 1)))
			return nr_fail(err, NR_EMEMORY, "cannot analyse", a->w->model.text, "out of memory");
		if (nr_parts[i]->begin && nr_parts[i]->begin(a, a->own[i], err)) return err->code;
		if (nr_parts[i]->steps) a->steps += nr_parts[i]->steps(a);
	}
	return NR_OK;
}

static bool stays_finite(struct nr_taps *t, const struct nr_weights *w, const struct nr_batch *b, struct nr_error *err)
{
	if (nr_rows_finite(t->plan, t->pooled, b->samples)) return true;
	if (b->image) nr_from_floats(nr_plan_data(t->plan, t->image), b->image, nr_len(t->image));
	nr_not_finite(t->plan, w->store, &(struct nr_exec){ .train = 0 }, w->model.text, err);
	return false;
}

static int take(struct nr_analysis *a, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	if (b->image) nr_taps_run(&a->taps, b->image);
	if (b->image && a->other) nr_taps_run(&a->other_taps, b->image);
	if (!stays_finite(&a->taps, a->w, b, err) || (a->other && !stays_finite(&a->other_taps, a->other, b, err))) return err->code;
	for (int i = 0; nr_parts[i]; i++)
		if (a->want >> i & 1 && nr_parts[i]->take && nr_parts[i]->take(a, a->own[i], b, first, err)) return err->code;
	return nr_analysis_tick(a, err);
}

/* Names the parts that there are instead. */
static int no_such_part(const struct nr_analysis *a, const char *name, struct nr_error *err)
{
	struct nr_str parts = { 0 };
	for (int i = 0; nr_parts[i]; i++)
		if (a->texts ? nr_parts[i]->texts : nr_parts[i]->graphs)
			nr_str_printf(&parts, "%s%s", parts.len ? ", " : "", nr_parts[i]->name);
	nr_fail(err, NR_EUSAGE, a->texts ? "cannot analyse texts by" : "cannot analyse graphs by", name,
		"this part does not support them");
	nr_hint(err, "there are %s", nr_str_text(&parts));
	nr_str_release(&parts);
	return err->code;
}

/* Parts that are not for texts or graphs keep silent if all were asked for. */
static int leave_out_parts(struct nr_analysis *a, struct nr_error *err)
{
	for (int i = 0; nr_parts[i]; i++) {
		if (!(a->want >> i & 1) || (a->texts ? nr_parts[i]->texts : nr_parts[i]->graphs)) continue;
		if (!a->all) return no_such_part(a, nr_parts[i]->name, err);
		a->want &= ~(1u << i);
	}
	return a->texts && a->other ? nr_fail(err, NR_EUSAGE, "cannot compare with", a->other_name,
		"only pictures are supported") : NR_OK;
}

/* ---- graphs --------------------------------------------------------------------------------------------------------------- */

/* All are padded to the size of the largest; a batch is smaller if that is large. */
static int open_graphs(struct nr_analysis *a, struct nr_error *err)
{
	const struct nr_evaluation *e = &a->what;
	const struct nr_molecules *m = nr_source_molecules(e->source);
	int64_t known;
	if (nr_mol_expect(m, &a->w->model, err) || (a->other && nr_mol_expect(m, &a->other->model, err))) return err->code;
	if (nr_mol_list_make(&a->list, e->source, e->split, e->index, a->count, 0, err)) return err->code;
	if (nr_mol_form_make(&a->form, m, &a->w->model, err)) return err->code;
	if (a->other && nr_mol_form_make(&a->other_form, m, &a->other->model, err)) return err->code;
	a->view = (struct nr_mol_view){ &a->form, &a->list, nr_mol_sizes(a->list.largest).largest };
	a->other_view = (struct nr_mol_view){ &a->other_form, &a->list, a->view.nodes };
	a->batch = nr_mol_batch(a->batch, a->view.nodes);
	if (!m->tasks || (nr_mol_yes_or_no(m, &known) && known)) return NR_OK;
	if (!(a->target = nr_arena_alloc(a->arena, (size_t)a->count * sizeof *a->target)))
		return nr_fail(err, NR_EMEMORY, "cannot analyse", a->w->model.text, "out of memory");
	for (int64_t i = 0; i < a->count; i++) {                /* in the units of the output */
		a->target[i] = (double)m->target[a->list.graph[i] * m->tasks];
		if (a->w->targets) a->target[i] = (a->target[i] - a->w->target_mean[0]) / a->w->target_std[0];
	}
	return NR_OK;
}

static int run_graphs(struct nr_analysis *a, struct nr_error *err)
{
	const struct nr_molecules *m = a->form.set;
	int32_t *label = nr_arena_alloc(a->arena, (size_t)a->batch * sizeof *label);
	if (!label) return nr_fail(err, NR_EMEMORY, "cannot analyse", a->w->model.text, "out of memory");
	for (int64_t first = 0; first < a->count; first += a->batch) {
		const int64_t n = a->count - first < a->batch ? a->count - first : a->batch;
		if (!nr_comm_mine(a->comm, first / a->batch)) continue;
		for (int64_t i = 0; i < n; i++) {
			const float t = !a->target && m->tasks ? m->target[a->list.graph[first + i] * m->tasks] : (float)NAN;
			label[i] = isnan(t) ? -1 : (int32_t)t;
		}
		nr_taps_run_graphs(&a->taps, first, n, false);
		if (a->other) nr_taps_run_graphs(&a->other_taps, first, n, false);
		if (take(a, &(struct nr_batch){ .samples = n, .label = label }, first, err)) return err->code;
	}
	return NR_OK;
}

static int run_texts(struct nr_analysis *a, struct nr_error *err)
{
	int32_t *ids = nr_arena_alloc(a->arena, (size_t)(a->batch * a->length) * sizeof *ids);
	int32_t *label = nr_arena_alloc(a->arena, (size_t)a->batch * sizeof *label);
	if (!ids || !label) return nr_fail(err, NR_EMEMORY, "cannot analyse", a->w->model.text, "out of memory");
	for (int64_t i = 0; i < a->batch; i++) label[i] = -1;
	for (int64_t first = 0; first < a->count; first += a->batch) {
		const int64_t n = a->count - first < a->batch ? a->count - first : a->batch;
		if (!nr_comm_mine(a->comm, first / a->batch)) continue;
		for (int64_t i = 0; i < a->batch; i++)          /* what is missing in the last batch repeats its first text */
			memcpy(ids + i * a->length, a->texts + (first + (i < n ? i : 0)) * a->length, (size_t)a->length * sizeof *ids);
		nr_taps_run_texts(&a->taps, ids);
		if (take(a, &(struct nr_batch){ .samples = n, .label = label }, first, err)) return err->code;
	}
	return NR_OK;
}

static int run_pictures(struct nr_analysis *a, struct nr_error *err)
{
	const struct nr_evaluation *e = &a->what;
	const int64_t ranks = nr_comm_size(a->comm), rank = nr_comm_rank(a->comm), batches = (a->count + a->batch - 1) / a->batch;
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &e->augment, .batch = a->batch,
		.index = e->index, .count = e->count, .threads = e->workers, .share = { .of = ranks, .from = rank, .take = 1 },
		.stop = (batches - rank + ranks - 1) / ranks };
	struct nr_loader *loader = NULL;
	int code = nr_loader_open(&loader, &config, err);
	for (int64_t first = rank * a->batch; !code && first < a->count; first += ranks * a->batch) {
		struct nr_batch *b;
		if ((code = nr_loader_next(loader, &b, err))) break;
		code = take(a, b, first, err);
		nr_loader_give_back(loader, b);
	}
	nr_loader_close(loader);
	return code;
}

int nr_analysis_run(struct nr_analysis *a, struct nr_error *err)
{
	const bool graphs = !a->texts && a->what.source->of->kind == NR_MOLECULES;
	if (nr_model_expect(&a->w->model, a->texts ? NR_TEXTS : graphs ? NR_MOLECULES : NR_PICTURES, err)) return err->code;
	if ((a->texts || graphs) && leave_out_parts(a, err)) return err->code;
	const struct nr_evaluation *e = &a->what;
	a->count = e->count ? e->count : e->source->count[e->split];
	if (a->count < 2) return nr_fail(err, NR_EVALUE, "cannot analyse", a->w->model.text,
		"at least two samples are needed");
	if (a->batch > a->count) a->batch = a->count;
	if (!(a->arena = nr_arena_make())) return nr_fail(err, NR_EMEMORY, "cannot analyse", a->w->model.text, "out of memory");
	if (graphs && open_graphs(a, err)) return err->code;
	a->comm = e->comm;
	for (int i = 0; nr_parts[i]; i++)
		if (a->want >> i & 1 && !nr_parts[i]->deals) a->comm = NULL;    /* each rank does all of it */
	a->what.comm = NULL;
	a->steps = (a->count + a->batch - 1) / a->batch;
	if (begin(a, err)) return err->code;
	int code = a->texts ? run_texts(a, err) : graphs ? run_graphs(a, err) : run_pictures(a, err);
	for (int i = 0; !code && nr_parts[i]; i++)
		if (a->want >> i & 1 && nr_parts[i]->end) code = nr_parts[i]->end(a, a->own[i], err);
	return code;
}

int nr_analysis_spread(const struct nr_analysis *a, void *rows, size_t bytes, struct nr_error *err)
{
	return nr_comm_spread_batches(a->comm, a->count, a->batch, bytes, rows, err);
}

json_t *nr_analysis_json(const struct nr_analysis *a)
{
	json_t *all = json_object();
	for (int i = 0; all && nr_parts[i]; i++) {
		json_t *j = a->want >> i & 1 ? nr_parts[i]->json(a, a->own[i]) : NULL;
		if (j) json_object_set_new(all, nr_parts[i]->name, j);
	}
	return all;
}

void nr_analysis_show(const struct nr_analysis *a, struct nr_str *text)
{
	for (int i = 0; nr_parts[i]; i++) {
		if (!(a->want >> i & 1)) continue;
		const size_t before = text->len;
		nr_parts[i]->show(a, a->own[i], text);
		if (text->len == before && !a->all) nr_str_printf(text,
			"\n%s: the model has none\n", nr_parts[i]->title);
	}
}

int nr_analysis_write(const struct nr_analysis *a, const char *dir, struct nr_error *err)
{
	int code = nr_folder_make(dir, err);
	for (int i = 0; !code && nr_parts[i]; i++)
		if (a->want >> i & 1 && nr_parts[i]->write) code = nr_parts[i]->write(a, a->own[i], dir, err);
	return code;
}

void nr_analysis_close(struct nr_analysis *a)
{
	nr_taps_close(&a->taps);
	nr_taps_close(&a->other_taps);
	nr_mol_list_release(&a->list);
	nr_mol_form_release(&a->form);
	nr_mol_form_release(&a->other_form);
	nr_arena_free(a->arena);
	a->arena = NULL;
}

/* ---- what the parts share ------------------------------------------------------------------------------------------------- */

/* Longer words before those that they begin with. */
struct word { const char *picture, *text, *graph; };
static const struct word words[] = { { "in tokens of the grid", NULL, "in bonds" }, { "patch projection", "embedding", "embedding" },
	{ "patch tokens", "tokens", "nodes" }, { "patch token", "token", "node" }, { "special tokens", NULL, "[VNode]" },
	{ "other tokens", NULL, "nodes" }, { "all tokens", NULL, "all tokens" }, { "patches", "tokens", "nodes" }, { "[CLS]",
		NULL, "[VNode]" },
	{ "tokens", NULL, "nodes" }, { "token", NULL, "node" }, { "pictures", "texts", "graphs" }, { "picture", "text", "graph" } };

const char *nr_say(const struct nr_analysis *a, const char *text)
{
	struct nr_str s = { 0 };
	if (!a->texts && !a->view.form) return text;
	while (*text) {
		const struct word *w = NULL;
		for (size_t i = 0; i < sizeof words / sizeof *words && !w; i++)
			if (!strncmp(text, words[i].picture, strlen(words[i].picture))) w = &words[i];
		const char *to = !w ? NULL : a->texts ? w->text : w->graph;
		if (to) nr_str_add(&s, to);
		else nr_str_add_n(&s, text, w ? strlen(w->picture) : 1);
		text += w ? strlen(w->picture) : 1;
	}
	const char *said = nr_str_keep(&s, a->arena);
	return said ? said : "";
}

void nr_colour_samples(const struct nr_analysis *a, const int32_t *label, struct nr_scatter *c)
{
	static const char *const answers[] = { "no", "yes" };
	const struct nr_source *source = a->what.source;
	c->group = label, c->groups = source->classes, c->group_name = (const char *const *)source->class_name;
	if (a->target) c->value = a->target, c->value_name = "target";
	else if (a->view.form) c->groups = 2, c->group_name = answers;
}

json_t *nr_json_number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

json_t *nr_json_numbers(int64_t n, const double *v)
{
	json_t *all = json_array();
	for (int64_t i = 0; i < n; i++) json_array_append_new(all, nr_json_number(v[i]));
	return all;
}

int nr_table_save(struct nr_table *t, const char *dir, const char *name, struct nr_error *err)
{
	struct nr_str path = { 0 }, text = { 0 };
	nr_str_printf(&path, "%s/%s", dir, name);
	nr_table_csv(t, &text);
	const int code = path.failed || text.failed ? nr_fail(err, NR_EMEMORY, "cannot write", name, "out of memory")
						    : nr_save_file(nr_str_text(&path), text.text, text.len, err);
	nr_str_release(&path);
	nr_str_release(&text);
	nr_table_free(t);
	return code;
}

void nr_cell_number(struct nr_table *t, char form, int digits, double v, const char *unit)
{
	if (!isfinite(v)) nr_table_cell(t, "%s", "");
	else if (form == 'f') nr_table_cell(t, "%.*f%s", digits, v, unit);
	else nr_table_cell(t, "%.*g%s", digits, v, unit);
}

void nr_table_show(struct nr_table *t, struct nr_str *text)
{
	nr_table_text(t, text);
	nr_table_free(t);
}

void nr_show_curve(struct nr_str *text, const char *title, int64_t n, const double *y)
{
	int64_t *x = malloc((size_t)(n + 1) * sizeof *x);
	for (int64_t i = 0; x && i < n; i++) x[i] = i;
	nr_str_printf(text, "\n%s\n", title);
	if (x) nr_plot_text(&(struct nr_plot){ x, y, n, 40, 6 }, text);
	free(x);
}

struct nr_size nr_draw_curves(struct nr_str *s, const struct nr_curves *c)
{
	enum { MOST = 8 };
	struct nr_series series[MOST];
	double *x = malloc((size_t)(c->n + 1) * sizeof *x);
	const int count = c->count < MOST ? c->count : MOST;
	if (!x) {
		s->failed = true;
		return (struct nr_size){ 0, 0 };
	}
	for (int64_t i = 0; i < c->n; i++) x[i] = (double)i;
	for (int k = 0; k < count; k++)
		series[k] = (struct nr_series){ .label = c->label ? c->label[k] : NULL, .x = x, .y = c->y + k * c->n, .n = c->n, .arm = k,
			.weight = NR_BOLD };
	const struct nr_size size = nr_svg_chart(s, &(struct nr_chart){ .name = c->name, .x_label = c->x_label, .y_label = c->y_label,
		.scale = NR_LOG_IF_WIDE, .x_whole = true, .series = series, .count = count });
	free(x);
	return size;
}
