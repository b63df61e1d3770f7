/* What `norma robust --out` leaves: numbers as JSON and CSV, the corrupted pictures, and one page with all of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/save.h"
#include "draw/heatmap.h"
#include "draw/html.h"
#include "draw/png.h"
#include "draw/svg.h"
#include "report/page.h"
#include "robust.h"

/* ---- pictures: a row for each corruption, the clean one first ---- */

enum { GAP = 2, SMALLEST = 64 };

static void put(struct nr_picture *sheet, const struct nr_picture *p, int64_t row, int64_t column, int32_t zoom)
{
	const int64_t side_h = (int64_t)p->h * zoom, side_w = (int64_t)p->w * zoom;
	const int64_t top = GAP + row * (side_h + GAP), left = GAP + column * (side_w + GAP);
	for (int64_t y = 0; y < side_h; y++)
		for (int64_t x = 0; x < side_w; x++)
			for (int32_t c = 0; c < 3; c++)
				sheet->pixels[((top + y) * sheet->w + left + x) * 3 + c] =
					p->pixels[(y / zoom * p->w + x / zoom) * p->channels + (p->channels == 3 ? c : 0)];
}

int robust_picture_grid(struct robust_job *j, struct nr_shift_set *set)
{
	struct nr_picture one = { 0 }, *out = &j->pictures;
	int code = nr_shift_set_picture(set, 0, NULL, &one, j->c->err);
	const int32_t zoom = code || one.h >= SMALLEST ? 1 : SMALLEST / one.h;
	if (!code) code = nr_picture_resize(out, GAP + j->corruptions * (one.h * zoom + GAP),
		GAP + (j->severities + 1) * (one.w * zoom + GAP), 3, j->c->err);
	if (!code) memset(out->pixels, 255, (size_t)out->h * (size_t)out->w * 3);
	for (int i = 0; i < j->corruptions * (j->severities + 1) && !code; i++) {
		const int k = i / (j->severities + 1), s = i % (j->severities + 1);
		const struct nr_corrupt how = { .number = j->corruption[k], .severity = s ? j->severity[s - 1] : 1, .setting = j->setting,
			.seed = (uint64_t)j->v->seed, .frost = *j->v->frost ? &j->frost : NULL, .stored = j->stored };
		code = nr_shift_set_picture(set, k % nr_shift_set_count(set), s ? &how : NULL, &one, j->c->err);
		if (!code) put(out, &one, k, s, zoom);
	}
	nr_picture_release(&one);
	return code;
}

/* ---- the page ---- */

/* Mean over the seeds of an arm: (corruptions,severities) in percent. */
static void errors_of(const struct robust_job *j, int64_t arm, double *value)
{
	const int cells = j->corruptions * j->severities;
	int64_t n = 0;
	for (int i = 0; i < cells; i++) value[i] = 0;
	for (int64_t q = 0; q < j->results; q++) {
		if (!robust_in(&j->arm[arm], &j->result[q])) continue;
		for (int i = 0; i < cells; i++)
			value[i] += 100 * j->result[q].cell[j->corruption[i / j->severities]][j->severity[i % j->severities] - 1].error;
		n++;
	}
	for (int i = 0; i < cells && n; i++) value[i] /= (double)n;
}

static void heat_maps(const struct robust_job *j, struct nr_str *s)
{
	static const char *const number[NR_SEVERITIES] = { "1", "2", "3", "4", "5" };
	const char *rows[NR_CORRUPTIONS], *columns[NR_SEVERITIES];
	double value[NR_CORRUPTIONS * NR_SEVERITIES];
	for (int k = 0; k < j->corruptions; k++) rows[k] = nr_corruption_name(j->corruption[k]);
	for (int i = 0; i < j->severities; i++) columns[i] = number[j->severity[i] - 1];
	nr_str_add(s, "<div class=\"charts\">\n");
	for (int64_t a = 0; a < j->arms && j->corruptions; a++) {
		errors_of(j, a, value);
		nr_html_figure_open(s, "heat", robust_arm_title(j, a),
			"Error in percent, mean over its checkpoints. All arms share the colours.");
		nr_svg_heatmap(s, &(struct nr_heatmap){ .name = "error by corruption and severity", .x_label = "severity",
			.y_label = "corruption", .rows = j->corruptions, .cols = j->severities, .value = value, .row_label = rows,
			.col_label = columns, .low = 0, .high = 100 });
		nr_html_figure_close(s);
	}
	nr_str_add(s, "</div>\n");
}

