/* dino: self-distillation without labels. Caron et al. 2021, arXiv:2104.14294, Fig. 2, section 3.1 and the released code.
 *
 *   crops     2 global and n local ones of each picture; the encoder runs once for each size, so that batch statistics never mix them
 *   head      MLP (GELU), to unit length, times a layer whose rows have unit length too; runs once, on all crops
 *   student   sees all crops; its softmax at student_temp is to match the teacher's of every other global crop (nn/dino.c)
 *   teacher   sees the global ones; its outputs are centred, sharpened by a lower temperature, and get no gradient
 *   centre    = m centre + (1 - m) mean of the teacher's outputs; teacher = l teacher + (1 - l) student, parameters alone
 *
 * A position table is resized for local crops (position.c). */
#include "models/dino.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "math/row.h"
#include "math/softmax.h"
#include "norma/nn.h"
#include "norma/optim.h"

const struct nr_option nr_dino_options[] = {
	NR_OPT_INT(struct nr_dino, local_crops, 8, 0, NR_DINO_MOST_VIEWS - NR_DINO_GLOBAL,
		"local crops of a picture, beside two global ones"),
	NR_OPT_INT(struct nr_dino, local_size, 0, 0, 2048, "side of a local crop in pixels; 0: 96/224 of the model's, in whole patches"),
	NR_OPT_FLOAT(struct nr_dino, global_scale_min, 0.4, 0.0001, 1, "smallest share of the area in a global crop; the largest is 1"),
	NR_OPT_FLOAT(struct nr_dino, local_scale_min, 0.05, 0.0001, 1, "smallest share of the area in a local crop"),
	NR_OPT_FLOAT(struct nr_dino, local_scale_max, 0.4, 0.0001, 1, "largest share of the area in a local crop"),
	NR_OPT_FLOAT(struct nr_dino, blur_first, 1, 0, 1, "probability of blurring the first global crop (local ones: --blur)"),
	NR_OPT_FLOAT(struct nr_dino, blur_second, 0.1, 0, 1, "probability of blurring the second"),
	NR_OPT_INT(struct nr_dino, prototypes, 4096, 1, 1 << 20, "outputs of the head; 65536 in the paper"),
	NR_OPT_INT(struct nr_dino, head_hidden, 512, 1, 65536, "width of the head's hidden layers; 2048 in the paper"),
	NR_OPT_INT(struct nr_dino, head_bottleneck, 128, 1, 65536, "width before the last layer; 256 in the paper"),
	NR_OPT_INT(struct nr_dino, head_layers, 3, 1, 16, "layers of the head before the last one"),
	NR_OPT_BOOL(struct nr_dino, head_bn, "0", "batch norms in the head"),
	NR_OPT_BOOL(struct nr_dino, norm_last_layer, "1", "keep the rows of the last layer at length 1; 0: learn their lengths"),
	NR_OPT_FLOAT(struct nr_dino, student_temp, 0.1, 1e-4, 100, "temperature of the student"),
	NR_OPT_FLOAT(struct nr_dino, teacher_temp, 0.04, 1e-4, 100, "temperature of the teacher"),
	NR_OPT_FLOAT(struct nr_dino, warmup_teacher_temp, 0.04, 1e-4, 100, "temperature of the teacher at the beginning"),
	NR_OPT_FLOAT(struct nr_dino, warmup_teacher_temp_epochs, 0, 0, 1e6, "epochs in which it goes from the one to the other"),
	NR_OPT_FLOAT(struct nr_dino, center_momentum, 0.9, 0, 1, "share of the centre that a step keeps"),
	NR_OPT_FLOAT(struct nr_dino, teacher_momentum, 0.996, 0, 1, "share of the teacher that a step keeps, at first; rises to 1"),
	NR_OPT_FLOAT(struct nr_dino, weight_decay_end, 0.4, 0, 1e6, "weight decay at the end, from --weight-decay on by a cosine"),
	NR_OPT_FLOAT(struct nr_dino, freeze_last_layer, 1, 0, 1e6, "epochs in which the last layer stays as it began"),
	NR_OPT_INT(struct nr_dino, knn, 5000, 0, 1e9, "training pictures among which each evaluation seeks neighbours; 0: all"),
	NR_OPT_INT(struct nr_dino, knn_k, 20, 1, 1e6, "neighbours that vote"),
	NR_OPT_FLOAT(struct nr_dino, knn_temp, 0.07, 1e-4, 100, "temperature of their votes"),
	NR_OPT_INT(struct nr_dino, linear, 0, 0, 1e9, "training pictures to which the last evaluation fits a linear head; 0: none"),
	NR_OPT_INT(struct nr_dino, linear_blocks, 4, 1, 1024, "it reads the class token after so many last blocks, side by side"),
	NR_OPT_BOOL(struct nr_dino, linear_mean, "0", "and the mean of the last patch tokens, as for ViT-B"),
	NR_OPT_END
};

