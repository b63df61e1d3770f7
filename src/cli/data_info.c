/* norma data info: what reading a whole split tells. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "data.h"
#include "data/measure.h"

static bool tell(void *arg, int64_t done)
{
	nr_progress_update(arg, done, NULL);
	return true;
}

static json_t *triple(const double *v, int32_t n)
{
	json_t *a = json_array();
	for (int32_t i = 0; i < n; i++) json_array_append_new(a, json_real(v[i]));
	return a;
}

static int print_json(struct cli *c, const struct nr_source *s, enum nr_split split, const struct nr_split_facts *m,
	const int64_t *count)
{
	json_t *r = json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:[ii], s:[ii]}", "name", s->of->name, "title",
		s->of->title, "dir", s->dir,
		"classes", (int)s->classes, "channels", (int)s->channels, "split", nr_split_name(split),
			"height", m->h[0], m->h[1], "width",
		m->w[0], m->w[1]);
	json_t *counts = json_object(), *labels = json_array(), *names = json_array();
	for (enum nr_split i = NR_TRAIN; i < NR_SPLITS; i++) json_object_set_new(counts, nr_split_name(i),
		json_integer(s->count[i]));
	for (int32_t i = 0; i < s->classes; i++) {
		json_array_append_new(labels, json_integer(count[i]));
		if (s->class_name) json_array_append_new(names, json_string(s->class_name[i]));
	}
	json_object_set_new(r, "count", counts);
	json_object_set_new(r, "mean", triple(m->mean, s->channels));
	json_object_set_new(r, "std", triple(m->std, s->channels));
	json_object_set_new(r, s->of->objects ? "objects" : "labels", labels);
	json_object_set_new(r, "class_names", names);
	return nr_json_line(stdout, r, c->err);
}

/* At most so many bars; above that only the range of the counts. */
static void histogram(const struct nr_source *s, const int64_t *count, int64_t none)
{
	enum { MOST = 110, WIDTH = 40 };
	int64_t most = 1, least = INT64_MAX;
	for (int32_t i = 0; i < s->classes; i++) {
		if (count[i] > most) most = count[i];
		if (count[i] < least) least = count[i];
	}
	const char *what = s->of->objects ? "objects" : "pictures";
	if (none) printf("\n%lld %s\n", (long long)none, s->of->objects ? "crowds, of which objects are not counted" :
		"pictures have no label");
	if (s->classes < 1 || most < least) return;
	printf("\n%s%s of each class%s: %lld to %lld\n", cli_bold(), s->of->objects ? "Objects" : "Pictures", cli_plain(), (long long)least,
		(long long)most);
	if (s->classes > MOST) return;
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "class", NR_RIGHT);
	nr_table_column(t, "name", NR_LEFT);
	nr_table_column(t, what, NR_RIGHT);
	nr_table_column(t, "", NR_LEFT);
	for (int32_t i = 0; i < s->classes; i++) {
		char bar[WIDTH * 3 + 1] = "";
		for (int64_t k = 0; k < (count[i] * WIDTH + most - 1) / most; k++) strcat(bar, "\xE2\x96\x88");
		nr_table_cell(t, "%d", i);
		nr_table_cell(t, "%s", s->class_name ? s->class_name[i] : "");
		nr_table_cell(t, "%lld", (long long)count[i]);
		nr_table_cell(t, "%s", bar);
	}
	struct nr_str text = { 0 };
	nr_table_text(t, &text);
	fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	nr_table_free(t);
}

/* As nr_source_histogram: objects of each class, and how many crowds. */
static int64_t count_objects(const struct nr_source *s, enum nr_split split, int64_t *count)
{
	int64_t crowds = 0;
	for (int64_t i = 0; i < s->count[split]; i++) {
		const struct nr_objects *o = nr_source_objects(s, split, i);
		for (int32_t k = 0; k < o->count; k++)
			if (o->object[k].crowd) crowds++;
			else count[o->object[k].label]++;
	}
	return crowds;
}

