/* Planner: only the leading tokens that the loss reads.
 *
 * A loss on [CLS] reads one token of the last block: what is made there token by token, and the queries of its attention, need be
 * made for that token alone. Going back from the loss we count the leading tokens of each tensor that are wanted. An op that can
 * (NR_NARROW) then gets a narrow node, which makes these only. Whoever else needs the whole (a tap, a watched tensor, running
 * statistics) keeps the recorded node beside the narrow one: no gradient comes from there, and the bits of the loss and of the
 * gradients do not depend on who looks on. */
#include "graph/plan.h"

#include <stdlib.h>

#include "math/chunk.h"

#define ALL INT64_MAX
enum { WHOLE = 1, WATCHED };

struct narrowing {
	struct planner *p;
	int32_t *made;                      /* by recorded tensor: node, or -1 for leaves */
	int64_t *lead, *side, *look;        /* by recorded tensor: leading tokens that the loss wants; taps and statistics; onlookers */
	int64_t *tokens;                    /* by node: that it makes for the loss; 0: none */
	uint8_t *whole;                     /* by node: made in full beside that; WHOLE, or WATCHED: for onlookers only */
	nr_t **narrow;                      /* by recorded tensor: its first tokens, from a narrow node */
	struct nr_node **out;
	int32_t n_out;
};

static void want(int64_t *wanted, const nr_t *t, int64_t tokens)
{
	if (tokens > wanted[t->id]) wanted[t->id] = tokens;
}

/* What a node that makes so many leading tokens reads. */
static void want_inputs(int64_t *wanted, const struct nr_node *k, int64_t tokens)
{
	if (k->op == &nr_op_span) {
		const struct nr_span_attr *a = k->attr;
		want(wanted, k->in[0], tokens == ALL ? a->to : a->from + tokens);
		return;
	}
	const int first_only = k->op == &nr_op_join && tokens != ALL;
	for (int j = 0; j < (first_only ? 1 : k->n_in); j++)
		want(wanted, k->in[j], first_only || k->op->tokenwise >> j & 1 ? tokens : ALL);
}

/* Tokens to make for the loss, if it wants so many: these, or all. A join need not be made where its first part has them. */
static int64_t tokens_of(const struct nr_node *k, int64_t wanted)
{
	const nr_t *y = k->out[0];
	if (!wanted || k->n_out != 1 || y->nd != 3 || wanted >= y->d[1]) return wanted ? ALL : 0;
	if (k->op == &nr_op_join) return wanted <= k->in[0]->d[1] ? wanted : ALL;
	if (2 * wanted > y->d[1] || k->op->commit || !(k->op->flags & NR_NARROW || k->op == &nr_op_span)) return ALL;
	for (int j = 0; j < k->n_in; j++) {
		const nr_t *x = k->in[j];
		if (!(k->op->tokenwise >> j & 1)) continue;
		if (x->nd != 3 || x->dtype != NR_REAL || x->d[0] != y->d[0] || x->d[1] != y->d[1]) return ALL;
	}
	return wanted;
}

static void count_tokens(struct narrowing *w)
{
	const struct planner *p = w->p;
	want(w->lead, p->loss, ALL);
	for (int32_t i = p->n_node - 1; i >= 0; i--) {
		const struct nr_node *k = p->node[i];
		int64_t lead = 0, side = k->op->commit && p->flags & NR_PLAN_TRAIN ? ALL : 0, look = 0;
		for (int j = 0; j < k->n_out; j++) {
			const nr_t *y = k->out[j];
			lead = nr_max64(lead, w->lead[y->id]);
			side = y->flags & NR_TAP ? ALL : nr_max64(side, w->side[y->id]);
			look = y->flags & NR_WATCHED ? ALL : nr_max64(look, w->look[y->id]);
		}
		w->tokens[i] = tokens_of(k, lead);
		if (w->tokens[i]) want_inputs(w->lead, k, w->tokens[i]);
		w->whole[i] = side > w->tokens[i] ? WHOLE : look > w->tokens[i] ? WATCHED : 0;
		if (w->whole[i]) want_inputs(w->whole[i] == WHOLE ? w->side : w->look, k, ALL);
	}
}

/* ---- the nodes --------------------------------------------------------------------------------------------------- */

static struct nr_node *add_node(struct narrowing *w, const struct nr_node *like)
{
	struct nr_node *k = nr_plan_list(w->p, 1, sizeof *k);
	if (!k) return NULL;
	*k = *like;
	return w->out[w->n_out++] = k;
}