/* ---- graphs ---------------------------------------------------------------------------------------------------------------- */

int64_t nr_dino_local_size(const struct nr_dino *o, const struct nr_model_spec *m)
{
	const int64_t patch = nr_model_int(m, "patch") > 0 ? nr_model_int(m, "patch") : 1, image = nr_model_int(m, "image");
	if (!o->local_crops) return 0;
	if (o->local_size) return o->local_size;
	const int64_t patches = (int64_t)((double)image * 96 / 224 / (double)patch + .5);
	return (patches > 0 ? patches : 1) * patch;
}

static nr_t *pooled(struct nr_net *n, const struct nr_model_spec *m, nr_t *image)
{
	return m->of->pool(n, nr_model_tokens(n, m, &(struct nr_inputs){ .image = image }), m->conf);
}

/* Layer i of the head, then a norm if wanted; names as in the released code, where activations are counted too, but an only layer is not;
 * so is the norms' eps. */
static nr_t *layer(struct nr_net *n, const struct nr_dino *o, nr_t *x, int64_t i)
{
	char name[32];
	const bool last = i + 1 == o->head_layers;
	const int64_t place = (o->head_bn ? 3 : 2) * i;
	if (o->head_layers == 1) snprintf(name, sizeof name, "mlp");
	else snprintf(name, sizeof name, "mlp.%lld", (long long)place);
	x = nr_linear(n, name, x, last ? o->head_bottleneck : o->head_hidden);
	if (last) return x;
	snprintf(name, sizeof name, "mlp.%lld", (long long)place + 1);
	if (o->head_bn) x = nr_norm_make(n, name, "batch:eps=1e-5", x);
	return nr_activate(n, "gelu", x);
}

/* Rows as PyTorch starts a linear layer, within 1 / sqrt(D), where NR_XAVIER would be sqrt(6 / (D + K)). */
static nr_t *last_layer(struct nr_net *n, const struct nr_dino *o, nr_t *x)
{
	const int64_t D = o->head_bottleneck, K = o->prototypes;
	nr_push(n, "last_layer");
	nr_t *g = nr_param(n, "weight_g", NR_ONES, NR_SHAPE(K, 1)), *v = nr_param(n, "weight_v", NR_XAVIER, NR_SHAPE(K, D));
	nr_init_gain(n, "weight_v", 0, sqrt((double)(D + K) / (6 * (double)D)));
	if (g) g->entry->frozen = o->norm_last_layer;
	x = nr_linear_tied_no_bias(n, nr_unit_rows(n, x), nr_unit_rows(n, v));
	return nr_pop(n, o->norm_last_layer ? x : nr_scale_channels(n, x, nr_reshape(n, g, NR_SHAPE(K))));
}

static nr_t *head(struct nr_net *n, const struct nr_dino *o, nr_t *x)
{
	nr_push(n, "dino");
	for (int64_t i = 0; i < o->head_layers; i++) {
		nr_weights_start_as(n, NR_TRUNC_02);
		x = layer(n, o, x, i);
	}
	nr_weights_start_as(n, 0);
	return nr_pop(n, last_layer(n, o, x));
}

static nr_t *crops(struct nr_net *n, const struct nr_model_spec *m, const char *name, int64_t rows, int64_t size)
{
	return nr_input(n, name, NR_REAL, NR_SHAPE(rows, nr_model_int(m, "channels"), size, size));
}

/* What the head reads, of both sizes, one after the other. */
static nr_t *both(struct nr_net *n, nr_t *a, nr_t *b)
{
	if (!a || !b) return NULL;
	const int64_t C = nr_cols(a), rows = nr_rows(a) + nr_rows(b);
	nr_t *all = nr_join(n, nr_reshape(n, a, NR_SHAPE(1, nr_rows(a), C)), nr_reshape(n, b, NR_SHAPE(1, nr_rows(b), C)));
	return nr_reshape(n, all, NR_SHAPE(rows, C));
}

nr_t *nr_dino_student(struct nr_net *n, const struct nr_model_spec *m, const struct nr_dino *o, int64_t batch, struct nr_dino_graph *g)
{
	*g = (struct nr_dino_graph){ 0 };
	g->global = crops(n, m, "global", NR_DINO_GLOBAL * batch, nr_model_int(m, "image"));
	nr_t *x = pooled(n, m, g->global);
	if (o->local_crops) {
		g->local = crops(n, m, "local", o->local_crops * batch, nr_dino_local_size(o, m));
		x = both(n, x, pooled(n, m, g->local));
	}
	g->out = nr_hidden(n, head(n, o, x), "student");
	g->target = nr_input(n, "target", NR_REAL, NR_SHAPE(NR_DINO_GLOBAL * batch, o->prototypes));
	return g->loss = nr_tap(n, "loss", nr_dino_loss(n, g->out, g->target, o->student_temp));
}

