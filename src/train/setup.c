/* From settings to a trainer that can step: data, model, graph, optimizer. */
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/rng.h"
#include "graph/net.h"
#include "graph/streams.h"
#include "models/names.h"
#include "norma/nn.h"
#include "norms/choice.h"
#include "train/trainer.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory"); }

/* ---- data --------------------------------------------------------------------------------------------------------------- */

/* A fixed order of the training samples, the same for every seed, so that `limit` and `hold_out` take from all classes also
 * where files are sorted by class. */
static int split_samples(struct nr_trainer *t, struct nr_error *err)
{
	const int64_t n = t->source->count[t->split];
	const int64_t held = (int64_t)(t->c.hold_out * (double)n), most = t->c.limit ? t->c.limit : n;
	t->train_count = n - held < most ? n - held : most;
	if (!held && t->train_count == n) return NR_OK;
	if (n > INT32_MAX || !(t->order = nr_arena_alloc(t->arena, (size_t)n * sizeof *t->order))) return out_of_memory(err);
	nr_rng_shuffle(nr_rng_make(0, NR_STREAM_SUBSET, 0), 0, t->order, (int32_t)n);
	t->train_index = t->order;
	t->held_index = held ? t->order + (n - held) : NULL;
	t->held_count = held;
	return NR_OK;
}

/* An official split reports and what is held out chooses. Without such a split, and for tasks that read their samples once, what is
 * held out does both. */
static int choose_evaluation(struct nr_trainer *t, struct nr_error *err)
{
	const struct nr_train *c = &t->c;
	if (strcmp(c->eval_split, "auto")) {
		const int split = nr_split_find(c->eval_split, err);
		if (split < 0) return err->code;
		t->eval_split = (enum nr_split)split;
	} else t->eval_split = t->source->count[NR_VAL] ? NR_VAL : NR_TEST;
	t->eval_count = t->source->count[t->eval_split];
	const bool both = t->task->kind == NR_PICTURES && t->eval_split != t->split && t->eval_count;
	if (t->held_index && !both) {
		t->eval_split = t->split;
		t->eval_index = t->held_index;
		t->eval_count = t->held_count;
		t->held_index = NULL;
		t->held_count = 0;
	}
	if (c->eval_limit && c->eval_limit < t->eval_count) t->eval_count = c->eval_limit;
	if (c->eval_limit && c->eval_limit < t->held_count) t->held_count = c->eval_limit;
	return NR_OK;
}

/* Less data than the usual batch: a quarter of it, as a power of two. A batch that somebody asked for is not changed. */
static void fit_batch(struct nr_trainer *t)
{
	const struct nr_option *row = nr_option_find(nr_train_options(t->task->name), "batch");
	int64_t usual = 0, fits = 1;
	if (!row || !nr_parse_int(row->text, &usual) || t->c.batch != usual || t->train_count >= t->c.batch * t->c.accumulate) return;
	while (8 * fits * t->c.accumulate <= t->train_count) fits *= 2;
	nr_log_line(NR_LOG_WARNING, "%lld samples do not fill a batch of %lld: it is %lld here (--batch)", (long long)t->train_count,
		(long long)usual, (long long)fits);
	t->c.batch = fits;
}

static int open_data(struct nr_trainer *t, struct nr_error *err)
{
	const struct nr_train *c = &t->c;
	if (!*c->data) {
		nr_fail(err, NR_EUSAGE, "no data set was given", NULL, NULL);
		return nr_hint(err, "use --data NAME; `norma data list` shows them");
	}
	if (nr_source_open(&t->source, c->data, *c->data_root ? c->data_root : NULL, err)) return err->code;
	if (nr_source_expect(t->source, t->task->kind, err)) return err->code;
	const int train = nr_split_find(c->split, err);
	if (train < 0) return err->code;
	t->split = (enum nr_split)train;
	if (!t->source->count[train])
		return nr_fail(err, NR_EVALUE, "cannot train on", c->data,
			"there is no split %s%s%s", nr_split_name(t->split), t->source->said ? ": " : "",
			t->source->said ? t->source->said : "");
	if (split_samples(t, err)) return err->code;
	fit_batch(t);
	if (nr_shards_share(&t->shards, c->comm, c->batch, c->shards, err)) return err->code;
	t->c.batch /= t->shards.count;
	return choose_evaluation(t, err);
}

/* ---- model and graph ------------------------------------------------------------------------------------------------------ */