static void row(const char *label) { printf("%s%-10s%s", cli_bold(), label, cli_plain()); }

static void channels(const char *label, const double *v, int32_t n)
{
	row(label);
	for (int32_t i = 0; i < n; i++) printf("%s%.6f", i ? " " : "", v[i]);
	printf("\n");
}

static void print_text(const struct nr_source *s, enum nr_split split, const struct nr_split_facts *m,
	const int64_t *count, int64_t none)
{
	printf("%s%s%s: %s\n", cli_bold(), s->of->name, cli_plain(), s->of->title);
	if (*s->of->cite) row("paper"), printf("%s\n", s->of->cite);
	row("licence"), printf("%s\n", s->of->licence);
	row("where"), printf("%s\n", s->dir);
	row("pictures");
	for (enum nr_split i = NR_TRAIN, first = 1; i < NR_SPLITS; i++)
		if (s->count[i]) printf("%s%lld %s", first ? "" : ", ", (long long)s->count[i],
			nr_split_name(i)), first = 0;
	printf("\n");
	row("classes"), printf("%d\n", s->classes);
	row("size");
	if (m->h[0] == m->h[1] && m->w[0] == m->w[1]) printf("%d x %d", m->w[0], m->h[0]);
	else printf("%d..%d wide, %d..%d high", m->w[0], m->w[1], m->h[0], m->h[1]);
	printf(", %s\n", s->channels == 1 ? "grey" : "RGB");
	printf("\n%sSplit %s%s, values / 255\n", cli_bold(), nr_split_name(split), cli_plain());
	channels("mean", m->mean, s->channels);
	channels("std", m->std, s->channels);
	if (s->std[0] > 0) {
		const double mean[] = { (double)s->mean[0], (double)s->mean[1], (double)s->mean[2] };
		const double std[] = { (double)s->std[0], (double)s->std[1], (double)s->std[2] };
		channels("used mean", mean, s->channels);
		channels("used std", std, s->channels);
	}
	histogram(s, count, none);
	for (const struct nr_data_file *f = s->of->files; f && f->path; f++) {
		if (f == s->of->files) printf("\n%sOfficial files%s (norma data check %s compares them)\n",
			cli_bold(), cli_plain(), s->of->name);
		printf("%-33s%s%s\n", f->md5 ? f->md5 : "-", f->path, f->optional ? " (optional)" : "");
	}
}

int data_info(struct cli *c, const struct data *o, const char *name)
{
	struct nr_source *s;
	if (nr_source_open(&s, name, *o->root ? o->root : NULL, c->err)) return c->err->code;
	const enum nr_split split = (enum nr_split)o->split;
	struct nr_split_facts m;
	struct nr_progress bar;
	int64_t *count = nr_arena_alloc(c->arena, ((size_t)s->classes + 1) * sizeof *count);
	int e = count ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot read", name, "out of memory");
	if (!e && !s->count[split]) e = nr_fail(c->err, NR_EVALUE, "nothing to read in", name,
		"there is no split %s", nr_split_name(split));
	if (!e && s->of->kind == NR_TEXTS) e = data_text_info(c, o, s);
	else if (!e && s->of->kind == NR_MOLECULES) e = data_info_graphs(c, o, s, split);
	else if (!e) {
		nr_progress_init(&bar, stderr, nr_split_name(split), s->count[split], 0);
		e = nr_source_measure(s, split, &m, tell, &bar, c->err);
		nr_progress_release(&bar);
	}
	if (!e && s->of->kind == NR_PICTURES) {
		const int64_t none = s->of->objects ? count_objects(s, split, count) : nr_source_histogram(s, split, count);
		if (o->json) e = print_json(c, s, split, &m, count);
		else print_text(s, split, &m, count, none);
	}
	nr_source_close(s);
	return e;
}