nr_t *nr_dino_teacher(struct nr_net *n, const struct nr_model_spec *m, const struct nr_dino *o, int64_t batch, struct nr_dino_graph *g)
{
	*g = (struct nr_dino_graph){ 0 };
	g->global = crops(n, m, "global", NR_DINO_GLOBAL * batch, nr_model_int(m, "image"));
	g->out = head(n, o, pooled(n, m, g->global));
	return g->out;
}

void nr_dino_decay(struct nr_store *s)
{
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		struct nr_entry *e = nr_store_at(s, i);
		const size_t length = strlen(e->name);
		const bool bias = length >= 5 && !strcmp(e->name + length - 5, ".bias");
		if (e->nd > 1 && !bias) e->init &= ~NR_NO_DECAY;
		else e->init |= NR_NO_DECAY;
	}
}

bool nr_dino_last_layer(const char *entry) { return !strncmp(entry, "dino.last_layer.", 16); }

/* ---- between teacher and student -------------------------------------------------------------------------------------------- */

size_t nr_dino_room(int64_t rows, int64_t K) { return (size_t)(K + rows) + nr_col_sum_scratch(rows, K); }

void nr_dino_targets(int64_t rows, int64_t K, real *out, const real *centre, double temperature, real *target, real *shift)
{
	const real scale = (real)(1 / temperature);
	nr_row_scale(K, -scale, centre, shift);
#pragma omp parallel for schedule(static) if (rows * K > 4096)
	for (int64_t r = 0; r < rows; r++) {
		real *logit = out + r * K;
		nr_row_scale(K, scale, logit, logit);
		nr_row_add(K, logit, shift, logit);
		nr_row_active->softmax(1, K, logit, K, 1, NULL, 0, target + r * K, K);
	}
}

struct nr_dino_meter nr_dino_measure(int64_t rows, int64_t K, const real *logit, const real *target, real *room)
{
	struct nr_dino_meter m = { 0 };
	real *mean = room, *entropy = room + K;
#pragma omp parallel for schedule(static) if (rows * K > 4096)
	for (int64_t r = 0; r < rows; r++)
		nr_row_active->xent_soft(1, K, logit + r * K, K, target + r * K, K, 1, &entropy[r], NULL, 0, 0);
	for (int64_t r = 0; r < rows; r++) m.entropy += (double)entropy[r] / (double)rows;
	nr_col_sum(rows, K, target, K, mean, 0, entropy + rows);
	for (int64_t i = 0; i < K; i++) {
		const double p = (double)mean[i] / (double)rows;
		if (p > 0) m.spread -= p * log(p);
	}
	return m;
}

void nr_dino_centre(int64_t rows, int64_t K, const real *out, double keep, const real *centre, real *next, real *room)
{
	nr_col_sum(rows, K, out, K, room, 0, room + K + rows);
	const real share = (real)((1 - keep) / (double)rows);
	for (int64_t i = 0; i < K; i++) next[i] = (real)keep * centre[i] + share * room[i];
}

void nr_dino_follow(struct nr_store *teacher, const struct nr_store *student, double keep)
{
	for (int64_t i = 0; i < nr_store_count(student); i++) {
		const struct nr_entry *from = nr_store_at(student, i), *to = nr_store_at(teacher, i);
		if (!from->buffer) nr_ema_step(from->count, nr_value(to), nr_value(from), keep);
	}
}

/* ---- schedules -------------------------------------------------------------------------------------------------------------- */

static double cosine(double from, double to, int64_t step, int64_t steps)
{
	return to + .5 * (from - to) * (1 + cos(M_PI * (double)step / (double)(steps > 0 ? steps : 1)));
}

double nr_dino_momentum(const struct nr_dino *o, int64_t step, int64_t steps) { return cosine(o->teacher_momentum, 1, step, steps); }

double nr_dino_weight_decay(const struct nr_dino *o, double start, int64_t step, int64_t steps)
{
	return cosine(start, o->weight_decay_end, step, steps);
}

/* One value for an epoch: so many evenly spaced ones, both ends among them. */
double nr_dino_temperature(const struct nr_dino *o, int64_t step, int64_t per_epoch)
{
	const double epoch = (double)(step / (per_epoch > 0 ? per_epoch : 1)), warm = o->warmup_teacher_temp_epochs;
	if (epoch >= warm) return o->teacher_temp;
	const double share = warm > 1 ? epoch / (warm - 1) : 0;
	return o->warmup_teacher_temp + (o->teacher_temp - o->warmup_teacher_temp) * (share < 1 ? share : 1);
}