static int parse_model(struct nr_trainer *t, struct nr_error *err)
{
	if (nr_model_parse(&t->w.model, t->c.model, t->arena, err)) return err->code;
	t->norms = t->w.norms = nr_norm_choice_text(&t->c.norms, t->arena);
	t->run = (struct nr_task_run){ .c = &t->c, .settings = t->c.own.bytes, .w = &t->w, .source = t->source, .norms = t->norms,
		.arena = t->arena, .train = { t->split, t->train_index, t->train_count }, .decides = t->task->decides, .passes = 1,
		.parts = t->c.accumulate * t->shards.count, .own = nr_arena_alloc(t->arena, t->task->own_size + 1) };
	if (!t->run.own) return out_of_memory(err);
	if (t->task->settle(&t->run, err)) return err->code;
	/* with all that was settled, so that a checkpoint alone tells what it is */
	const char *options = nr_options_text(t->w.model.of->options, t->w.model.conf, t->arena);
	t->w.model.text = options ? nr_arena_printf(t->arena, "%s:%s", t->w.model.of->name, options) : NULL;
	return t->w.model.text && t->norms && t->w.norms ? NR_OK : out_of_memory(err);
}

static int record_shape(struct nr_trainer *t, int64_t i, struct nr_error *err)
{
	struct nr_trainer_shape *s = &t->shape[i];
	t->run.shape = i;
	t->run.plan = NULL;
	if (!(s->net = t->run.net = nr_net_make(t->w.store))) return out_of_memory(err);
	t->shapes = i + 1;
	if (nr_norms_use(s->net, t->norms, &t->w.model.norms, err)) return err->code;
	if (t->c.microscope && nr_microscope_make(&s->microscope, s->net, t->arena, err)) return err->code;
	s->loss = nr_scale(s->net, t->task->record(&t->run), 1 / (double)t->run.parts);
	if (nr_norms_done(s->net, err)) return err->code;
	const unsigned flags = NR_PLAN_TRAIN | (t->c.rebuild ? NR_PLAN_REBUILD : 0u);
	if (nr_plan_make_beside(&s->plan, s->net, s->loss, flags, t->shape[0].plan, err)) return err->code;
	t->run.plan = s->plan;
	return NR_OK;
}

static int record(struct nr_trainer *t, struct nr_error *err)
{
	if (nr_store_make(&t->w.store, (uint64_t)t->c.seed, err)) return err->code;
	const int64_t shapes = t->task->shapes ? t->task->shapes(&t->run) : 1;
	for (int64_t i = 0; i < shapes; i++)
		if (record_shape(t, i, err)) return err->code;
	return NR_OK;
}

/* ---- optimizer ------------------------------------------------------------------------------------------------------------- */

/* Layer-wise decay goes by timm's names. */
static int list_parameters(struct nr_trainer *t, struct nr_error *err)
{
	const int64_t n = nr_store_count(t->w.store), depth = nr_model_int(&t->w.model, "depth");
	const struct nr_naming *timm = nr_naming_find(t->w.model.of, "timm", NULL);
	const double decay = t->c.optim.layer_decay;
	if (nr_params_init(&t->params, t->w.store, &t->c.optim, err)) return err->code;
	for (int64_t i = 0, k = 0; i < n && t->task->still; i++)
		if (!nr_store_at(t->w.store, i)->buffer)
			t->params.segment[k++].still = t->task->still(&t->run, nr_store_at(t->w.store, i));
	for (int64_t i = 0, k = 0; i < n && depth > 0 && decay < 1; i++) {
		const struct nr_entry *e = nr_store_at(t->w.store, i);
		char order;
		if (e->buffer) continue;
		const char *name = timm ? nr_naming_text(timm, e->name, &order, t->arena) : e->name;
		t->params.segment[k++].lr_scale = (float)nr_layer_scale(nr_layer_id(name ? name : e->name, (int)depth), (int)depth, decay);
	}
	return NR_OK;
}

struct nr_schedule nr_trainer_schedule(const struct nr_trainer *t, int64_t total)
{
	struct nr_schedule s = t->c.schedule;
	s.inclusive = false;
	s.counted = true;
	s.base = t->c.optim.lr;
	s.final = t->c.min_lr;
	s.warmup_start = t->c.warmup_lr;
	s.warmup = (int64_t)llround(t->c.warmup * (double)t->per_epoch);
	if (s.warmup > total / 2) s.warmup = total / 2;         /* short runs: half of them at most */
	s.total = total;
	return s;
}

