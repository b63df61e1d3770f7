/* path_bias: Graphormer's spatial and edge encodings as a bias of attention. Ying et al. 2021, arXiv:2106.05234, Eq. 6 and 7.
 *
 *   y[b,h,i,j] = distance_table[d_ij,h] + 1/n_ij sum_l mean_f (edge_table[e_ijlf] W_l)[h]    between nodes
 *              = virtual_distance[h]                                                        with the virtual node (0)
 *
 * d_ij is the length of the shortest path + 1, n_ij that length between 1 and `hops`, e_ijlf feature f of its l-th edge, W_l an
 * H x H matrix. Without matrices there is one edge for a pair, that between the nodes, and n is 1.
 *
 * The tables edge_table W_l / F are made first, one for each place on the path: a pair is then a sum of rows. Backward adds to
 * tables of a fixed number of groups of samples, which are folded in order. Row 0 of the tables stands for padding and gets no
 * gradient. A pair that is cut off gets a score so low that attention leaves it out. */
#include "math/row.h"
#include "nn/op.h"

enum { DISTANCE_TABLE, VIRTUAL, DISTANCE, EDGE_TABLE, EDGES, HOP_TABLE, MOST_HEADS = 1024, GROUPS = 8 };
#define CUT_OFF ((real)-1e30)       /* attention does not count scores below -1e29 */
#define INLINE static inline __attribute__((always_inline))

struct attr { int64_t hops, cut; };         /* cut counts edges, distances are one more */

struct sizes {
	int64_t B, N, T, H;
	int64_t distances, edges;           /* rows of the tables */
	int64_t L, F, places;               /* of the edges; of them count */
};

static struct sizes sizes_of(const struct nr_node *k)
{
	const struct attr *a = k->attr;
	const nr_t *d = k->in[DISTANCE];
	struct sizes s = { .B = d->d[0], .N = d->d[1], .T = d->d[1] + 1, .H = k->in[DISTANCE_TABLE]->d[1],
		.distances = k->in[DISTANCE_TABLE]->d[0] };
	if (k->n_in > EDGES) {
		const nr_t *e = k->in[EDGES];
		s.edges = k->in[EDGE_TABLE]->d[0];
		s.L = e->nd == 5 ? e->d[3] : 1;
		s.F = e->d[e->nd - 1];
		s.places = a->hops > 0 ? nr_min64(a->hops, s.L) : s.L;
	}
	return s;
}

static int64_t edge_values(const struct sizes *s) { return s->places * s->edges * s->H; }
static int64_t group_rows(const struct sizes *s) { return s->distances + 1 + s->places * s->edges; }
static int64_t groups(const struct sizes *s) { return nr_min64(s->B, GROUPS); }

static int check_edges(struct nr_node *k, int64_t B, int64_t N, int64_t H)
{
	const nr_t *table = k->in[EDGE_TABLE], *e = k->in[EDGES], *w = k->n_in > HOP_TABLE ? k->in[HOP_TABLE] : NULL;
	char s[64];
	const int fits = (e->nd == 4 || e->nd == 5) && e->d[0] == B && e->d[1] == N && e->d[2] == N && e->dtype == NR_I32;
	if (nr_expect(k, fits, "edges %s are neither (B,N,N,F) nor (B,N,N,L,F) int32", nr_shape_text(e, s, sizeof s)) ||
	    nr_expect(k, table->nd == 2 && table->d[1] == H, "the edge table is %s, not (count,%lld)", nr_shape_text(table, s, sizeof s),
		      (long long)H) ||
	    nr_expect(k, (e->nd == 5) == (w != NULL), "edges on paths go with a table of hops, single ones without"))
		return NR_ESHAPE;
	const struct sizes z = sizes_of(k);
	return nr_expect(k, !w || nr_len(w) >= z.places * H * H,
		"the hop table has %lld values, but %lld hops of %lld heads need %lld",
		w ? (long long)nr_len(w) : 0, (long long)z.places, (long long)H, (long long)(z.places * H * H));
}

