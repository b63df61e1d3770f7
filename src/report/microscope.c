/* Reading microscope.csv and giving it to the page: see microscope.h. */
#include "report/microscope.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIXED = 3, MAX_STATS = 64, MAX_SITES = 4096, MAX_STEPS = 48 };   /* MAX_STEPS: of the page */

struct row { int32_t step, site, group; };
struct reading {
	struct nr_microscope_file *f;
	const char *path;
	struct nr_arena *arena;
	locale_t plain;
	struct row *row;
	int64_t rows, room, room_steps;
};

/* ---- lines ------------------------------------------------------------------------------------------------------------- */

static int bad(const struct reading *r, int64_t number, const char *why, struct nr_error *err)
{
	return nr_fail(err, NR_EFORMAT, "cannot read", r->path, "line %lld %s", (long long)number, why);
}

static int no_memory(const struct reading *r, struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot read", r->path, "out of memory");
}

/* Names go into the page as they are. */
static bool is_name(const char *text)
{
	const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
	return n > 0 && n < 256 && !text[n];
}

static char *next_cell(char **line)
{
	char *cell = *line, *comma = cell ? strchr(cell, ',') : NULL;
	if (comma) *comma = 0;
	*line = comma ? comma + 1 : NULL;
	return cell;
}

static int take_header(struct reading *r, char *line, struct nr_error *err)
{
	static const char *const fixed[FIXED] = { "step", "site", "group" };
	struct nr_microscope_file *f = r->f;
	f->stat = nr_arena_alloc(r->arena, MAX_STATS * sizeof *f->stat);
	f->site = nr_arena_alloc(r->arena, MAX_SITES * sizeof *f->site);
	if (!f->stat || !f->site) return no_memory(r, err);
	for (int i = 0; line; i++) {
		const char *name = next_cell(&line);
		if (i < FIXED ? strcmp(name, fixed[i]) != 0 : !is_name(name) || f->stats == MAX_STATS)
			return bad(r, 1, "does not have the columns of a microscope", err);
		if (i >= FIXED && !(f->stat[f->stats++] = nr_arena_strdup(r->arena, name))) return no_memory(r, err);
	}
	return f->stats ? NR_OK : bad(r, 1, "does not have the columns of a microscope", err);
}

static int grow(struct reading *r, struct nr_error *err)
{
	struct nr_microscope_file *f = r->f;
	if (r->rows == r->room) {
		const int64_t room = r->room ? 2 * r->room : 256;
		struct row *row = realloc(r->row, (size_t)room * sizeof *row);
		if (row) r->row = row;
		double *cell = row ? realloc(f->cell, (size_t)(room * f->stats) * sizeof *cell) : NULL;
		if (!cell) return no_memory(r, err);
		f->cell = cell;
		r->room = room;
	}
	if (f->steps == r->room_steps) {
		const int64_t room = r->room_steps ? 2 * r->room_steps : 64;
		int64_t *step = realloc(f->step, (size_t)room * sizeof *step);
		if (!step) return no_memory(r, err);
		f->step = step;
		r->room_steps = room;
	}
	return r->rows < INT32_MAX ? NR_OK : no_memory(r, err);
}

/* Its number; sites come in the same order in every record, so the next one is tried first. -1: no name, or too many. */
static int find_site(struct reading *r, const char *name)
{
	struct nr_microscope_file *f = r->f;
	const int last = r->rows ? r->row[r->rows - 1].site : 0;
	for (int i = 0; i < f->sites; i++) {
		const int k = (last + i) % f->sites;
		if (!strcmp(f->site[k], name)) return k;
	}
	if (f->sites == MAX_SITES || !is_name(name) || !(f->site[f->sites] = nr_arena_strdup(r->arena, name))) return -1;
	return f->sites++;
}