static int plan_steps(struct nr_trainer *t, struct nr_error *err)
{
	t->per_epoch = t->train_count / nr_trainer_samples(t);
	if (t->per_epoch < 1) {
		nr_fail(err, NR_EVALUE, "cannot train on", t->c.data, "%lld samples do not fill a step of %lld",
			(long long)t->train_count, (long long)nr_trainer_samples(t));
		return nr_hint(err, "use a smaller --batch");
	}
	t->total = t->c.steps ? t->c.steps : (int64_t)llround(t->c.epochs * (double)t->per_epoch);
	t->run.per_epoch = t->per_epoch;
	t->run.steps = t->total;
	t->schedule = nr_trainer_schedule(t, t->total);
	return nr_schedule_check(&t->schedule, err) ? err->code : nr_trainer_past(t, err);
}

/* Statistics that shall never change must have been measured. */
static int check_frozen(const struct nr_trainer *t, struct nr_error *err)
{
	for (int64_t i = 0; i < nr_store_count(t->w.store); i++) {
		const struct nr_entry *e = nr_store_at(t->w.store, i);
		const size_t length = strlen(e->name), tail = strlen(".running_var");
		int64_t k = 0;
		if (!e->buffer || !e->frozen || length < tail || strcmp(e->name + length - tail, ".running_var") != 0) continue;
		while (k < e->count && nr_value(e)[k] == 1) k++;
		if (k < e->count) continue;
		nr_fail(err, NR_EVALUE, "cannot freeze a batch norm", e->name, "its running statistics were never measured");
		return nr_hint(err, "begin with weights that have them (--init), or leave out frozen=1");
	}
	return NR_OK;
}

static int start_weights(struct nr_trainer *t, struct nr_error *err)
{
	if (!*t->c.init) return NR_OK;
	struct nr_import how = { .resample = t->c.resample, .partial = true,
		.special = nr_model_int(&t->w.model, "class_token") > 0 && nr_model_int(&t->w.model, "class_at") <= 0 };
	return nr_model_import(t->w.store, t->w.model.of, t->c.init, &how, err);
}

/* Before the run has a folder: pictures that are to be taken as they are must have the model's size. */
static int check_sizes(const struct nr_trainer *t, struct nr_error *err)
{
	const struct nr_source *s = t->source;
	const long long size = t->c.augment.size;
	if (t->c.augment.crop != NR_CROP_NONE || (s->h == size && s->w == size)) return NR_OK;
	if (s->h) nr_fail(err, NR_ESHAPE, "cannot train on", t->c.data, "its pictures have %d x %d pixels, the model's %lld x %lld",
		s->w, s->h, size, size);
	else nr_fail(err, NR_ESHAPE, "cannot train on", t->c.data, "its pictures differ in size, and --crop none takes them as they are");
	return nr_hint(err, "use --crop auto, resize, center or random_resized");
}

int nr_trainer_setup(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_train *c = &t->c;
	if (!(t->task = nr_task_find(c->task, err))) return err->code;
	if (!nr_trainer_writes(t) && nr_comm_meet(c->comm, true, err)) return err->code;       /* what is kept on disk is made once */
	if (open_data(t, err) || nr_trainer_start(t, err) || parse_model(t, err)) return err->code;
	if (nr_trainer_writes(t) && c->comm && nr_comm_meet(c->comm, true, err)) return err->code;
	if (!nr_trainer_writes(t)) c->microscope = c->gradients = 0;
	if (t->task->kind == NR_PICTURES) {
		c->augment.size = nr_model_int(&t->w.model, "image");
		c->augment.channels = (int32_t)nr_model_int(&t->w.model, "channels");
		c->augment.crop_share = c->crop_share;
		if (check_sizes(t, err)) return err->code;
	}
	if (plan_steps(t, err) || record(t, err) || list_parameters(t, err) || start_weights(t, err) ||
		(!c->resume && check_frozen(t, err)))
		return err->code;
	for (int64_t i = 0; c->microscope && i < t->shapes; i++)
		if (nr_microscope_ready(t->shape[i].microscope, t->shape[i].plan, err)) return err->code;
	if (c->gradients && nr_layer_gradients_make(&t->layers, t->w.store, &t->params, t->arena, err)) return err->code;
	if (c->ema > 0) {
		int64_t n;
		const real *values = nr_store_values(t->w.store, &n);
		t->ema = malloc((size_t)n * sizeof *t->ema);
		t->spare = malloc((size_t)n * sizeof *t->spare);
		if (!t->ema || !t->spare) return out_of_memory(err);
		memcpy(t->ema, values, (size_t)n * sizeof *values);
	}
	const int64_t batch = c->eval_batch ? c->eval_batch : c->batch;
	const int64_t most = t->held_count > 0 && t->held_count < t->eval_count ? t->held_count : t->eval_count;
	if (t->task->ready(&t->run, batch < most ? batch : most > 0 ? most : 1, err)) return err->code;
	t->shards.together = nr_trainer_shares(t);
	return nr_shards_open(&t->shards, c, t->shape[0].plan, t->w.store, t->run.teacher, err) ? err->code : nr_trainer_twins(t, err);
}