/* Infers what the node makes; NULL sets the error. */
static nr_t *shaped(struct narrowing *w, struct nr_node *k)
{
	struct nr_net *n = w->p->net;
	k->stash = k->scratch = k->pending = 0;
	k->n_out = 0;
	if (w->p->err->code) return NULL;
	if (!k->op->shape(k) && !n->error.code) return k->out[0];
	if (n->error.code) *w->p->err = n->error;
	else nr_fail(w->p->err, NR_ESHAPE, "cannot plan", k->op->name, "its first tokens cannot be made alone");
	return NULL;
}

/* A tensor that begins with the first tokens of t: t itself, or what is made of it. */
static nr_t *beginning(const struct narrowing *w, nr_t *t, int64_t tokens)
{
	const int32_t m = w->made[t->id];
	if (m < 0 || w->tokens[m] == ALL || w->tokens[m] < tokens) return t;
	return w->p->node[m]->op == &nr_op_join ? beginning(w, w->p->node[m]->in[0], tokens) : w->narrow[t->id];
}

static nr_t *add_view(struct narrowing *w, const struct nr_node *user, const struct nr_op *op, const void *attr, nr_t *x)
{
	struct nr_node *k = add_node(w, user);
	if (!k) return NULL;
	k->op = op;
	k->attr = attr;
	k->in[0] = x;
	k->n_in = 1;
	return shaped(w, k);
}

/* Exactly the first tokens of t, as input j of the user: cut off, and without gaps where the user cannot bear them. */
static nr_t *first_tokens(struct narrowing *w, const struct nr_node *user, int j, nr_t *t, int64_t tokens)
{
	nr_t *x = beginning(w, t, tokens);
	if (x && x->d[1] > tokens) {
		struct nr_span_attr *a = nr_plan_list(w->p, 1, sizeof *a);
		if (!a) return NULL;
		*a = (struct nr_span_attr){ 0, tokens };
		x = add_view(w, user, &nr_op_span, a, x);
	}
	int pack = x && nr_has_gaps(x) && !nr_op_accepts_gaps(user->op, j);
	for (int q = 0; q < j; q++) pack |= user->in[q] == x; /* each input has its own gradient */
	return x && pack ? add_view(w, user, &nr_op_pack, NULL, x) : x;
}

static const void *narrow_attr(const struct narrowing *w, const struct nr_node *k, int64_t tokens)
{
	if (k->op != &nr_op_span) return k->op->narrowed ? k->op->narrowed(k, tokens, w->p->arena) : k->attr;
	struct nr_span_attr *a = nr_plan_list(w->p, 1, sizeof *a);
	if (a) *a = *(const struct nr_span_attr *)k->attr, a->to = a->from + tokens;
	return a;
}

static void add_narrow(struct narrowing *w, const struct nr_node *recorded, int64_t tokens)
{
	struct nr_node k = *recorded;
	k.attr = narrow_attr(w, recorded, tokens);
	if (!k.attr && recorded->attr) {
		nr_fail(w->p->err, NR_EMEMORY, "cannot plan", NULL, "out of memory");
		return;
	}
	if (k.op == &nr_op_span) k.in[0] = beginning(w, k.in[0], ((const struct nr_span_attr *)k.attr)->to);
	for (int j = 0; j < k.n_in; j++)
		if (k.op->tokenwise >> j & 1 && !(k.in[j] = first_tokens(w, &k, j, k.in[j], tokens))) return;
	struct nr_node *narrow = add_node(w, &k);
	if (narrow) w->narrow[recorded->out[0]->id] = shaped(w, narrow);
	w->p->narrowed += k.op != &nr_op_span;
}

/* The recorded node; of what it makes, the loss reads so many tokens. */
static void add_whole(struct narrowing *w, struct nr_node *k, int64_t for_loss)
{
	nr_t *x = k->in[0];
	if (k->op == &nr_op_span) x = beginning(w, x, ((const struct nr_span_attr *)k->attr)->to);
	/* A first part that the loss reads would be written into the join: its layout, and with it the order of sums, would tell that
	 * somebody looks on. */
	if (k->op == &nr_op_join && for_loss != ALL && for_loss) x = add_view(w, k, &nr_op_pack, NULL, x);
	if (!k->n_in || x == k->in[0]) {
		w->out[w->n_out++] = k;
		return;
	}
	struct nr_node *copy = add_node(w, k);
	if (copy) copy->in[0] = x;
}

