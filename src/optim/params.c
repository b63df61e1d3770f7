/* The parameters of a store as an optimizer wants them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "norma/graph.h"
#include "norma/optim.h"

int nr_optim_init(struct nr_optim *o, const char *name, struct nr_error *err)
{
	nr_option_defaults(nr_optim_options(), o);
	return nr_option_set(nr_optim_options(), o, "kind", name, NULL, err);
}

/* Matrices of the blocks, whose names have a number: "blocks.3.mlp.fc1.weight". Embeddings and heads stand outside. */
static bool hidden(const struct nr_entry *e)
{
	for (const char *s = strchr(e->name, '.'); e->nd == 2 && s; s = strchr(s + 1, '.'))
		if (isdigit((unsigned char)s[1])) return !(e->init & NR_NO_DECAY);
	return false;
}

static int add(struct nr_params *p, const struct nr_entry *e, int slots, struct nr_error *err)
{
	nr_real *m = slots > 0 ? nr_moment(e, 0, err) : NULL, *v = slots > 1 ? nr_moment(e, 1, err) : NULL;
	if ((slots > 0 && !m) || (slots > 1 && !v)) return NR_EMEMORY;
	p->segment[p->count++] = (struct nr_segment){ .value = nr_value(e),
		.grad = e->frozen ? NULL : nr_grad(e),
		.m = m,
		.v = v,
		.count = e->count,
		.nd = e->nd,
		.d = e->d,
		.flags = (hidden(e) ? NR_SEGMENT_MATRIX : 0) | (e->init & NR_UNIT_ROWS ? NR_SEGMENT_UNIT_ROWS : 0) |
			(e->init & NR_UNIT_COLUMNS ? NR_SEGMENT_UNIT_COLUMNS : 0),
		.lr_scale = 1,
		.decay = e->init & NR_NO_DECAY ? 0 : 1 };
	return NR_OK;
}

int nr_params_init(struct nr_params *p, struct nr_store *s, const struct nr_optim *o, struct nr_error *err)
{
	const int64_t n = nr_store_count(s);
	*p = (struct nr_params){ .segment = calloc((size_t)n + 1, sizeof *p->segment) };
	int code = p->segment ? nr_store_seal(s, err) : NR_EMEMORY;
	for (int64_t i = 0; !code && i < n; i++)
		if (!nr_store_at(s, i)->buffer) code = add(p, nr_store_at(s, i), nr_optim_slots(o), err);
	if (!code && !(p->scratch = malloc(nr_optim_scratch(o, p->segment, p->count) + 1))) code = NR_EMEMORY;
	if (!code) return NR_OK;
	nr_params_release(p);
	return nr_fail(err, NR_EMEMORY, "cannot list the parameters", NULL, "out of memory");
}

void nr_params_release(struct nr_params *p)
{
	free(p->segment);
	free(p->scratch);
	*p = (struct nr_params){ 0 };
}

int nr_params_step(const struct nr_params *p, const struct nr_optim *o, const struct nr_rates *rates, int64_t t, struct nr_error *err)
{
	const struct nr_rates own = { .lr = o->lr, .weight_decay = o->weight_decay };
	const int code = nr_optim_step(o, rates ? rates : &own, t, p->segment, p->count, p->scratch, NULL);
	if (code == NR_EDIVERGED) nr_fail(err, NR_EDIVERGED, "cannot make a step", NULL, "the gradient is not finite");
	else if (code) nr_fail(err, NR_ENAME, "cannot make a step", NULL, "there is no such optimizer");
	return code;
}