/* ---- the header -------------------------------------------------------------------------------------------------------------- */

/* Does the node normalize by statistics of the batch? */
static bool batchwise(const struct nr_node *k)
{
	for (int i = 1; i < k->n_in; i++)
		if (k->in[i]->entry && k->in[i]->entry->buffer && k->in[i]->entry->frozen) return false;
	return k->op->flags & NR_BATCHWISE && nr_len(k->out[0]) == nr_len(k->in[0]);    /* a loss is no norm */
}

static bool passed_before(const struct nr_net *net, int32_t node)
{
	for (int32_t i = 0; i < node; i++)
		if (batchwise(net->node[i]) && !strcmp(net->node[i]->where.scope, net->node[node]->where.scope)) return true;
	return false;
}

/* Over the shards of all ranks (sync=1)? */
static bool shares(const struct nr_trainer *t, const struct nr_node *k)
{
	return t->shards.count > 1 && k->op->share && k->op->share(k, 0) > 0;
}

struct seen { int64_t sites, least, most; };            /* norms; tokens that one of them sees */

static struct seen what_norms_see(const struct nr_trainer *t, bool shared)
{
	const struct nr_net *net = t->shape[0].net;
	struct seen s = { .least = INT64_MAX };
	for (int32_t i = 0; i < net->n_node; i++) {
		const struct nr_node *k = net->node[i];
		if (!batchwise(k) || passed_before(net, i) || shares(t, k) != shared) continue;
		const int64_t rows = nr_rows(k->in[0]) * (shared ? t->shards.count : 1);
		s.sites++;
		s.least = rows < s.least ? rows : s.least;
		s.most = rows > s.most ? rows : s.most;
	}
	return s;
}

static void add_seen(const struct seen *n, const char *of, int64_t samples, struct nr_str *s)
{
	nr_str_printf(s, "%lld norms; each sees %s of %lld samples", (long long)n->sites, of, (long long)samples);
	if (n->least == n->most) nr_str_printf(s, " (%lld tokens)", (long long)n->most);
	else nr_str_printf(s, " (%lld to %lld tokens)", (long long)n->least, (long long)n->most);
}

/* A loss that compares samples with each other. */
static bool compares_samples(const struct nr_trainer *t)
{
	const struct nr_net *net = t->shape[0].net;
	bool some = false;
	for (int32_t i = 0; i < net->n_node; i++) some |= net->node[i]->op->flags & NR_BATCHWISE && !batchwise(net->node[i]);
	return some;
}

static void describe_frozen(const struct nr_trainer *t, struct nr_str *s)
{
	int64_t frozen = 0;
	for (int64_t i = 0; i < nr_store_count(t->w.store); i++) {
		const struct nr_entry *e = nr_store_at(t->w.store, i);
		const char *dot = strrchr(e->name, '.');
		frozen += e->buffer && e->frozen && dot && !strcmp(dot, ".running_var");
	}
	if (frozen) nr_str_printf(s, "frozen            %lld batch norms keep the statistics, weights and biases of the initial weights\n",
		(long long)frozen);
}

/* What batch statistics see: rows of one normalization, over all norms whose output depends on the other samples. */
static void describe_batchwise(const struct nr_trainer *t, struct nr_str *s)
{
	const struct seen own = what_norms_see(t, false), all = what_norms_see(t, true);
	const bool shards = t->shards.count > 1;
	describe_frozen(t, s);
	nr_str_add(s, "batch statistics  ");
	if (!own.sites && !all.sites) nr_str_add(s, "none\n");
	if (all.sites) add_seen(&all, t->c.comm ? "the batch of all ranks," : "the batch of all shards,", t->c.batch * t->shards.count, s);
	if (all.sites && own.sites) nr_str_add(s, "; ");
	if (own.sites) add_seen(&own, shards ? "one shard" : "one batch", t->c.batch, s);
	if (own.sites || all.sites) {
		if (t->c.accumulate > 1) nr_str_add(s, ", one part of a step; the parts are committed one after the other");
		if (own.sites && shards) nr_str_add(s, "; the running ones become the mean over shards");
		nr_str_add(s, "; evaluation uses running statistics\n");
	}
	if (shards && compares_samples(t))
		nr_str_printf(s, "loss              compares the %lld samples of one shard with each other\n", (long long)t->c.batch);
}