static void note_watched(struct planner *p, struct nr_node *const *k, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		for (int j = 0; j < k[i]->n_out; j++)
			if (k[i]->out[j]->id < p->cap_watched) p->watched[k[i]->out[j]->id] = 1;
}

int nr_plan_only_watched(const struct planner *p, const struct nr_node *k)
{
	int only = p->cap_watched > 0;
	for (int j = 0; j < k->n_out; j++) only &= k->out[j]->id < p->cap_watched && p->watched[k->out[j]->id];
	return only;
}

/* ---- gradients that are zero now --------------------------------------------------------------------------------- */

/* Where gradients arrive in the graph as it was recorded. */
static void note_gradients(struct narrowing *w)
{
	const struct planner *p = w->p;
	p->had_grad[p->loss->id] = 1;
	for (int32_t i = p->n_node - 1; i >= 0; i--) {
		const struct nr_node *k = p->node[i];
		int any = 0;
		for (int j = 0; j < k->n_out; j++) any |= p->had_grad[k->out[j]->id];
		for (int j = 0; any && k->op->backward && j < k->n_in; j++) p->had_grad[k->in[j]->id] = 1;
	}
}

int nr_plan_lost_grad(const struct planner *p, const nr_t *t)
{
	const int leaf = (t->flags & (NR_PARAM | NR_INPUT)) != 0;
	return leaf && p->had_grad && p->had_grad[t->id] && p->need_grad[t->id] && !p->reached[t->id];
}

static double forward_flops(const struct planner *p)
{
	double sum = 0;
	for (int32_t i = 0; i < p->n_node; i++) {
		double forward = 0, backward = 0;
		nr_node_cost(p->node[i], &forward, &backward);
		sum += forward;
	}
	return sum;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

int nr_plan_narrow(struct planner *p)
{
	const char *env = getenv("NORMA_NARROW");
	const int32_t T = p->n_recorded = p->net->n_tensor;
	if (p->flags & NR_PLAN_NO_NARROW || (env && !strcmp(env, "0"))) return 0;
	struct narrowing w = { .p = p, .made = nr_plan_list(p, T, sizeof *w.made), .lead = nr_plan_list(p, T, sizeof *w.lead),
		.side = nr_plan_list(p, T, sizeof *w.side), .look = nr_plan_list(p, T, sizeof *w.look),
		.tokens = nr_plan_list(p, p->n_node, sizeof *w.tokens), .whole = nr_plan_list(p, p->n_node, 1),
		.narrow = nr_plan_list(p, T, sizeof(nr_t *)) };
	int64_t most = 0;                   /* a whole node, a narrow one, and two views for each of its inputs */
	for (int32_t i = 0; i < p->n_node; i++) most += 2 + 2 * (int64_t)p->node[i]->n_in;
	w.out = nr_plan_list(p, most, sizeof *w.out);
	p->cap_watched = T + (int32_t)most; /* each new node makes one tensor */
	p->watched = nr_plan_list(p, p->cap_watched, 1);
	if (p->flags & NR_PLAN_TRAIN) p->had_grad = nr_plan_list(p, T, 1);
	if (p->err->code) return p->err->code;
	for (int32_t i = 0; i < T; i++) w.made[i] = -1;
	for (int32_t i = 0; i < p->n_node; i++)
		for (int j = 0; j < p->node[i]->n_out; j++) w.made[p->node[i]->out[j]->id] = i;
	if (p->had_grad) note_gradients(&w);
	count_tokens(&w);
	for (int32_t i = 0; i < p->n_node && !p->err->code; i++) {
		struct nr_node *k = p->node[i];
		const int32_t from = w.n_out;
		if (w.whole[i] || w.tokens[i] == ALL) add_whole(&w, k, w.tokens[i]);
		if (w.whole[i] == WATCHED) note_watched(p, w.out + from, w.n_out - from);
		if (w.tokens[i] && w.tokens[i] != ALL && k->op != &nr_op_join) add_narrow(&w, k, w.tokens[i]);
	}
	if (p->err->code) return p->err->code;
	const double recorded = forward_flops(p);
	p->node = w.out;
	p->n_node = w.n_out;
	p->left_out_flops = recorded - forward_flops(p);
	return 0;
}