static int shape(struct nr_node *k)
{
	const nr_t *t = k->in[DISTANCE_TABLE], *d = k->in[DISTANCE];
	char s[64];
	if (nr_expect(k, d->nd == 3 && d->d[1] == d->d[2] && d->dtype == NR_I32, "distances are (B,N,N) int32, not %s",
		      nr_shape_text(d, s, sizeof s)) ||
	    nr_expect(k, t->nd == 2 && t->d[1] <= MOST_HEADS && nr_len(k->in[VIRTUAL]) == t->d[1],
		      "the distance table is %s, not (count,H) with H values for the virtual node, at most %d",
		      nr_shape_text(t, s, sizeof s), MOST_HEADS) ||
	    (k->n_in > EDGES && check_edges(k, d->d[0], d->d[1], t->d[1])))
		return NR_ESHAPE;
	const struct sizes z = sizes_of(k);
	nr_out(k, 0, NR_REAL, 4, (int64_t[]){ z.B, z.H, z.T, z.T }, NULL);
	k->scratch = (size_t)nr_max64(edge_values(&z), (groups(&z) + 1) * group_rows(&z) * z.H) * sizeof(real);
	return 0;
}

struct job {
	struct sizes s;
	const struct attr *a;
	const int32_t *distance, *edge;
	const real *distances, *virtual;
	real *table;                        /* (places,edges,H), of a group in backward */
	real *dy_distances, *dy_virtual;
	real *y;
	const real *dy;
};

static struct job job_of(const struct nr_call *k)
{
	const struct sizes s = sizes_of(k->node);
	return (struct job){ .s = s, .a = k->node->attr, .distance = nr_ints(&k->x[DISTANCE]), .edge = s.F ? nr_ints(&k->x[EDGES]) : NULL,
		.distances = k->x[DISTANCE_TABLE].p, .virtual = k->x[VIRTUAL].p };
}

static int inside(int32_t i, int64_t rows) { return i >= 0 && i < rows; }

/* 1 / n of a pair at this distance: the mean over the edges of its path. */
static real share(const struct job *j, int32_t distance)
{
	int64_t n = distance > 1 ? distance - 1 : 1;
	if (j->a->hops > 0 && n > j->a->hops) n = j->a->hops;
	return 1 / (real)n;
}
static int is_path(const struct nr_node *k) { return k->n_in > HOP_TABLE; }

INLINE void add_row(int64_t H, const real *x, real *y)
{
	for (int64_t h = 0; h < H; h++) y[h] += x[h];
}

/* ---- forward ------------------------------------------------------------------------------------------------------------- */

/* table[l] = edge_table W_l / F */
static void make_tables(const struct nr_call *k, const struct sizes *s, real *table)
{
	const int64_t H = s->H;
	const real *from = k->x[EDGE_TABLE].p, *hops = is_path(k->node) ? k->x[HOP_TABLE].p : NULL;
	const real part = 1 / (real)s->F;
#pragma omp parallel for schedule(static) if (edge_values(s) * H > 16384)
	for (int64_t q = 0; q < s->places * s->edges; q++) {
		const real *row = from + q % s->edges * H, *w = hops ? hops + q / s->edges * H * H : NULL;
		real *y = table + q * H;
		for (int64_t h = 0; h < H; h++) y[h] = w ? 0 : row[h] * part;
		for (int64_t i = 0; w && i < H; i++)
			for (int64_t h = 0; h < H; h++) y[h] += row[i] * part * w[i * H + h];
	}
}

/* Row i of the nodes of a sample, all heads. H is a constant wherever speed counts. */
INLINE void make_row(int64_t H, const struct job *j, int64_t b, int64_t i, int path)
{
	const struct sizes *s = &j->s;
	const int64_t at = (b * s->N + i) * s->N, T = s->T, each = s->L * s->F;
	real *y = j->y + (b * H * T + i + 1) * T, sum[MOST_HEADS];
	for (int64_t h = 0; h < H; h++) y[h * T * T] = j->virtual[h];
	for (int64_t c = 0; c < s->N; c++) {
		const int32_t d = j->distance[at + c];
		for (int64_t h = 0; h < H; h++) sum[h] = 0;
		for (int64_t l = 0; l < s->places; l++)
			for (int64_t f = 0; f < s->F; f++) {
				const int32_t e = j->edge[(at + c) * each + l * s->F + f];
				if (inside(e, s->edges)) add_row(H, j->table + (l * s->edges + e) * H, sum);
			}
		const real n = path ? share(j, d) : 1;
		const real *row = inside(d, s->distances) ? j->distances + d * H : NULL;
		const int cut = j->a->cut > 0 && d > j->a->cut;
		for (int64_t h = 0; h < H; h++) y[h * T * T + c + 1] = cut ? CUT_OFF : sum[h] * n + (row ? row[h] : 0);
	}
}

