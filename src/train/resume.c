/* Going on with a run: its settings, its checkpoint, and whether what the same bits depend on is still the same. */
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "data/measure.h"
#include "math/isa.h"
#include "train/trainer.h"

/* ---- a longer run ------------------------------------------------------------------------------------------------------------- */

int nr_trainer_past(struct nr_trainer *t, struct nr_error *err)
{
	char *at = t->c.extended;
	t->pasts = 0;
	for (int64_t before = 0; *at;) {
		char *end, *stop;
		const long long until = strtoll(at, &end, 10), total = *end == ':' ? strtoll(end + 1, &stop, 10) : 0;
		if (*end != ':' || (*stop && *stop != ',') || until <= before || until > total || t->pasts == NR_EXTENSIONS) {
			nr_fail(err, NR_EVALUE, "cannot follow", t->c.extended,
				"it is no list of at most %d STEP:STEPS with steps that rise", NR_EXTENSIONS);
			return nr_hint(err, "leave `extended` out: norma writes it itself");
		}
		t->past[t->pasts++] = (struct nr_past){ until, nr_trainer_schedule(t, total) };
		before = until;
		at = stop + (*stop == ',');
	}
	return NR_OK;
}

const struct nr_schedule *nr_trainer_schedule_now(const struct nr_trainer *t)
{
	for (int i = 0; i < t->pasts; i++)
		if (t->state.step < t->past[i].until) return &t->past[i].schedule;
	return &t->schedule;
}

static int64_t steps_before(const struct nr_trainer *t)
{
	return t->shorter.steps ? t->shorter.steps : (int64_t)llround(t->shorter.epochs * (double)t->per_epoch);
}

static int refuse_shorter(const struct nr_trainer *t, struct nr_error *err)
{
	if (t->total >= steps_before(t)) return NR_OK;
	nr_fail(err, NR_EUSAGE, "cannot resume with fewer steps", t->c.out, "it has %lld, not %lld", (long long)steps_before(t),
		(long long)t->total);
	return nr_hint(err, "leave the flag out, or give more than that to make the run longer");
}

/* The rest follows the schedule of the longer run, and the settings say since when: as they are, they repeat it. */
static int extend(struct nr_trainer *t, struct nr_error *err)
{
	if (t->total == steps_before(t) || !t->state.step) return NR_OK;
	t->c.extended = nr_arena_printf(t->arena, "%s%s%lld:%lld", t->c.extended, *t->c.extended ? "," : "", (long long)t->state.step,
		(long long)steps_before(t));
	return t->c.extended ? nr_trainer_past(t, err) : nr_fail(err, NR_EMEMORY, "cannot resume", t->c.out, "out of memory");
}

/* ---- its settings, its checkpoint ---------------------------------------------------------------------------------------------- */

int nr_trainer_settings(struct nr_trainer *t, struct nr_error *err)
{
	const char *out = t->c.out, *path = nr_trainer_path(t, "config.yaml");
	const bool force = t->c.force;
	const double epochs = t->c.longer_epochs;
	const int64_t steps = t->c.longer_steps;
	struct nr_comm *comm = t->c.comm;
	if (nr_train_read(&t->c, path, t->arena, err)) {
		nr_hint(err, "--resume needs the directory of an earlier run");
		return err->code;
	}
	t->c.out = nr_arena_strdup(t->arena, out);
	t->c.resume = true;
	t->c.comm = comm;
	t->c.force = force;
	t->shorter.epochs = t->c.epochs;
	t->shorter.steps = t->c.steps;
	if (epochs > 0 || steps) t->c.steps = steps;
	if (epochs > 0 && !steps) t->c.epochs = epochs;
	return NR_OK;
}

int nr_trainer_origin(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_origin *o = &t->origin;
	snprintf(o->isa, sizeof o->isa, "%s", nr_isa_name(nr_isa_active()));
	if (nr_source_digest(t->source, t->split, o->data, err)) return err->code;
	if (t->eval_split == t->split || !t->source->count[t->eval_split]) return NR_OK;
	return nr_source_digest(t->source, t->eval_split, o->eval_data, err);
}

static void add_change(struct nr_str *changes, const char *what) { nr_str_printf(changes, "%s%s", changes->len ? "; " : "", what); }

/* Checkpoints of version 0.2.0 do not say where they come from: an empty text is no difference. */
static bool differs(const char *before, const char *now) { return *before && *now && strcmp(before, now) != 0; }

static int compare_origins(struct nr_trainer *t, const struct nr_origin *before, struct nr_error *err)
{
	struct nr_str changes = { 0 };
	if (differs(before->data, t->origin.data)) add_change(&changes, "the training data are not what they were");
	if (differs(before->eval_data, t->origin.eval_data)) add_change(&changes, "the evaluation data are not what they were");
	const bool isa = differs(before->isa, t->origin.isa);
	if (isa) add_change(&changes, nr_arena_printf(t->arena, "it ran on %s, this is %s", before->isa, t->origin.isa));
	int code = NR_OK;
	if (changes.failed) code = nr_fail(err, NR_EMEMORY, "cannot resume", t->c.out, "out of memory");
	else if (changes.len && !t->c.force) {
		nr_fail(err, NR_EVALUE, "cannot resume", t->c.out, "%s", changes.text);
		code = isa ? nr_hint(err, "use NORMA_ISA=%s where the CPU has it, or --force for other bits", before->isa)
			   : nr_hint(err, "bring the old data back, or use --force to go on with other bits");
	} else if (changes.len) {
		nr_log_line(NR_LOG_WARNING, "resuming '%s' though %s", t->c.out, changes.text);
		t->forced = nr_arena_strdup(t->arena, changes.text);
	}
	nr_str_release(&changes);
	return code;
}

int nr_trainer_resume(struct nr_trainer *t, struct nr_error *err)
{
	const char *path = nr_trainer_path(t, "last.safetensors");
	struct nr_origin before;
	if (refuse_shorter(t, err)) return err->code;
	if (nr_checkpoint_origin(&before, path, err) || compare_origins(t, &before, err)) return err->code;
	struct nr_checkpoint k = nr_trainer_checkpoint(t);
	if (nr_checkpoint_read(&k, path, t->total, err)) return err->code;
	t->state = k.state;
	return extend(t, err);
}