/* Bins of an arm, over its checkpoints: clean pictures, or all corrupted ones. */
static int64_t reliability(const struct robust_job *j, int64_t arm, bool clean, double *x, double *y)
{
	double count[NR_CALIBRATION_BINS] = { 0 }, confidence[NR_CALIBRATION_BINS] = { 0 }, right[NR_CALIBRATION_BINS] = { 0 };
	const int cells = clean ? 1 : j->corruptions * j->severities;
	int64_t n = 0;
	for (int64_t q = 0; q < j->results; q++)
		for (int i = 0; i < cells && robust_in(&j->arm[arm], &j->result[q]); i++) {
			const struct robust_result *r = &j->result[q];
			const struct nr_calibration *c = clean ? &r->clean
				: &r->cell[j->corruption[i / j->severities]][j->severity[i % j->severities] - 1];
			for (int b = 0; b < NR_CALIBRATION_BINS; b++)
				count[b] += c->bin_count[b], confidence[b] += c->bin_confidence[b], right[b] += c->bin_right[b];
		}
	for (int b = 0; b < NR_CALIBRATION_BINS; b++) {
		if (count[b] < 1) continue;
		x[n] = confidence[b] / count[b];
		y[n++] = right[b] / count[b];
	}
	return n;
}

static void reliability_diagram(const struct robust_job *j, bool clean, struct nr_str *s)
{
	static const double ends[2] = { 0, 1 };
	const size_t arms = (size_t)j->arms;
	double *x = calloc(2 * arms * NR_CALIBRATION_BINS, sizeof *x), *y = x ? x + arms * NR_CALIBRATION_BINS : NULL;
	struct nr_series *line = calloc(arms + 1, sizeof *line);
	if (x && line) {
		for (int64_t a = 0; a < j->arms; a++) {
			double *ax = x + a * NR_CALIBRATION_BINS, *ay = y + a * NR_CALIBRATION_BINS;
			line[a] = (struct nr_series){ .label = robust_arm_title(j, a), .x = ax, .y = ay, .arm = (int)a, .weight = NR_BOLD,
				.n = reliability(j, a, clean, ax, ay) };
		}
		line[j->arms] = (struct nr_series){ .x = ends, .y = ends, .n = 2, .arm = (int)j->arms, .weight = NR_THIN };
		nr_html_figure_open(s, "chart", clean ? "Reliability on clean pictures" : "Reliability on corrupted pictures",
			"How often predictions of a confidence are right, in 15 bins; below the thin diagonal the model is too sure.");
		nr_svg_chart(s, &(struct nr_chart){ .name = "reliability diagram", .x_label = "confidence", .y_label = "accuracy",
			.series = line, .count = (int)j->arms + 1 });
		nr_html_figure_close(s);
	} else s->failed = true;
	free(x);
	free(line);
}

static void number(struct nr_html_table *t, double v, int digits)
{
	char text[48] = "";
	if (isfinite(v)) snprintf(text, sizeof text, "%.*f", digits, v);
	nr_html_cell(t, "number", text);
}

static void table(const struct robust_job *j, struct nr_str *s)
{
	struct nr_html_table t = { .s = s,
		.caption = "Errors in percent. NLL, Brier score and calibration error (ECE, 15 bins, percent) are means "
		"over all corruptions and severities; without corruptions, those of the pictures as they are." };
	static const char *const heads[] = { "checkpoint", "adaptation", "clean error", "corrupted error", "mCE", "NLL", "Brier", "ECE" };
	nr_html_table_open(&t, NULL);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) nr_html_head(&t, i > 1 ? "number" : NULL, heads[i]);
	for (int64_t i = 0; i < j->results; i++) {
		const struct robust_result *r = &j->result[i];
		const struct robust_means m = robust_means_of(j, r);
		const bool only = !j->corruptions;
		nr_html_row(&t);
		nr_html_cell(&t, NULL, r->file);
		nr_html_cell(&t, NULL, nr_adapt_names[r->adapt]);
		number(&t, 100 * m.clean, 2);
		number(&t, only ? NAN : 100 * m.error, 2);
		number(&t, m.mce, 2);
		number(&t, only ? r->clean.nll : m.nll, 3);
		number(&t, only ? r->clean.brier : m.brier, 3);
		number(&t, 100 * (only ? r->clean.ece : m.ece), 2);
	}
	nr_html_table_close(&t);
}

