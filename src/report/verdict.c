/* The verdict: see verdict.h. Two arms differ if their 95 % intervals do not overlap: a cautious rule, which misses small
 * differences rather than inventing them. */
#include "report/verdict.h"

#include <math.h>
#include <string.h>

#include "draw/html.h"

/* next: the second best; -1 if there is none. */
struct standing { const struct nr_measure *measure; int best, next; };

/* The first measure that most arms have decides: an arm that lacks it is named among the doubts. */
static struct standing stand(const struct nr_arms *a)
{
	struct standing s = { NULL, -1, -1 };
	int most = 0;
	for (const struct nr_measure *m = nr_measures; m->title && !m->cost; m++) {
		int have = 0;
		for (int i = 0; i < a->count; i++) have += isfinite(nr_arm_estimate(a, i, m).mean);
		const bool side = m == nr_uniformity_measure || m == nr_rank_measure;
		if (have > most && !side) most = have, s.measure = m;
	}
	if (!s.measure) return s;
	s.best = nr_best_arm(a, s.measure, -1);
	s.next = nr_best_arm(a, s.measure, s.best);
	return s;
}

/* ---- pieces of sentences ----------------------------------------------------------------------------------------------- */

static void add_name(struct nr_str *s, const struct nr_arms *a, int arm) { nr_html_element(s, "strong", "plan", a->arm[arm].name); }

/* "83.2 % (95 % interval 82.4 to 84.0)"; interval: what it is called, "" where that was said. */
static void add_estimate(struct nr_str *s, const struct nr_measure *m, struct nr_estimate e, const char *interval)
{
	char mean[64], lo[64], hi[64];
	nr_html_printf(s, "%s", nr_measure_text(m, e.mean, true, mean, sizeof mean));
	if (e.over != NR_NO_INTERVAL)
		nr_html_printf(s, " (%s%s to %s)", interval, nr_measure_text(m, e.lo, false, lo, sizeof lo),
			nr_measure_text(m, e.hi, false, hi, sizeof hi));
}

static bool overlap(struct nr_estimate a, struct nr_estimate b) { return a.lo <= b.hi && b.lo <= a.hi; }

/* Arms that the best one cannot be told from; only where both have an interval. */
static int count_even(const struct nr_arms *a, const struct standing *v)
{
	const struct nr_estimate best = nr_arm_estimate(a, v->best, v->measure);
	int even = 0;
	for (int i = 0; i < a->count; i++)
		if (i != v->best) even += overlap(best, nr_arm_estimate(a, i, v->measure));
	return even;
}

/* ---- who is ahead ------------------------------------------------------------------------------------------------------ */

/* The best arm and those that it cannot be told from: first all names, then all values. */
static void add_even(struct nr_str *s, const struct nr_arms *a, const struct standing *v, int even)
{
	const struct nr_estimate best = nr_arm_estimate(a, v->best, v->measure);
	struct nr_str values = { 0 };
	int beaten = 0;
	nr_str_add(s, "No difference between ");
	add_name(s, a, v->best);
	add_estimate(&values, v->measure, best, "");
	for (int i = 0, k = 0; i < a->count; i++) {
		const struct nr_estimate e = nr_arm_estimate(a, i, v->measure);
		if (i == v->best || !isfinite(e.mean)) continue;
		beaten += e.over != NR_NO_INTERVAL && !overlap(best, e);
		if (!overlap(best, e)) continue;
		const char *comma = ++k == even ? " and " : ", ";
		nr_str_add(s, comma);
		add_name(s, a, i);
		nr_str_add(&values, comma);
		add_estimate(&values, v->measure, e, "");
	}
	nr_html_printf(s, " in %s: ", v->measure->words);
	nr_str_printf(s, "%s; the 95 %% intervals overlap.", nr_str_text(&values));
	if (beaten) nr_str_printf(s, " %d other arm%s clearly behind.", beaten, beaten > 1 ? "s are" : " is");
	if (values.failed) s->failed = true;
	nr_str_release(&values);
}

static void add_headline(struct nr_str *s, const struct nr_arms *a, const struct standing *v)
{
	const struct nr_estimate best = nr_arm_estimate(a, v->best, v->measure), next = nr_arm_estimate(a, v->next, v->measure);
	const bool intervals = best.over != NR_NO_INTERVAL && next.over != NR_NO_INTERVAL;
	const int even = count_even(a, v);
	if (best.mean == next.mean && !intervals) {
		nr_html_printf(s, "No difference in %s: the best arms have the same ", v->measure->words);
		add_estimate(s, v->measure, best, "");
		nr_str_add(s, ".");
		return;
	}
	if (intervals && even) {
		add_even(s, a, v, even);
		return;
	}
	add_name(s, a, v->best);
	const bool single = best.over == NR_OVER_SAMPLES || next.over == NR_OVER_SAMPLES;
	nr_str_add(s, !intervals ? " has the best " : single ? " is ahead in these single runs: " : " is ahead: ");
	nr_html_printf(s, "%s%s", v->measure->words, intervals ? " " : ", ");
	add_estimate(s, v->measure, best, "95 % interval ");
	nr_str_add(s, " against ");
	add_estimate(s, v->measure, next, "");
	nr_str_add(s, " of ");
	add_name(s, a, v->next);
	nr_str_add(s, a->count > 2 ? ", the next best." : ".");
	if (!intervals) nr_str_add(s, " With a single run there is no interval: this may be chance.");
}

static void add_single(struct nr_str *s, const struct nr_arms *a, const struct standing *v)
{
	add_name(s, a, v->best);
	nr_html_printf(s, " reaches a %s of ", v->measure->words);
	add_estimate(s, v->measure, nr_arm_estimate(a, v->best, v->measure), "95 % interval ");
	nr_str_add(s, a->count > 1 ? "; no other arm has this value, so nothing is compared."
				   : ". There is one arm only: nothing is compared.");
}

