/* The tables and the JSON of `norma robust`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "infer/metrics.h"
#include "robust.h"
#include "study/stats.h"

/* Of hendrycks/robustness, by corruption in our order; the clean error, without which there is no relative mCE, was not found there. */
static const double alexnet[NR_CORRUPTIONS] = { .886428, .894468, .922640, .819880, .826268, .785948, .798360, .866816, .826572, .819324,
	.564592, .853204, .646056, .717840, .606500 };
#define ALEXNET_CLEAN 0.435

bool robust_in(const struct robust_arm *a, const struct robust_result *r) { return a->adapt == r->adapt && !strcmp(a->name, r->arm); }

const char *robust_arm_title(const struct robust_job *j, int64_t arm)
{
	const struct robust_arm *a = &j->arm[arm];
	const char *text = j->adapts > 1 || a->adapt ? nr_arena_printf(j->c->arena, "%s, %s", a->name, nr_adapt_names[a->adapt]) : a->name;
	return text ? text : a->name;
}

double robust_error(const struct robust_job *j, const struct robust_result *r, int corruption)
{
	double sum = 0;
	for (int s = 0; s < j->severities; s++) sum += r->cell[corruption][j->severity[s] - 1].error;
	return sum / j->severities;
}

/* What errors are relative to: the mean over the seeds of the arm, not adapted if that was measured. */
static bool baseline_of(const struct robust_job *j, double by_corruption[NR_CORRUPTIONS], double *clean)
{
	int64_t n = 0;
	memcpy(by_corruption, alexnet, sizeof alexnet);
	*clean = ALEXNET_CLEAN;
	if (j->alexnet) return true;
	memset(by_corruption, 0, sizeof alexnet);
	*clean = 0;
	for (int64_t i = 0; i < j->results; i++) {
		const struct robust_result *r = &j->result[i];
		if (strcmp(r->arm, j->v->relative_to) || r->adapt != j->adapt[0].kind) continue;
		for (int k = 0; k < j->corruptions; k++) by_corruption[k] += robust_error(j, r, j->corruption[k]);
		*clean += r->clean.error;
		n++;
	}
	for (int k = 0; k < j->corruptions && n; k++) by_corruption[k] /= (double)n;
	*clean /= n ? (double)n : 1;
	return n > 0;
}

struct robust_means robust_means_of(const struct robust_job *j, const struct robust_result *r)
{
	struct robust_means m = { .clean = r->clean.error, .mce = NAN, .relative_mce = NAN };
	real error[NR_CORRUPTIONS * NR_SEVERITIES];
	double base[NR_CORRUPTIONS], clean;
	const int cells = j->corruptions * j->severities;
	for (int i = 0; i < cells; i++) {
		const struct nr_calibration *c = &r->cell[j->corruption[i / j->severities]][j->severity[i % j->severities] - 1];
		error[i] = (real)c->error;
		m.error += c->error / cells;
		m.nll += c->nll / cells;
		m.brier += c->brier / cells;
		m.ece += c->ece / cells;
	}
	if (!cells || !baseline_of(j, base, &clean)) return m;
	const struct nr_mce mce = nr_metric_mce(j->corruptions, j->severities, error, base, r->clean.error, clean, NULL, NULL);
	m.mce = mce.mce;
	m.relative_mce = mce.relative_mce;
	return m;
}

bool robust_own_frost(const struct robust_job *j)
{
	bool frost = false;
	for (int i = 0; i < j->corruptions; i++) frost |= !strcmp(nr_corruption_name(j->corruption[i]), "frost");
	return frost && !*j->v->frost && !*j->v->corrupted;
}

/* ---- tables ----------------------------------------------------------------------------------------------------------------- */

enum { MOST_SEEDS = 256 };

/* The mean over the seeds of an arm, and half its interval, of what `of` says. */
typedef double one_number(const struct robust_job *, const struct robust_result *, int which);
static struct nr_sample over_seeds(const struct robust_job *j, int64_t arm, one_number *of, int which)
{
	double value[MOST_SEEDS];
	int64_t n = 0;
	for (int64_t i = 0; i < j->results && n < MOST_SEEDS; i++)
		if (robust_in(&j->arm[arm], &j->result[i])) value[n++] = of(j, &j->result[i], which);
	return nr_sample(value, n);
}

