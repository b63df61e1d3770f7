/* norma-golden-model-1, family dino: one whole step. The outputs of teacher and student, loss, gradients and their norms, AdamW with
 * clipping by parameter (the last layer may be frozen), the teacher's moving average and the centre. */
#include <math.h>
#include <string.h>

#include "golden/model.h"
#include "models/dino.h"
#include "models/names.h"

static const char *model_text(struct golden_case *c)
{
	return nr_arena_printf(c->arena, "vit:image=%g,channels=%g,patch=%g,dim=%g,depth=%g,heads=%g,mlp=%.17g,qkv_bias=%g,act=%s",
		golden_number(c, "img"), golden_number(c, "chans"), golden_number(c, "patch"), golden_number(c, "dim"),
		golden_number(c, "depth"), golden_number(c, "heads"), golden_number(c, "ratio"), golden_config(c, "qkv_bias", NULL, 1),
		golden_config_act(c));
}

static void read_options(struct golden_case *c, struct nr_dino *o)
{
	nr_option_defaults(nr_dino_options, o);
	o->local_crops = (int64_t)golden_number(c, "local_crops");
	o->local_size = (int64_t)golden_number(c, "local_size");
	o->prototypes = (int64_t)golden_number(c, "out");
	o->head_hidden = (int64_t)golden_number(c, "hidden");
	o->head_bottleneck = (int64_t)golden_number(c, "bottleneck");
	o->head_layers = (int64_t)golden_config(c, "nlayers", "head_layers", 3);
	o->head_bn = golden_config(c, "use_bn_in_head", "use_bn", 0) > 0;
	o->norm_last_layer = golden_config(c, "norm_last_layer", NULL, 1) > 0;
	o->student_temp = golden_number(c, "student_temp");
	o->teacher_temp = golden_number(c, "teacher_temp");
	o->center_momentum = golden_number(c, "center_momentum");
	o->teacher_momentum = golden_number(c, "ema_momentum");
}

/* The crops of a kind, one after the other. */
static void put_crops(struct golden_case *c, struct golden_model *m, const nr_t *input, const char *kind, int64_t count)
{
	real *to = input ? nr_plan_data(m->plan, input) : NULL;
	for (int64_t i = 0; i < count; i++) {
		const struct golden_tensor x = golden_tensor(c, 4, "in.%s%lld", kind, (long long)i);
		golden_expect(c, x.n * count == nr_len(input), x.name);
		memcpy(to + i * x.n, x.x, (size_t)x.n * sizeof *to);
	}
}

/* The teacher's outputs, its targets for the student, the centre that follows. */
static void teach(struct golden_case *c, const struct nr_dino *o, struct golden_model *t, const struct nr_dino_graph *g, real *target)
{
	const int64_t rows = g->out->d[0], K = g->out->d[1];
	const struct golden_tensor centre = golden_tensor(c, 2, "in.center");
	golden_expect(c, centre.n == K, "in.center");
	real *out = nr_plan_data(t->plan, g->out), *moved = golden_reals(c, K), *room = golden_reals(c, (int64_t)nr_dino_room(rows, K));
	const struct nr_exec ex = { .train = 1 };
	put_crops(c, t, g->global, "global", NR_DINO_GLOBAL);
	nr_plan_run(t->plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	golden_model_out(c, t, g->out, "out", "teacher");
	nr_dino_centre(rows, K, out, o->center_momentum, centre.x, moved, room);
	golden_check(c, "out", moved, K, "out.center");
	nr_dino_targets(rows, K, out, centre.x, o->teacher_temp, target, room);
}

static void check_norms(struct golden_case *c, const struct golden_model *m)
{
	const json_t *names = json_object_get(c->config, "grad_norm_order");
	const size_t n = json_array_size(names);
	real *norm = golden_reals(c, (int64_t)n + 1);
	for (int64_t i = 0; i < nr_store_count(m->store); i++) {
		const struct nr_entry *e = nr_store_at(m->store, i);
		char order;
		const char *name = nr_naming_text(m->naming, e->name, &order, c->arena);
		double sum = 0;
		for (int64_t k = 0; !e->buffer && k < e->count; k++) sum += (double)nr_grad(e)[k] * (double)nr_grad(e)[k];
		for (size_t k = 0; k < n; k++)
			if (!strcmp(name, json_string_value(json_array_get(names, k)))) norm[k] = (real)sqrt(sum);
	}
	golden_check(c, "grad", norm, (int64_t)n, "out.grad_norms");
}

static void step(struct golden_case *c, struct golden_model *m)
{
	struct nr_optim o;
	struct nr_segment *s;
	nr_option_defaults(nr_optim_options(), &o);
	o.kind = nr_optim_kind("adamw");
	o.lr = golden_number(c, "lr");
	o.weight_decay = golden_number(c, "weight_decay");
	o.eps = golden_number(c, "eps");
	o.beta1 = golden_item(c, "betas", 0);
	o.beta2 = golden_item(c, "betas", 1);
	o.clip_norm = golden_config(c, "clip_grad", NULL, 0);
	o.clip = o.clip_norm > 0 ? NR_CLIP_TENSOR : NR_CLIP_NONE;
	const int64_t n = golden_model_segments(c, m, c->config, &s);
	const bool frozen = golden_number(c, "epoch") < golden_number(c, "freeze_last_layer");
	for (int64_t i = 0, k = 0; i < nr_store_count(m->store); i++) {
		const struct nr_entry *e = nr_store_at(m->store, i);
		if (e->buffer || e->frozen) continue;
		if (frozen && nr_dino_last_layer(e->name)) s[k].grad = NULL;
		k++;
	}
	const struct nr_rates rates = { o.lr, o.weight_decay };
	nr_optim_step(&o, &rates, 1, s, n, golden_alloc(c, 1, nr_optim_scratch(&o, s, n)), NULL);
}

int golden_model_dino(struct golden_case *c)
{
	struct golden_model m = { 0 }, t = { .prefix = "teacher" };
	struct nr_dino_graph student, teacher;
	struct nr_dino o;
	const char *text = model_text(c);
	const double eps = golden_config(c, "ln_eps", NULL, 1e-6);
	const int64_t batch = golden_tensor(c, 4, "in.global0").d[0];
	read_options(c, &o);
	golden_model_open(c, &t, text, "dino", "layer", eps);
	golden_model_load(c, &t, nr_dino_teacher(t.net, &t.model, &o, batch, &teacher), NULL);
	golden_model_open(c, &m, text, "dino", "layer", eps);
	nr_t *loss = nr_dino_student(m.net, &m.model, &o, batch, &student);
	nr_dino_decay(m.store);
	golden_model_load(c, &m, loss, NULL);
	teach(c, &o, &t, &teacher, nr_plan_data(m.plan, student.target));
	put_crops(c, &m, student.global, "global", NR_DINO_GLOBAL);
	put_crops(c, &m, student.local, "local", o.local_crops);
	golden_model_run(c, &m, 0);
	golden_model_out(c, &m, student.out, "out", "student");
	golden_model_check(c, &m);
	check_norms(c, &m);
	step(c, &m);
	golden_model_values(c, &m, "step3", "step3");
	nr_dino_follow(t.store, m.store, o.teacher_momentum);
	golden_model_values(c, &t, "outteacher", "teacher");
	golden_model_close(&m);
	golden_model_close(&t);
	return GOLDEN_RAN;
}