static void forward(const struct nr_call *k)
{
	struct job j = job_of(k);
	const struct sizes *s = &j.s;
	const int path = is_path(k->node);
	j.y = k->y[0].p;
	j.table = k->scratch;
	if (s->places) make_tables(k, s, j.table);
#pragma omp parallel for schedule(static) if (s->B * s->H * s->T * s->T > 16384)
	for (int64_t q = 0; q < s->B * s->T; q++) {
		const int64_t b = q / s->T, i = q % s->T - 1;
		if (i < 0)
			for (int64_t h = 0; h < s->H * s->T; h++) j.y[(b * s->H + h / s->T) * s->T * s->T + h % s->T] = j.virtual[h / s->T];
		else if (s->H == 8) make_row(8, &j, b, i, path);
		else if (s->H == 32) make_row(32, &j, b, i, path);
		else make_row(s->H, &j, b, i, path);
	}
}

/* ---- backward ------------------------------------------------------------------------------------------------------------ */

INLINE void spread_row(int64_t H, const struct job *j, int64_t b, int64_t i, int path)
{
	const struct sizes *s = &j->s;
	const int64_t at = (b * s->N + i) * s->N, T = s->T, each = s->L * s->F;
	const real *dy = j->dy + (b * H * T + i + 1) * T, part = s->F ? 1 / (real)s->F : 0;
	real g[MOST_HEADS];
	for (int64_t h = 0; h < H; h++) j->dy_virtual[h] += dy[h * T * T];
	for (int64_t c = 0; c < s->N; c++) {
		const int32_t d = j->distance[at + c];
		if (j->a->cut > 0 && d > j->a->cut) continue;
		for (int64_t h = 0; h < H; h++) g[h] = dy[h * T * T + c + 1];
		if (d > 0 && d < s->distances) add_row(H, g, j->dy_distances + d * H);
		const real n = path ? part * share(j, d) : part;
		for (int64_t h = 0; h < H; h++) g[h] *= n;
		for (int64_t l = 0; l < s->places; l++)
			for (int64_t f = 0; f < s->F; f++) {
				const int32_t e = j->edge[(at + c) * each + l * s->F + f];
				if (e > 0 && e < s->edges) add_row(H, g, j->table + (l * s->edges + e) * H);
			}
	}
}

/* The samples of a group, in order, into its tables. */
static void spread_group(struct job j, int64_t g, int64_t count, real *part, int path)
{
	const struct sizes *s = &j.s;
	memset(part, 0, (size_t)(group_rows(s) * s->H) * sizeof *part);
	j.dy_distances = part;
	j.dy_virtual = part + s->distances * s->H;
	j.table = j.dy_virtual + s->H;
	for (int64_t b = s->B * g / count; b < s->B * (g + 1) / count; b++) {
		for (int64_t h = 0; h < s->H; h++) j.dy_virtual[h] += nr_sum(s->T, j.dy + (b * s->H + h) * s->T * s->T);
		for (int64_t i = 0; i < s->N; i++) {
			if (s->H == 8) spread_row(8, &j, b, i, path);
			else if (s->H == 32) spread_row(32, &j, b, i, path);
			else spread_row(s->H, &j, b, i, path);
		}
	}
}

/* d edge_table = sum_l g_l W_l^T */
static void edge_gradient(const struct nr_call *k, const struct sizes *s, const real *g)
{
	const int64_t H = s->H;
	const real *hops = is_path(k->node) ? k->x[HOP_TABLE].p : NULL;
	real *to = k->dx[EDGE_TABLE].p;
#pragma omp parallel for schedule(static) if (edge_values(s) * H > 16384)
	for (int64_t e = 0; e < s->edges; e++)
		for (int64_t i = 0; i < H; i++) {
			real sum = 0;
			for (int64_t l = 0; l < s->places; l++) {
				const real *row = g + (l * s->edges + e) * H, *w = hops ? hops + (l * H + i) * H : NULL;
				for (int64_t h = 0; w && h < H; h++) sum += row[h] * w[h];
				if (!w) sum += row[i];
			}
			nr_put(&to[e * H + i], sum, k->add[EDGE_TABLE]);
		}
}

