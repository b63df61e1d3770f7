/* The microscope's section of the page: profiles over depth at one step, and site against step as heat maps. Without JavaScript
 * the last step of one statistic is drawn; with it, statistic and step are chosen. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "draw/heatmap.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "draw/web.h"
#include "report/curves.h"
#include "report/microscope.h"

static const char *const group_title[NR_TOKEN_GROUPS] = { "[CLS] and other special tokens", "All other tokens" };
static const char first_stat[] = "in_length";

/* ---- what is drawn without JavaScript ----------------------------------------------------------------------------------- */

/* One line for each arm: sites by depth, at its last step. */
static void add_profile(struct nr_str *s, const struct nr_microscope_view *v, const struct nr_arms *arms, const char *stat, int group,
	struct nr_arena *arena)
{
	const size_t places = (size_t)v->sites * sizeof(double);
	struct nr_series *line = nr_arena_alloc(arena, (size_t)v->arms * sizeof *line);
	int count = 0;
	if (!line) s->failed = true;
	for (int i = 0; i < v->arms && !s->failed; i++) {
		const struct nr_microscope_file *f = &v->arm[i].file;
		double *x = nr_arena_alloc(arena, places), *y = nr_arena_alloc(arena, places);
		int column = 0, n = 0;
		if (!x || !y) s->failed = true;
		while (column < f->stats && strcmp(f->stat[column], stat)) column++;
		for (int k = 0; k < v->sites && column < f->stats && !s->failed; k++) {
			const int site = v->arm[i].place[k];
			const double value = site < 0 ? (double)NAN : nr_microscope_value(f, column, group, site, f->steps - 1);
			if (isfinite(value)) x[n] = k + 1, y[n++] = value;
		}
		if (n) line[count++] = (struct nr_series){ .label = arms->arm[v->arm[i].arm].label, .x = x, .y = y, .n = n,
			.arm = v->arm[i].arm, .weight = NR_BOLD };
	}
	const struct nr_chart chart = { .name = group_title[group], .x_label = "site, from the input to the output",
		.y_label = nr_microscope_title(stat), .scale = NR_LOG_IF_WIDE, .series = line, .count = count };
	nr_html_figure_open(s, "chart", group_title[group], "at the last step");
	nr_svg_chart(s, &chart);
	nr_html_figure_close(s);
}

/* One heat map for an arm and a kind of token: sites from top to bottom, steps from left to right. */
static void add_map(struct nr_str *s, const struct nr_microscope_view *v, int arm, const char *name, const char *stat, int group,
	struct nr_arena *arena)
{
	const struct nr_microscope_file *f = &v->arm[arm].file;
	const int cols = nr_microscope_shown_steps(f);
	double *value = nr_arena_alloc(arena, (size_t)(v->sites * cols + 1) * sizeof *value);
	const char **row = nr_arena_alloc(arena, (size_t)v->sites * sizeof *row), **col = nr_arena_alloc(arena, (size_t)cols * sizeof *col);
	int column = 0, rows = 0;
	if (!value || !row || !col) s->failed = true;
	while (column < f->stats && strcmp(f->stat[column], stat)) column++;
	for (int i = 0; i < v->sites && column < f->stats && !s->failed; i++) {
		bool any = false;
		for (int k = 0; k < cols && v->arm[arm].place[i] >= 0; k++) {
			const double x = nr_microscope_value(f, column, group, v->arm[arm].place[i], nr_microscope_shown_step(f, k));
			any |= isfinite(value[rows * cols + k] = x > 0 ? log10(x) : (double)NAN);
		}
		if (any) row[rows++] = v->site[i];
	}
	for (int k = 0; k < cols && !s->failed; k++)
		if (!(col[k] = nr_arena_printf(arena, "%lld", (long long)f->step[nr_microscope_shown_step(f, k)]))) s->failed = true;
	const char *title = nr_arena_printf(arena, "%s: %s", name, group_title[group]);
	if (!title) s->failed = true;
	if (s->failed || !rows) return;
	const struct nr_heatmap map = { .name = title, .x_label = "step", .y_label = "site", .rows = rows, .cols = cols, .value = value,
		.row_label = row, .col_label = col };
	nr_html_figure_open(s, "heat", title, nr_arena_printf(arena, "log10 of: %s", nr_microscope_title(stat)));
	nr_svg_heatmap(s, &map);
	nr_html_figure_close(s);
}

/* ---- what JavaScript makes of it ---------------------------------------------------------------------------------------- */

static void add_controls(struct nr_str *s)
{
	nr_str_add(s, "<p class=\"controls\" hidden=\"hidden\"><label>What: <select></select></label><br/>"
		      "<label>When: <input type=\"range\" min=\"0\" value=\"0\" step=\"1\"/>"
		      "</label> <output></output></p>\n");
}