enum column { CLEAN, ERROR, MCE, RELATIVE, NLL, BRIER, ECE, CLEAN_ECE, COLUMNS };
static const char *const titles[COLUMNS] = { "clean error", "corrupted", "mCE", "relative mCE", "NLL", "Brier", "ECE", "clean ECE" };

static double column(const struct robust_job *j, const struct robust_result *r, int which)
{
	const struct robust_means m = robust_means_of(j, r);
	const bool only = !j->corruptions;
	const double all[COLUMNS] = { 100 * m.clean, 100 * m.error, m.mce, m.relative_mce, only ? r->clean.nll : m.nll,
		only ? r->clean.brier : m.brier, 100 * (only ? r->clean.ece : m.ece), 100 * r->clean.ece };
	return all[which];
}

static double by_corruption(const struct robust_job *j, const struct robust_result *r, int corruption)
{
	return 100 * robust_error(j, r, corruption);
}

static void cell(struct nr_table *t, struct nr_sample s, int digits)
{
	if (!isfinite(s.mean)) nr_table_cell(t, "-");
	else if (s.n > 1) nr_table_cell(t, "%.*f ± %.*f", digits, s.mean, digits, s.half);
	else nr_table_cell(t, "%.*f", digits, s.mean);
}

static bool shown(const struct robust_job *j, int which)
{
	if (which == MCE || which == RELATIVE) return j->corruptions && (j->alexnet || *j->v->relative_to);
	return j->corruptions || (which != ERROR && which != CLEAN_ECE);
}

static void print_arms(const struct robust_job *j)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "arm", NR_LEFT);
	nr_table_column(t, "seeds", NR_RIGHT);
	for (int i = 0; i < COLUMNS; i++)
		if (shown(j, i)) nr_table_column(t, titles[i], NR_RIGHT);
	for (int64_t a = 0; a < j->arms; a++) {
		nr_table_cell(t, "%s", robust_arm_title(j, a));
		nr_table_cell(t, "%lld", (long long)over_seeds(j, a, column, CLEAN).n);
		for (int i = 0; i < COLUMNS; i++)
			if (shown(j, i)) cell(t, over_seeds(j, a, column, i), i == NLL || i == BRIER ? 3 : 2);
	}
	cli_print_table(t);
}

static void print_corruptions(const struct robust_job *j)
{
	enum { MOST_ARMS = 12 };
	struct nr_table *t = nr_table_make();
	const int64_t arms = j->arms < MOST_ARMS ? j->arms : MOST_ARMS;
	nr_table_column(t, "error in percent", NR_LEFT);
	for (int64_t a = 0; a < arms; a++) nr_table_column(t, robust_arm_title(j, a), NR_RIGHT);
	for (int k = 0; k < j->corruptions; k++) {
		const bool ours = robust_own_frost(j) && !strcmp(nr_corruption_name(j->corruption[k]), "frost");
		nr_table_cell(t, "%s%s", nr_corruption_name(j->corruption[k]), ours ? " (our texture)" : "");
		for (int64_t a = 0; a < arms; a++) cell(t, over_seeds(j, a, by_corruption, j->corruption[k]), 1);
	}
	cli_print_table(t);
	if (arms < j->arms) printf("(the first %lld of %lld arms)\n", (long long)arms, (long long)j->arms);
}