static void picture_figure(const struct robust_job *j, struct nr_str *s)
{
	const struct nr_picture *p = &j->pictures;
	struct nr_str png = { 0 };
	if (!p->pixels) return;
	nr_png_add(&png, &(struct nr_raster){ p->w, p->h, p->pixels }, 1);
	nr_html_figure_open(s, NULL, "The pictures",
		"A row for each corruption, in the order of the heat maps: the picture as it is, then rising severity.");
	nr_html_png(s, png.text, png.len, p->w, p->h, "corrupted pictures");
	nr_html_figure_close(s);
	s->failed |= png.failed;
	nr_str_release(&png);
}

static int write_page(const struct robust_job *j, const char *dir)
{
	struct nr_str s = { 0 };
	nr_page_open(&s, "Robustness");
	nr_str_add(&s, "<main><h1>Robustness</h1><p>");
	nr_html_printf(&s, "%s, %lld samples.", j->data, (long long)j->samples);
	if (j->present < j->classes) nr_html_printf(&s, " The softmax is limited to the %lld of %lld classes that occur.",
		(long long)j->present, (long long)j->classes);
	if (j->alexnet) nr_str_add(&s, " mCE is relative to AlexNet's published errors.");
	else if (*j->v->relative_to) nr_html_printf(&s, " mCE is relative to the errors of %s.", j->v->relative_to);
	if (robust_own_frost(j)) nr_str_add(&s, " Frost is a texture of ours, which compares with nothing published.");
	nr_str_add(&s, "</p>");
	table(j, &s);
	heat_maps(j, &s);
	nr_str_add(&s, "<div class=\"charts\">\n");
	reliability_diagram(j, true, &s);
	if (j->corruptions) reliability_diagram(j, false, &s);
	nr_str_add(&s, "</div>\n");
	picture_figure(j, &s);
	nr_str_add(&s, "</main>");
	nr_page_close(&s);
	const char *path = nr_arena_printf(j->c->arena, "%s/robust.html", dir);
	int code = s.failed || !path ? nr_fail(j->c->err, NR_EMEMORY, "cannot write", dir, "out of memory") : NR_OK;
	if (!code) code = nr_save_file(path, s.text, s.len, j->c->err);
	nr_str_release(&s);
	return code;
}

/* ---- numbers ---- */

static int write_csv(const struct robust_job *j, const char *dir)
{
	struct nr_str s = { 0 };
	nr_str_add(&s, "arm,file,adapt,corruption,severity,error,nll,brier,ece,samples\n");
	for (int64_t i = 0; i < j->results; i++) {
		const struct robust_result *r = &j->result[i];
		for (int q = 0; q < 1 + j->corruptions * j->severities; q++) {
			const int k = q ? j->corruption[(q - 1) / j->severities] : 0,
				severity = q ? j->severity[(q - 1) % j->severities] : 0;
			const struct nr_calibration *c = q ? &r->cell[k][severity - 1] : &r->clean;
			nr_str_printf(&s, "\"%s\",\"%s\",%s,%s,%d,%.9g,%.9g,%.9g,%.9g,%lld\n", r->arm, r->file, nr_adapt_names[r->adapt],
				q ? nr_corruption_name(k) : "none", severity, c->error, c->nll, c->brier, c->ece, (long long)c->samples);
		}
	}
	const char *path = nr_arena_printf(j->c->arena, "%s/errors.csv", dir);
	int code = s.failed || !path ? nr_fail(j->c->err, NR_EMEMORY, "cannot write", dir, "out of memory") : NR_OK;
	if (!code) code = nr_save_file(path, s.text, s.len, j->c->err);
	nr_str_release(&s);
	return code;
}

int robust_write(const struct robust_job *j, const char *dir)
{
	struct nr_str s = { 0 };
	const char *path = nr_arena_printf(j->c->arena, "%s/robust.json", dir);
	int code = path ? nr_json_add(&s, robust_json(j, true), j->c->err)
		: nr_fail(j->c->err, NR_EMEMORY, "cannot write", dir, "out of memory");
	if (!code) code = nr_save_file(path, s.text, s.len, j->c->err);
	nr_str_release(&s);
	if (!code) code = write_csv(j, dir);
	path = nr_arena_printf(j->c->arena, "%s/pictures.png", dir);
	if (!code && !path) code = nr_fail(j->c->err, NR_EMEMORY, "cannot write", dir, "out of memory");
	if (!code && j->pictures.pixels) code = nr_picture_write_png(&j->pictures, path, j->c->err);
	return code ? code : write_page(j, dir);
}
