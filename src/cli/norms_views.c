/* See norms_views.h. */
#include "norms_views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/flow.h"
#include "base/json.h"
#include "base/save.h"
#include "base/table.h"
#include "draw/scatter.h"
#include "draw/sheet.h"
#include "laws/sphere.h"

enum { MOST = 8 };                              /* norms or placements at once: colours of a chart */

/* Words of a list into the arena; -1: too many, or out of memory. */
static int words_of(struct cli *c, const char *list, const char *(*word)[MOST])
{
	int n = 0;
	for (const char *s = list + strspn(list, " "); *s; s += strspn(s, " ")) {
		const size_t len = strcspn(s, " ");
		if (n == MOST) return cli_usage(c, "at most %d can be shown at once", MOST), -1;
		if (!((*word)[n++] = nr_arena_printf(c->arena, "%.*s", (int)len, s))) {
			nr_fail(c->err, NR_EMEMORY, "cannot read", list, "out of memory");
			return -1;
		}
		s += len;
	}
	return n;
}

static int save_json(const json_t *all, struct cli *c, const char *dir, const char *name)
{
	const char *path = nr_arena_printf(c->arena, "%s/%s", dir, name);
	char *text = nr_json_dump(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	const int code = path && text ? nr_save_file(path, text, strlen(text), c->err)
				      : nr_fail(c->err, NR_EMEMORY, "cannot write", dir, "out of memory");
	free(text);
	return code;
}

/* ---- sphere ------------------------------------------------------------------------------------------------------------ */

static int draw_sphere(struct cli *c, const struct nr_sphere *all, int n, const char *dir)
{
	static const char *const picture[NR_SPHERE_PICTURES] = { "picture 0", "picture 1", "picture 2", "picture 3", "picture 4",
		"picture 5" };
	int32_t *group = nr_arena_alloc(c->arena, NR_SPHERE_POINTS * sizeof *group);
	double(*at)[2] = nr_arena_alloc(c->arena, NR_SPHERE_POINTS * sizeof *at);
	struct nr_sheet sheet = { 0 };
	if (!group || !at) return nr_fail(c->err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	for (int32_t i = 0; i < NR_SPHERE_POINTS; i++) group[i] = i / NR_SPHERE_TOKENS;
	for (int i = 0; i < n; i++) {
		nr_sphere_view(&all[i], at);
		if (i % 3 == 0) nr_sheet_row(&sheet);
		nr_sheet_put(&sheet, !strcmp(all[i].norm, "none") ? "the cloud itself" : all[i].norm, nr_svg_scatter(&sheet.panel,
			&(struct nr_scatter){ .name = all[i].norm, .n = NR_SPHERE_POINTS, .at = at[0], .group = group,
				.groups = NR_SPHERE_PICTURES,
				.group_name = picture, .legend = i == n - 1, .side = 300, .reach = 4.8, .circle = sqrt(3) }));
	}
	return nr_sheet_save(&sheet, dir, "sphere.svg", "Where norms put a cloud of points with three channels",
		"The circle is the sphere of radius sqrt(3), seen from the side. RMS puts every point onto it; layer "
		"normalization onto the ring where it meets the plane of mean 0, so one direction and the length are "
		"lost. Batch normalization moves and stretches the whole cloud along each channel, and instance "
		"normalization each picture: lengths stay different. Group normalization with one group moves and "
		"scales each picture without changing its shape. Colours and shapes stand for pictures.", c->err);
}

static json_t *sphere_json(const struct nr_sphere *s)
{
	json_t *points = json_array();
	for (int64_t i = 0; i < NR_SPHERE_POINTS; i++)
		json_array_append_new(points, json_pack("[f,f,f]", (double)s->at[i][0], (double)s->at[i][1], (double)s->at[i][2]));
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:o}", "norm", s->norm, "length", s->length, "length_sd", s->length_sd, "off_plane",
		s->off_plane, "uniformity", s->uniformity, "points", points);
}

static void print_sphere(const struct nr_sphere *all, int n)
{
	static const char *const titles[] = { "norm", "length", "sd", "off the plane", "uniformity" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < n; i++) {
		nr_table_cell(t, "%s", all[i].norm);
		nr_table_cell(t, "%.4f", all[i].length);
		nr_table_cell(t, "%.4f", all[i].length_sd);
		nr_table_cell(t, "%.4f", all[i].off_plane);
		nr_table_cell(t, "%.3f", all[i].uniformity);
	}
	cli_print_table(t);
	printf("\n"
	       "%d points of 3 channels in %d pictures. length: sqrt(3) = 1.7321 is the sphere; off the plane: mean distance from\n"
	       "the plane of mean 0; uniformity of the directions: 0 when all are equal, lower when they are spread\n",
		NR_SPHERE_POINTS, NR_SPHERE_PICTURES);
}