/* A site counts once, however often the model passes in a step. */
static void describe_norms(const struct nr_trainer *t, struct nr_str *s)
{
	int64_t count, sites = 0, with = 0;
	const struct nr_site *site = nr_sites(t->shape[0].net, &count);
	for (int64_t i = 0; i < count; i++) {
		int64_t before = 0;
		while (strcmp(site[before].name, site[i].name) != 0) before++;
		if (before < i) continue;
		sites++;
		with += site[i].norm != NULL;
	}
	nr_str_printf(s, "norms             %s at %lld of %lld sites\n", *t->norms ? t->norms : t->w.model.of->norms.norm, (long long)with,
		(long long)sites);
}

/* Of data that nobody has measured before. */
static void describe_pixels(const struct nr_source *source, struct nr_str *s)
{
	nr_str_add(s, "pixels            mean");
	for (int k = 0; k < source->channels; k++) nr_str_printf(s, " %.3f", (double)source->mean[k]);
	nr_str_add(s, ", standard deviation");
	for (int k = 0; k < source->channels; k++) nr_str_printf(s, " %.3f", (double)source->std[k]);
	nr_str_add(s, ", of the training pictures\n");
}

/* After the extension i. */
static const struct nr_schedule *after(const struct nr_trainer *t, int i)
{
	return i + 1 < t->pasts ? &t->past[i + 1].schedule : &t->schedule;
}

char *nr_trainer_describe(const struct nr_trainer *t)
{
	struct nr_str s = { 0 };
	const struct nr_plan_stats p = nr_plan_stats(t->shape[0].plan);
	nr_str_printf(&s, "data              %s: %lld for training", t->c.data, (long long)t->train_count);
	if (t->eval_count)
		nr_str_printf(&s, ", %lld %s (%s)", (long long)t->eval_count, t->task->own_samples ? "set apart" : "for evaluation",
			t->eval_index ? "held out" : nr_split_name(t->eval_split));
	if (t->held_count) nr_str_printf(&s, ", %lld held out to choose the best weights", (long long)t->held_count);
	if (t->source->classes) nr_str_printf(&s, ", %d classes", t->source->classes);
	nr_str_add(&s, "\n");
	if (t->source->said) nr_str_printf(&s, "                  %s\n", t->source->said);
	if (t->task->kind == NR_PICTURES && t->c.augment.normalize && !(t->c.augment.std[0] > 0) && !t->source->of->folder)
		describe_pixels(t->source, &s);
	nr_str_printf(&s, "task              %s\n", t->task->title);
	if (t->task->describe) t->task->describe(&t->run, &s);
	nr_str_printf(&s, "model             %s: %lld parameters, %.3g GFLOP forward per sample\n", t->c.model, (long long)p.param_count,
		(p.forward_flops + p.left_out_flops) * 1e-9 / (double)t->c.batch);      /* of the model, not of the plan */
	describe_norms(t, &s);
	describe_batchwise(t, &s);
	nr_trainer_describe_ranks(t, &s);
	nr_str_printf(&s, "steps             %lld of %lld samples, %lld per epoch; seed %lld\n", (long long)t->total,
		(long long)nr_trainer_samples(t), (long long)t->per_epoch, (long long)t->c.seed);
	for (int i = 0; i < t->pasts; i++)
		nr_str_printf(&s, "extended          at step %lld of %lld: learning rate %.3g, by the schedule of %lld steps\n",
			(long long)t->past[i].until, (long long)t->past[i].schedule.total, nr_schedule_at(after(t, i), t->past[i].until),
			(long long)after(t, i)->total);
	nr_str_printf(&s, "memory            %.0f MiB planned for a step\n", (double)(p.arena_bytes + p.scratch_bytes) / 1048576);
	return nr_str_take(&s);
}

const char *nr_trainer_path(const struct nr_trainer *t, const char *name) { return nr_arena_printf(t->arena, "%s/%s", t->c.out, name); }