static void add_section(struct nr_str *s, const struct nr_microscope_view *v, const struct nr_arms *a, struct nr_arena *arena)
{
	nr_str_add(s, "<section id=\"microscope\"><h2>The norms over time</h2>\n"
		      "<p>What every norm sees and does, by depth, for the special tokens and for all others: of the first "
		      "run of each arm "
		      "that was recorded with <code>--microscope</code>. Where the two kinds of tokens lie far apart, one norm for both "
		      "has to serve two distributions.</p>\n");
	nr_legend(s, a);
	add_controls(s);
	nr_str_add(s, "<div class=\"charts\">\n");
	for (int g = 0; g < NR_TOKEN_GROUPS; g++) add_profile(s, v, a, first_stat, g, arena);
	nr_str_add(s, "</div>\n<p class=\"notes\" hidden=\"hidden\">Below, each row is a site, the first at the top, and "
		      "time goes from left "
		      "to right; the dashed line is the step chosen. <span class=\"shades\"></span></p>\n<div "
		      "class=\"charts maps\">\n");
	for (int i = 0; i < v->arms; i++)
		for (int g = 0; g < NR_TOKEN_GROUPS; g++) add_map(s, v, i, a->arm[v->arm[i].arm].name, first_stat, g, arena);
	nr_str_add(s, "</div>\n<script type=\"application/json\">");
	nr_microscope_json(s, v);
	nr_str_printf(s, "</script>\n<script>\n//<![CDATA[\n%s//]]>\n</script>\n", nr_web_microscope_js);
}

/* The first run of the arm that has records; a file that cannot be read is said. */
static bool read_arm(struct nr_microscope_arm *to, const struct nr_arms *a, int arm, struct nr_str *notes, struct nr_arena *arena)
{
	char text[1024];
	for (int i = 0; i < a->arm[arm].runs; i++) {
		struct nr_error why = { 0 };
		const char *path = nr_arena_printf(arena, "%s/microscope.csv", a->run[a->arm[arm].run[i]].dir);
		if (path && access(path, F_OK) && errno == ENOENT) continue;
		FILE *f = path ? nr_file_stream(path, &why) : NULL;
		*to = (struct nr_microscope_arm){ .arm = arm };
		if (!path) nr_fail(&why, NR_EMEMORY, "cannot read", "microscope.csv", "out of memory");
		else if (f) nr_microscope_read(&to->file, f, path, arena, &why);
		if (f) fclose(f);
		if (why.code) nr_str_printf(notes, "%s\n", nr_error_text(&why, text, sizeof text));
		if (to->file.steps) return true;
		nr_microscope_release(&to->file);
	}
	return false;
}

void nr_microscope_section(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	struct nr_str notes = { 0 };
	struct nr_microscope_view v = { .arm = nr_arena_alloc(arena, ((size_t)a->count + 1) * sizeof *v.arm) };
	if (!v.arm) s->failed = true;
	for (int i = 0; i < a->count && v.arm; i++) v.arms += read_arm(&v.arm[v.arms], a, i, &notes, arena);
	if (nr_microscope_align(&v, arena) || notes.failed) s->failed = true;
	else if (v.arms) add_section(s, &v, a, arena);
	else if (notes.len) nr_str_add(s, "<section id=\"microscope\"><h2>The norms over time</h2>\n");
	if (notes.len) nr_html_element(s, "p", "notes", nr_str_text(&notes));
	if (v.arms || notes.len) nr_str_add(s, "</section>\n");
	for (int i = 0; i < v.arms; i++) nr_microscope_release(&v.arm[i].file);
	nr_str_release(&notes);
}

void nr_microscope_live(struct nr_str *s, const char *dir, struct nr_arena *arena)
{
	struct nr_str notes = { 0 };
	int first = 0;
	const struct nr_runfolder run = { .dir = nr_arena_strdup(arena, dir), .name = "run" };
	struct nr_arm arm = { .name = "Over time", .label = "", .letter = "", .run = &first, .runs = 1, .distinct = 1 };
	const struct nr_arms a = { .run = &run, .arm = &arm, .count = 1, .runs = 1, .differ = "" };
	struct nr_microscope_arm only = { 0 };
	struct nr_microscope_view v = { .arm = &only };
	if (run.dir) v.arms = read_arm(&only, &a, 0, &notes, arena);
	if (v.arms && !nr_microscope_align(&v, arena)) {
		nr_str_add(s,
			"<section id=\"microscope\"><h2>The norms now</h2>\n<p>The length of a token before each norm, by depth and over "
			"time; the full report has every statistic.</p>\n<div class=\"charts\">\n");
		for (int g = 0; g < NR_TOKEN_GROUPS; g++) add_profile(s, &v, &a, first_stat, g, arena);
		for (int g = 0; g < NR_TOKEN_GROUPS; g++) add_map(s, &v, 0, arm.name, first_stat, g, arena);
		nr_str_add(s, "</div></section>\n");
	}
	if (v.arms) nr_microscope_release(&only.file);
	nr_str_release(&notes);
}
