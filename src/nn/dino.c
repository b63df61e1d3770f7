/* dino: the loss between the views of a student and those of a teacher. Caron et al. 2021, arXiv:2104.14294, Eq. 3 and the released code.
 *
 *   s (V B,K): the student's outputs, view after view; p (2 B,K): the teacher's probabilities of the first two views
 *   loss = 1 / ((2 V - 2) B)  sum over b, q < 2, v != q of  sum_k p_qbk (log sum_j e^(s_vbj / t) - s_vbk / t)
 *
 * A view of the student meets one teacher or both: their probabilities are added first, so that each row of s is passed over once. */
#include <omp.h>

#include "math/row.h"
#include "nn/op.h"

enum { TEACHERS = 2 };
struct dino { double temperature; };
struct sizes { int64_t B, V, K; };
static struct sizes sizes_of(const struct nr_node *k)
{
	const int64_t B = k->in[1]->d[0] / TEACHERS;
	return (struct sizes){ B, k->in[0]->d[0] / B, k->in[0]->d[1] };
}
static double terms(const struct sizes *n) { return (double)(TEACHERS * (n->V - 1) * n->B); }

/* Scratch: a row's s / t and target for each thread; each row's loss and their sums. */
static int shape(struct nr_node *k)
{
	const nr_t *s = k->in[0], *p = k->in[1];
	const struct dino *a = k->attr;
	char ss[64], sp[64];
	nr_shape_text(s, ss, sizeof ss), nr_shape_text(p, sp, sizeof sp);
	const int flat = s->nd == 2 && p->nd == 2 && s->d[1] == p->d[1], even = flat && p->d[0] > 0 && p->d[0] % TEACHERS == 0;
	if (nr_expect(k, even && s->d[0] >= p->d[0] && s->d[0] % (p->d[0] / TEACHERS) == 0,
		      "outputs %s are not views of as many samples as the two of the teacher's %s", ss, sp) ||
	    nr_expect(k, a->temperature > 0, "temperature must be positive, not %g", a->temperature))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->scratch = (size_t)(2 * s->d[1] * k->threads + s->d[0] + nr_array_chunks(s->d[0])) * sizeof(real);
	return 0;
}

static int team(const struct nr_call *k)
{
	const int most = omp_get_max_threads();
	return k->node->threads < most ? k->node->threads : most;
}
static real *of_thread(const struct nr_call *k, int64_t K) { return (real *)k->scratch + 2 * K * omp_get_thread_num(); }

/* s / t of row r. */
static const real *scaled(const struct nr_call *k, int64_t K, int64_t r, real *room)
{
	nr_row_scale(K, (real)(1 / ((const struct dino *)k->node->attr)->temperature), nr_row(&k->x[0], r), room);
	return room;
}

/* The sum of the teacher's rows that row r is compared with. */
static const real *target(const struct nr_call *k, const struct sizes *n, int64_t r, real *room)
{
	const int64_t view = r / n->B, b = r % n->B;
	const real *first = nr_row(&k->x[1], b), *second = nr_row(&k->x[1], n->B + b);
	if (view < TEACHERS) return view == 0 ? second : first;
	nr_row_add(n->K, first, second, room);
	return room;
}

static void forward(const struct nr_call *k)
{
	const struct sizes n = sizes_of(k->node);
	real *loss = (real *)k->scratch + 2 * n.K * k->node->threads;
	const int64_t rows = n.V * n.B;
#pragma omp parallel for schedule(static) num_threads(team(k)) if (rows * n.K > 4096)
	for (int64_t r = 0; r < rows; r++) {
		real *room = of_thread(k, n.K);
		nr_row_active->xent_soft(1, n.K, scaled(k, n.K, r, room), n.K, target(k, &n, r, room + n.K), n.K, 1, &loss[r], NULL, 0, 0);
	}
	*(real *)k->y[0].p = (real)((double)nr_array_sum(rows, loss, loss + rows) / terms(&n));
}

/* d loss / d p: what the student's other views lose on each of its outputs. */
static void target_backward(const struct nr_call *k, const struct sizes *n, real scale)
{
#pragma omp parallel for schedule(static) num_threads(team(k)) if (n->B * n->K > 4096)
	for (int64_t r = 0; r < TEACHERS * n->B; r++) {
		real *room = of_thread(k, n->K), *d = nr_row(&k->dx[1], r);
		if (!k->add[1]) memset(d, 0, (size_t)n->K * sizeof *d);
		for (int64_t v = 0; v < n->V; v++) {
			if (v == r / n->B) continue;
			scaled(k, n->K, v * n->B + r % n->B, room);
			nr_row_active->log_softmax(1, n->K, room, n->K, 1, NULL, 0, room + n->K, n->K);
			nr_row_axpy(n->K, -scale, room + n->K, d);
		}
	}
}

static void backward(const struct nr_call *k)
{
	const struct sizes n = sizes_of(k->node);
	const struct dino *a = k->node->attr;
	const double dloss = (double)*(const real *)k->dy[0].p / terms(&n);
	const real scale = (real)(dloss / a->temperature);
#pragma omp parallel for schedule(static) num_threads(team(k)) if (n.V * n.B * n.K > 4096)
	for (int64_t r = 0; r < (k->want & 1 ? n.V * n.B : 0); r++) {
		real *room = of_thread(k, n.K);
		nr_row_active->xent_soft(1, n.K, scaled(k, n.K, r, room), n.K, target(k, &n, r, room + n.K), n.K, scale, NULL,
			nr_row(&k->dx[0], r), n.K, k->add[0]);
	}
	if (k->want & 2) target_backward(k, &n, (real)dloss);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_dino_loss(n, x[0], x[1], strstr(options, "cold") ? 0.3 : 1);
}
static const struct nr_case cases[] = {
	{ "10x7 4x7", "" }, { "2x5 2x5", "cold" }, { "15x70 6x70", "cold" }, { "3x1 2x1", "" }, { "64x130 16x130", "cold" }, { NULL, NULL },
};
const struct nr_op nr_op_dino = {
	.name = "dino", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.flags = NR_BATCHWISE, .try_case = try_case, .cases = cases,
};

nr_t *nr_dino_loss(struct nr_net *n, nr_t *student, nr_t *teacher, double temperature)
{
	const struct dino a = { temperature };
	return nr_apply(n, &nr_op_dino, &a, sizeof a, student, teacher);
}