/* ---- what goes with it ------------------------------------------------------------------------------------------------- */

/* 1: the best arm is also better in this; -1: worse; 0: not known or equal. Writes both values. */
static int add_feature(struct nr_str *s, const struct nr_arms *a, const struct standing *v, const struct nr_measure *m)
{
	char x[64], y[64];
	const double best = nr_arm_estimate(a, v->best, m).mean, next = nr_arm_estimate(a, v->next, m).mean;
	if (!isfinite(best) || !isfinite(next)) return 0;
	nr_html_printf(s, "%s%s %s against %s%s", s->len ? " and " : "", m->words, nr_measure_text(m, best, false, x, sizeof x),
		nr_measure_text(m, next, false, y, sizeof y), m == nr_uniformity_measure ? " (lower is more even)" : "");
	return best == next ? 0 : (best - next) * m->better > 0 ? 1 : -1;
}

static void add_features(struct nr_str *s, const struct nr_arms *a, const struct standing *v, bool ahead)
{
	struct nr_str facts = { 0 };
	const int uniform = add_feature(&facts, a, v, nr_uniformity_measure), rank = add_feature(&facts, a, v, nr_rank_measure);
	const bool agrees = ahead && uniform + rank > 0 && uniform >= 0 && rank >= 0;
	const bool opposes = ahead && uniform + rank < 0 && uniform <= 0 && rank <= 0;
	if (facts.len) {
		nr_str_add(s, agrees  ? "<p>The features agree: those of the winner fill their space more evenly, with "
			      : opposes ? "<p>The features do not explain it: those of the winner fill their space less evenly, with "
					: "<p>What the features say of the two best arms: ");
		nr_str_add_n(s, nr_str_text(&facts), facts.len);
		nr_str_add(s, agrees ? ". Both were seen together; that is no proof of a cause.</p>\n" : ".</p>\n");
	}
	if (facts.failed) s->failed = true;
	nr_str_release(&facts);
}

/* ---- how far to trust it ----------------------------------------------------------------------------------------------- */

static void add_basis(struct nr_str *s, const struct nr_arms *a, const struct standing *v)
{
	int seeds = 0, samples = 0, least = 0, most = 0;
	double tests = 0;
	for (int i = 0; i < a->count; i++) {
		const struct nr_estimate e = nr_arm_estimate(a, i, v->measure);
		if (e.over == NR_OVER_SAMPLES) samples++, tests = fmax(tests, (double)e.n);
		if (e.over != NR_OVER_RUNS) continue;
		least = !seeds || e.n < least ? (int)e.n : least;
		most = e.n > most ? (int)e.n : most;
		seeds++;
	}
	if (seeds && least == most) nr_str_printf(s, "<li>Intervals (95 %%, Student’s t) are over %d seeds of each arm.</li>", least);
	else if (seeds) nr_str_printf(s, "<li>Intervals (95 %%, Student’s t) are over %d to %d seeds of an arm.</li>", least, most);
	if (samples)
		nr_str_printf(s, "<li>%s: the interval (95 %%, Wilson) is over %.0f samples; it does not cover the luck of a seed.</li>",
			seeds ? "Arms with one seed" : "One seed of each arm", tests);
}

static void add_doubts(struct nr_str *s, const struct nr_arms *a, const struct standing *v)
{
	int unfinished = 0, lack = 0, repeated = 0;
	for (int i = 0; i < a->runs; i++) unfinished += strcmp(a->run[i].status, "done") && strcmp(a->run[i].status, "stopped early");
	for (int i = 0; i < a->count; i++) {
		repeated += a->arm[i].runs - a->arm[i].distinct;
		if (v->measure) lack += !isfinite(nr_arm_estimate(a, i, v->measure).mean);
	}
	if (unfinished)
		nr_str_printf(s, "<li>%d of %d runs did not end as planned; see <a href=\"#runs\">the runs</a>.</li>", unfinished, a->runs);
	if (lack) nr_str_printf(s, "<li>%d of %d arms lack this value and are not compared.</li>", lack, a->count);
	if (repeated) nr_str_printf(s, "<li>%d runs repeat a seed of their arm and do not count.</li>", repeated);
	if (*a->differ && a->count > 1) {
		nr_str_add(s, "<li>The arms differ in more than their norms (");
		nr_html_text(s, a->differ);
		nr_str_add(s, "), so the norm need not be the cause.</li>");
	}
}

void nr_verdict(struct nr_str *s, const struct nr_arms *a)
{
	const struct standing v = stand(a);
	struct nr_str list = { 0 };
	nr_str_add(s, "<p class=\"verdict\">");
	if (!v.measure) nr_str_add(s, "No run has a held-out measure yet: nothing can be compared.");
	else if (v.next < 0) add_single(s, a, &v);
	else add_headline(s, a, &v);
	nr_str_add(s, "</p>\n");
	if (v.measure && v.next >= 0) {
		const struct nr_estimate best = nr_arm_estimate(a, v.best, v.measure), next = nr_arm_estimate(a, v.next, v.measure);
		add_features(s, a, &v, best.over != NR_NO_INTERVAL && next.over != NR_NO_INTERVAL && !count_even(a, &v));
	}
	if (v.measure) add_basis(&list, a, &v);
	add_doubts(&list, a, &v);
	if (list.len) nr_str_printf(s, "<ul class=\"basis\">%s</ul>\n", nr_str_text(&list));
	if (list.failed) s->failed = true;
	nr_str_release(&list);
}