static int take_row(struct reading *r, char *line, int64_t number, struct nr_error *err)
{
	struct nr_microscope_file *f = r->f;
	const char *step_text = next_cell(&line), *site = next_cell(&line), *group = next_cell(&line);
	int64_t step;
	if (grow(r, err)) return err->code;
	if (!group || !nr_parse_int(step_text, &step) || step < 0) return bad(r, number, "is not a record", err);
	struct row to = { .site = find_site(r, site), .group = !strcmp(group, "tokens") ? NR_GROUP_TOKENS : NR_GROUP_SPECIAL };
	if (to.site < 0 || (to.group == NR_GROUP_SPECIAL && strcmp(group, "special") != 0)) return bad(r, number, "is not a record", err);
	if (f->steps && step < f->step[f->steps - 1]) return bad(r, number, "goes back to an earlier step", err);
	if (!f->steps || step > f->step[f->steps - 1]) f->step[f->steps++] = step;
	to.step = f->steps - 1;
	for (int i = 0; i < f->stats; i++) {
		char *cell = next_cell(&line), *end = cell;
		if (!cell || (line == NULL) != (i == f->stats - 1)) return bad(r, number,
			"has a different number of cells", err);
		const double v = *cell ? strtod_l(cell, &end, r->plain) : (double)NAN;
		if (*end) return bad(r, number, "is not a record", err);
		f->cell[r->rows * f->stats + i] = v;
	}
	r->row[r->rows++] = to;
	return NR_OK;
}

static int take_lines(struct reading *r, FILE *in, struct nr_error *err)
{
	char *line = NULL;
	size_t room = 0;
	int code = NR_OK;
	for (int64_t number = 1; !code; number++) {
		errno = 0;
		const ssize_t n = getline(&line, &room, in);
		if (n < 0 && !feof(in)) code = nr_fail(err, NR_EIO, "cannot read", r->path, "%s", strerror(errno ? errno : EIO));
		if (n <= 0 || line[n - 1] != '\n') break;
		line[n - 1] = 0;
		if (strlen(line) != (size_t)n - 1) code = bad(r, number, "contains zero bytes", err);
		else code = number == 1 ? take_header(r, line, err) : take_row(r, line, number, err);
	}
	free(line);
	return code;
}

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

static int32_t *row_at(const struct nr_microscope_file *f, int group, int site, int step)
{
	return &f->row[((int64_t)group * f->sites + site) * f->steps + step];
}

static int index_rows(const struct reading *r, struct nr_error *err)
{
	struct nr_microscope_file *f = r->f;
	const int64_t places = (int64_t)f->sites * f->steps;
	if (places > r->rows + f->sites)                                /* the last record may not be whole */
		return nr_fail(err, NR_EFORMAT, "cannot read", r->path, "its records are not all for the same sites");
	f->row = malloc((size_t)(NR_TOKEN_GROUPS * places + 1) * sizeof *f->row);
	if (!f->row) return no_memory(r, err);
	memset(f->row, 0xff, (size_t)(NR_TOKEN_GROUPS * places) * sizeof *f->row);      /* -1 */
	for (int64_t i = 0; i < r->rows; i++) *row_at(f, r->row[i].group, r->row[i].site, r->row[i].step) = (int32_t)i;
	return NR_OK;
}

int nr_microscope_read(struct nr_microscope_file *f, FILE *in, const char *path, struct nr_arena *arena, struct nr_error *err)
{
	*f = (struct nr_microscope_file){ 0 };
	struct reading r = { .f = f, .path = path, .arena = arena, .plain = newlocale(LC_ALL_MASK, "C", (locale_t)0) };
	int code = r.plain ? take_lines(&r, in, err) : no_memory(&r, err);
	if (!code) code = index_rows(&r, err);
	free(r.row);
	if (r.plain) freelocale(r.plain);
	if (code) nr_microscope_release(f);
	return code;
}

void nr_microscope_release(struct nr_microscope_file *f)
{
	free(f->cell);
	free(f->row);
	free(f->step);
	*f = (struct nr_microscope_file){ 0 };
}

double nr_microscope_value(const struct nr_microscope_file *f, int stat, int group, int site, int step)
{
	const int32_t row = *row_at(f, group, site, step);
	return row < 0 ? (double)NAN : f->cell[(int64_t)row * f->stats + stat];
}

/* ---- arms side by side ------------------------------------------------------------------------------------------------- */

static int index_of(const char *const *list, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(list[i], name)) return i;
	return -1;
}