void robust_print(const struct robust_job *j)
{
	printf("%s, %lld samples", j->data, (long long)j->samples);
	if (j->present < j->classes) printf(", the softmax limited to %lld of %lld classes", (long long)j->present, (long long)j->classes);
	if (j->corruptions && !*j->v->corrupted)
		printf(", %d corruptions x %d severities of %s", j->corruptions, j->severities,
			j->setting == NR_CORRUPT_32 ? "CIFAR-10-C (32 px)" : "ImageNet-C (224 px)");
	if (*j->v->corrupted) printf(", corrupted pictures of '%s'", j->v->corrupted);
	printf("; errors in percent\n");
	print_arms(j);
	if (j->corruptions) putchar('\n'), print_corruptions(j);
	if (j->alexnet)
		printf("mCE: relative to AlexNet's published errors; its clean error of 43.5 %%, which relative mCE needs, is unchecked\n");
	if (shown(j, MCE) && !j->alexnet) printf("mCE: relative to the errors of %s\n", j->v->relative_to);
	for (int64_t i = 0; i < j->results; i++)
		if (j->result[i].restarts)
			printf("%s: sar started anew %lld times\n", j->result[i].file, (long long)j->result[i].restarts);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------- */

/* bins: [count, sum of confidences, how many were right] of each. */
static json_t *calibration(const struct nr_calibration *c, bool bins)
{
	json_t *o = json_pack("{s:I, s:f, s:f, s:f, s:f}", "samples", (json_int_t)c->samples, "error", c->error, "nll", c->nll, "brier",
		c->brier,
		"ece", c->ece);
	json_t *list = json_array();
	for (int b = 0; b < NR_CALIBRATION_BINS; b++)
		json_array_append_new(list, json_pack("[f, f, f]", c->bin_count[b], c->bin_confidence[b], c->bin_right[b]));
	if (bins) json_object_set(o, "bins", list);
	json_decref(list);
	return o;
}

/* "corruptions": {"fog": {"error": .3, "severities": {"1": {...}}}} */
static json_t *corruptions(const struct robust_job *j, const struct robust_result *r, bool bins)
{
	json_t *all = json_object();
	for (int k = 0; k < j->corruptions; k++) {
		const int number = j->corruption[k];
		json_t *by = json_object();
		for (int s = 0; s < j->severities; s++) {
			const char name[2] = { (char)('0' + j->severity[s]), 0 };
			json_object_set_new(by, name, calibration(&r->cell[number][j->severity[s] - 1], bins));
		}
		json_object_set_new(all, nr_corruption_name(number), json_pack("{s:f, s:o}", "error", robust_error(j, r, number),
			"severities", by));
	}
	return all;
}

static json_t *result(const struct robust_job *j, const struct robust_result *r, bool bins)
{
	const struct robust_means m = robust_means_of(j, r);
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:o}", "arm", r->arm, "file", r->file, "norms", r->norms, "adapt",
		nr_adapt_names[r->adapt], "clean_error", m.clean, "top1", 1 - m.clean, "clean", calibration(&r->clean, bins));
	if (j->corruptions) json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:f, s:o}", "corrupted_error", m.error, "corrupted_nll",
		m.nll,
		"corrupted_brier", m.brier, "corrupted_ece", m.ece, "corruptions", corruptions(j, r, bins)));
	if (isfinite(m.mce)) json_object_update_new(o, json_pack("{s:f, s:f}", "mce", m.mce, "relative_mce", m.relative_mce));
	if (r->adapt >= NR_ADAPT_TENT) json_object_update_new(o, json_pack("{s:I, s:I}", "adapted_parameters", (json_int_t)r->free,
		"restarts",
		(json_int_t)r->restarts));
	return o;
}

/* One checkpoint: its own result or, under several adaptations, that of each by its name; several: a list. */
json_t *robust_json(const struct robust_job *j, bool bins)
{
	const bool one = j->results == j->adapts;
	json_t *top = j->results == 1 ? result(j, &j->result[0], bins) : json_object(), *list = json_array();
	for (int64_t i = 0; i < j->results && j->results > 1; i++) {
		json_t *each = result(j, &j->result[i], bins);
		if (one) json_object_set_new(top, nr_adapt_names[j->result[i].adapt], each);
		else json_array_append_new(list, each);
	}
	if (!one) json_object_set(top, "results", list);
	json_decref(list);
	json_object_update_new(top, json_pack("{s:s, s:I, s:I, s:I, s:I}", "data", j->data, "samples", (json_int_t)j->samples, "seed",
		(json_int_t)j->v->seed, "classes", (json_int_t)j->classes, "classes_that_occur", (json_int_t)j->present));
	if (j->corruptions) json_object_set_new(top, "pictures", json_string(*j->v->corrupted ? j->v->corrupted
		: j->setting == NR_CORRUPT_32 ? "corrupted here, 32 px" : "corrupted here, 224 px"));
	if (robust_own_frost(j)) json_object_set_new(top, "frost", json_string("a texture of ours, which compares with nothing published"));
	if (j->alexnet) json_object_set_new(top, "relative_to", json_string("AlexNet (clean error 0.435 unchecked)"));
	else if (*j->v->relative_to) json_object_set_new(top, "relative_to", json_string(j->v->relative_to));
	return top;
}
