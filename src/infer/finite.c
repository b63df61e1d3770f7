/* See finite.h. */
#include "infer/finite.h"

#include <math.h>

#include "base/real.h"

static bool all_finite(const real *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!isfinite(x[i])) return false;
	return true;
}

bool nr_rows_finite(const struct nr_plan *p, const nr_t *out, int64_t rows)
{
	const real *x = out && out->dtype == NR_REAL ? nr_plan_data(p, out) : NULL;
	return !x || all_finite(x, nr_len(out) / out->d[0] * rows);
}

const char *nr_store_first_bad(const struct nr_store *s)
{
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		if (!all_finite(nr_value(e), e->count)) return e->name;
	}
	return NULL;
}

int nr_not_finite(struct nr_plan *p, const struct nr_store *s, const struct nr_exec *ex, const char *model, struct nr_error *err)
{
	static const char what[] = "cannot use the model";
	const char *tensor = nr_store_first_bad(s);
	if (tensor) {
		nr_fail(err, NR_EDIVERGED, what, model, "its tensor '%s' has values that are not finite", tensor);
		return nr_hint(err, "take an earlier checkpoint");
	}
	const struct nr_node *bad = nr_plan_first_bad(p, ex);
	if (!bad) return nr_fail(err, NR_EDIVERGED, what, model, "its output is not finite");
	return nr_fail(err, NR_EDIVERGED, what, model, "its output is not finite; first at %s %s", bad->where.scope, bad->op->name);
}