/* d W_l = edge_table^T g_l; places that did not count get none. */
static void hop_gradient(const struct nr_call *k, const struct sizes *s, const real *g)
{
	const int64_t H = s->H, all = nr_len(k->node->in[HOP_TABLE]);
	const real *table = k->x[EDGE_TABLE].p;
	real *to = k->dx[HOP_TABLE].p;
	if (!k->add[HOP_TABLE]) nr_array_fill(all, 0, to);
#pragma omp parallel for schedule(static) if (edge_values(s) * H > 16384)
	for (int64_t q = 0; q < s->places * H; q++) {
		real *row = to + q * H;
		for (int64_t e = 0; e < s->edges; e++) {
			const real f = table[e * H + q % H], *from = g + (q / H * s->edges + e) * H;
			for (int64_t h = 0; h < H; h++) row[h] += f * from[h];
		}
	}
}

static void backward(const struct nr_call *k)
{
	struct job j = job_of(k);
	const struct sizes *s = &j.s;
	const int64_t size = group_rows(s) * s->H, count = groups(s);
	real *total = k->scratch, *part = total + size;
	const int path = is_path(k->node);
	j.dy = k->dy[0].p;
#pragma omp parallel for schedule(dynamic, 1) if (s->B * s->H * s->T * s->T > 16384)
	for (int64_t g = 0; g < count; g++) spread_group(j, g, count, part + g * size, path);
	nr_fold(count, size, part, total, 0);
	const real *edges = total + (s->distances + 1) * s->H;
	if (k->want >> DISTANCE_TABLE & 1) nr_row_put(s->distances * s->H, total, k->dx[DISTANCE_TABLE].p, k->add[DISTANCE_TABLE]);
	if (k->want >> VIRTUAL & 1) nr_row_put(s->H, total + s->distances * s->H, k->dx[VIRTUAL].p, k->add[VIRTUAL]);
	if (s->places && k->want >> EDGE_TABLE & 1) edge_gradient(k, s, edges);
	if (path && k->want >> HOP_TABLE & 1) hop_gradient(k, s, edges);
}

/* ---- descriptor ---------------------------------------------------------------------------------------------------------- */

/* Inputs in the order of the enum, as many as the case has; option: hops. */
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	const char kind = *options;         /* d: distances alone, e: one edge a pair, p: paths of at most the digit's hops */
	return nr_path_bias(n, &(struct nr_path_bias){ .distance_table = x[DISTANCE_TABLE], .virtual_distance = x[VIRTUAL],
		.distance = x[DISTANCE], .edge_table = kind == 'd' ? NULL : x[EDGE_TABLE], .edges = kind == 'd' ? NULL : x[EDGES],
		.hop_table = kind == 'p' ? x[HOP_TABLE] : NULL, .hops = kind == 'p' ? options[1] - '0' : 0 });
}
static const struct nr_case cases[] = {
	{ "6x3 1x3 2x4x4:i1-5", "d" }, { "3x1 1x1 1x1x1:i1-2", "d" }, { "6x3 1x3 2x4x4:i1-5 5x3 2x4x4x2:i1-4", "e" },
	{ "7x2 1x2 3x3x3:i1-6 5x2 3x3x3x3x2:i1-4 12x1", "p3" }, { "7x2 1x2 3x3x3:i1-6 5x2 3x3x3x4x1:i1-4 12x1", "p2" },
	{ "5x8 1x8 9x3x3:i1-4 4x8 9x3x3x2x3:i1-3 192x1", "p0" }, { "4x1 1x1 1x1x1:i1-3 3x1 1x1x1x1x1:i1-2 1x1", "p5" }, { NULL, NULL },
};
const struct nr_op nr_op_path_bias = {
	.name = "path_bias", .shape = shape, .forward = forward, .backward = backward,
	.keeps = NR_KEEP_X(DISTANCE) | NR_KEEP_X(EDGE_TABLE) | NR_KEEP_X(EDGES) | NR_KEEP_X(HOP_TABLE),
	.try_case = try_case, .cases = cases,
};

nr_t *nr_path_bias(struct nr_net *n, const struct nr_path_bias *g)
{
	const struct attr a = { g->hops, g->cut };
	nr_t *in[NR_MAXIN] = { g->distance_table, g->virtual_distance, g->distance, g->edge_table, g->edges, g->hop_table };
	return nr_apply_list(n, &nr_op_path_bias, &a, sizeof a, g->hop_table ? HOP_TABLE + 1 : g->edges ? EDGES + 1 : DISTANCE + 1, in);
}