int cli_norms_sphere(struct cli *c, const struct norms_views *v)
{
	const char *norm[MOST];
	const int n = words_of(c, *v->norm ? v->norm : "none rms layer group:groups=1 instance batch", &norm);
	struct nr_sphere *all = nr_arena_alloc(c->arena, MOST * sizeof *all);
	if (n < 0) return c->err->code;
	if (!all) return nr_fail(c->err, NR_EMEMORY, "cannot make the cloud", NULL, "out of memory");
	json_t *list = json_array();
	for (int i = 0; !c->err->code && i < n; i++)
		if (!nr_sphere_run(&all[i], norm[i], c->err)) json_array_append_new(list, sphere_json(&all[i]));
	if (!c->err->code && *v->out && !nr_folder_make(v->out, c->err) && !draw_sphere(c, all, n, v->out))
		save_json(list, c, v->out, "sphere.json");
	if (!c->err->code && !v->json) print_sphere(all, n);
	if (!c->err->code && v->json) return cli_print_json(list, c->err);
	json_decref(list);
	return c->err->code;
}

/* ---- flow -------------------------------------------------------------------------------------------------------------- */

static int draw_flow(struct cli *c, const struct nr_flow *all, int n, const char *const *label, const char *dir)
{
	static const char *const title[] = { "gradient of a block's parameters, root mean square",
		"length of a token after a block" };
	const int64_t L = all[0].blocks;
	double *x = nr_arena_alloc(c->arena, (size_t)L * sizeof *x);
	struct nr_series series[MOST];
	struct nr_sheet sheet = { 0 };
	if (!x) return nr_fail(c->err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	for (int64_t l = 0; l < L; l++) x[l] = (double)l;
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < n; i++)
			series[i] = (struct nr_series){ .label = label[i], .x = x, .y = k ? all[i].size : all[i].gradient, .n = L, .arm = i,
				.weight = NR_BOLD };
		nr_sheet_put(&sheet, title[k], nr_svg_chart(&sheet.panel, &(struct nr_chart){ .name = title[k], .x_label = "block",
			.y_label = k ? "length" : "gradient", .scale = NR_LOG_IF_WIDE, .x_whole = true, .series = series, .count = n }));
	}
	return nr_sheet_save(&sheet, dir, "flow.svg", "How the gradient flows before training, by where norms sit",
		"An even curve means that all blocks get gradients of the same size. With norms on the sum (post, "
		"prepost) tokens keep their length and the blocks near the output get large gradients however deep "
		"the model is, which is why such models need a warm-up. Where a path leads through without norms "
		"(pre, sandwich, respost) tokens grow with depth and later blocks get smaller gradients.", c->err);
}

static json_t *flow_json(const struct nr_flow *f)
{
	json_t *gradient = json_array(), *size = json_array();
	for (int64_t l = 0; l < f->blocks; l++) {
		json_array_append_new(gradient, isfinite(f->gradient[l]) ? json_real(f->gradient[l]) : json_null());
		json_array_append_new(size, isfinite(f->size[l]) ? json_real(f->size[l]) : json_null());
	}
	return json_pack("{s:s, s:o, s:o, s:o}", "plan", f->plan, "loss", isfinite(f->loss) ? json_real(f->loss) : json_null(), "gradient",
		gradient, "length", size);
}

static void print_flow(const struct nr_flow *all, int n, const char *const *label)
{
	static const char *const titles[] = { "placement", "loss", "gradient, first block", "last block", "last / first",
		"token, first block",
		"last block" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 7; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < n; i++) {
		const struct nr_flow *f = &all[i];
		const int64_t last = f->blocks - 1;
		nr_table_cell(t, "%s", label[i]);
		nr_table_cell(t, "%.3f", f->loss);
		nr_table_cell(t, "%.3g", f->gradient[0]);
		nr_table_cell(t, "%.3g", f->gradient[last]);
		nr_table_cell(t, "%.3g", f->gradient[last] / f->gradient[0]);
		nr_table_cell(t, "%.3g", f->size[0]);
		nr_table_cell(t, "%.3g", f->size[last]);
	}
	cli_print_table(t);
}

int cli_norms_flow(struct cli *c, const struct norms_views *v)
{
	const char *placement[MOST];
	const int n = words_of(c, *v->placement ? v->placement : "pre post prepost sandwich respost", &placement);
	const struct nr_flow_config config = { .model = *v->model ? v->model : "vit:image=16,patch=4,dim=64,depth=12,heads=4,classes=10",
		.batch = v->batch, .steps = 4, .seed = 1 };
	struct nr_flow *all = nr_arena_alloc(c->arena, MOST * sizeof *all);
	if (n < 0) return c->err->code;
	if (!all) return nr_fail(c->err, NR_EMEMORY, "cannot run the model", config.model, "out of memory");
	json_t *list = json_array();
	for (int i = 0; !c->err->code && i < n; i++) {
		const char *plan = nr_arena_printf(c->arena, "%s%splacement=%s", v->norm, *v->norm ? " " : "", placement[i]);
		if (!plan) nr_fail(c->err, NR_EMEMORY, "cannot make the plan", placement[i], "out of memory");
		else if (!nr_flow_run(&all[i], &config, plan, c->arena, c->err)) json_array_append_new(list, flow_json(&all[i]));
	}
	if (!c->err->code && *v->out && !nr_folder_make(v->out, c->err) && !draw_flow(c, all, n, placement, v->out))
		save_json(list, c, v->out, "flow.json");
	if (!c->err->code && !v->json) print_flow(all, n, placement);
	if (!c->err->code && v->json) return cli_print_json(list, c->err);
	json_decref(list);
	return c->err->code;
}