/* Where a site that the others lack goes: behind all of its block, else behind the one that it follows in its own arm. */
static int place_of(const struct nr_microscope_view *v, const char *name, int follows)
{
	size_t block = strcspn(name, "0123456789");             /* "blocks.3." of "blocks.3.attn.in" */
	block += strspn(name + block, "0123456789");
	for (int i = v->sites; name[block] && i-- > 0;)
		if (!strncmp(v->site[i], name, block + 1)) return i + 1;
	return follows;
}

static void add_sites(struct nr_microscope_view *v, const struct nr_microscope_file *f)
{
	int at = 0;
	for (int i = 0; i < f->sites; i++) {
		const int known = index_of(v->site, v->sites, f->site[i]);
		if (known < 0) {
			at = place_of(v, f->site[i], at);
			memmove(v->site + at + 1, v->site + at, (size_t)(v->sites - at) * sizeof *v->site);
			v->site[at] = f->site[i];
			v->sites++;
		}
		at = known < 0 ? at + 1 : known + 1;
	}
}

int nr_microscope_align(struct nr_microscope_view *v, struct nr_arena *arena)
{
	size_t room = 1;
	for (int i = 0; i < v->arms; i++) room += (size_t)v->arm[i].file.sites;
	v->sites = 0;
	if (!(v->site = nr_arena_alloc(arena, room * sizeof *v->site))) return NR_EMEMORY;
	for (int i = 0; i < v->arms; i++) add_sites(v, &v->arm[i].file);
	for (int i = 0; i < v->arms; i++) {
		struct nr_microscope_arm *a = &v->arm[i];
		if (!(a->place = nr_arena_alloc(arena, room * sizeof *a->place))) return NR_EMEMORY;
		for (int k = 0; k < v->sites; k++) a->place[k] = index_of(a->file.site, a->file.sites, v->site[k]);
	}
	return NR_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

struct title { const char *stat, *text; };
static const struct title titles[] = {
	{ "in_length", "length of a token before the norm: mean" }, { "in_length_sd",
		"length of a token before the norm: standard deviation" },
	{ "in_length_max", "length of a token before the norm: largest" }, { "in_mean", "mean of the values before the norm" },
	{ "in_var", "variance of the values before the norm" }, { "in_kurtosis", "kurtosis of the values before the norm (normal: 3)" },
	{ "out_length", "length of a token after the norm: mean" }, { "out_length_sd",
		"length of a token after the norm: standard deviation" },
	{ "out_length_max", "length of a token after the norm: largest" }, { "out_mean", "mean of the values after the norm" },
	{ "out_var", "variance of the values after the norm" }, { "out_kurtosis", "kurtosis of the values after the norm (normal: 3)" },
	{ "gain_mean", "gain: mean over channels" }, { "gain_sd", "gain: standard deviation over channels" },
	{ "gain_drift", "gain: distance from its initial value" }, { "bias_mean", "bias: mean over channels" },
	{ "bias_sd",
		"bias: standard deviation over channels" }, { "bias_drift", "bias: distance from its initial value" },
	{ "mean_ln", "share of the token itself in the mean (DTN, SwitchNorm)" },
	{ "mean_in", "share of the sample's tokens in the mean (DTN, SwitchNorm)" },
	{ "mean_bn", "share of the batch in the mean (SwitchNorm)" },
	{ "mean_ln_sd", "share of the token itself in the mean: standard deviation over heads (DTN)" },
	{ "var_ln", "share of the token itself in the variance (DTN, SwitchNorm)" },
	{ "var_in", "share of the sample's tokens in the variance (DTN, SwitchNorm)" },
	{ "var_bn", "share of the batch in the variance (SwitchNorm)" },
	{ "var_ln_sd", "share of the token itself in the variance: standard deviation over heads (DTN)" },
	{ NULL, NULL } };

const char *nr_microscope_title(const char *stat)
{
	for (const struct title *t = titles; t->stat; t++)
		if (!strcmp(t->stat, stat)) return t->text;
	return stat;
}

int nr_microscope_shown_steps(const struct nr_microscope_file *f) { return f->steps < MAX_STEPS ? f->steps : MAX_STEPS; }
int nr_microscope_shown_step(const struct nr_microscope_file *f, int k)
{
	return f->steps <= MAX_STEPS ? k : (int)((int64_t)k * (f->steps - 1) / (MAX_STEPS - 1));
}

/* Has any arm a value of this statistic? group -1: of either. */
static bool has_values(const struct nr_microscope_file *f, const char *stat, int group)
{
	const int s = index_of(f->stat, f->stats, stat);
	for (int g = 0; s >= 0 && g < NR_TOKEN_GROUPS; g++)
		for (int i = 0; (group < 0 || g == group) && i < f->sites; i++)
			for (int k = 0; k < f->steps; k++)
				if (isfinite(nr_microscope_value(f, s, g, i, k))) return true;
	return false;
}

static bool is_wanted(const struct nr_microscope_view *v, const char *stat)
{
	for (int i = 0; i < v->arms; i++)
		if (has_values(&v->arm[i].file, stat, -1)) return true;
	return false;
}

static void add_steps(struct nr_str *s, const struct nr_microscope_view *v, const struct nr_microscope_arm *a, const char *stat, int group)
{
	const struct nr_microscope_file *f = &a->file;
	const int column = index_of(f->stat, f->stats, stat);
	if (!has_values(f, stat, group)) {
		nr_str_add(s, "null");
		return;
	}
	nr_str_add(s, "[");
	for (int k = 0; k < nr_microscope_shown_steps(f); k++) {
		nr_str_add(s, k ? ",[" : "[");
		for (int i = 0; i < v->sites; i++) {
			const int site = a->place[i];
			const int step = nr_microscope_shown_step(f, k);
			const double x = site < 0 ? (double)NAN : nr_microscope_value(f, column, group, site, step);
			if (i) nr_str_add(s, ",");
			if (isfinite(x)) nr_str_printf(s, "%.4g", x);
			else nr_str_add(s, "null");
		}
		nr_str_add(s, "]");
	}
	nr_str_add(s, "]");
}

static void add_arm(struct nr_str *s, const struct nr_microscope_view *v, const struct nr_microscope_arm *a, const char **stat, int stats)
{
	nr_str_printf(s, "{\"arm\":%d,\"steps\":[", a->arm);
	for (int k = 0; k < nr_microscope_shown_steps(&a->file); k++)
		nr_str_printf(s, "%s%lld", k ? "," : "", (long long)a->file.step[nr_microscope_shown_step(&a->file, k)]);
	nr_str_add(s, "],\"v\":[");
	for (int i = 0; i < stats; i++) {
		nr_str_add(s, i ? ",[" : "[");
		for (int g = 0; g < NR_TOKEN_GROUPS; g++) {
			if (g) nr_str_add(s, ",");
			add_steps(s, v, a, stat[i], g);
		}
		nr_str_add(s, "]");
	}
	nr_str_add(s, "]}");
}

/* The statistics that have values: those we know, in their order, then others. */
static int choose_stats(const struct nr_microscope_view *v, const char **stat)
{
	int n = 0;
	for (const struct title *t = titles; t->stat; t++)
		if (is_wanted(v, t->stat)) stat[n++] = t->stat;
	for (int i = 0; i < v->arms; i++)
		for (int k = 0; k < v->arm[i].file.stats && n < MAX_STATS; k++) {
			const char *name = v->arm[i].file.stat[k];
			if (index_of(stat, n, name) < 0 && is_wanted(v, name)) stat[n++] = name;
		}
	return n;
}

void nr_microscope_json(struct nr_str *s, const struct nr_microscope_view *v)
{
	const char *stat[MAX_STATS];
	const int stats = choose_stats(v, stat);
	nr_str_add(s, "{\"sites\":[");
	for (int i = 0; i < v->sites; i++) nr_str_printf(s, "%s\"%s\"", i ? "," : "", v->site[i]);
	nr_str_add(s, "],\"stats\":[");
	for (int i = 0; i < stats; i++) nr_str_printf(s, "%s[\"%s\",\"%s\"]", i ? "," : "", stat[i], nr_microscope_title(stat[i]));
	nr_str_add(s, "],\"arms\":[");
	for (int i = 0; i < v->arms; i++) {
		if (i) nr_str_add(s, ",");
		add_arm(s, v, &v->arm[i], stat, stats);
	}
	nr_str_add(s, "]}");
}
