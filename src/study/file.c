/* Reading a study file: see study.h. */
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/str.h"
#include "study/published.h"
#include "study/settings.h"
#include "study/tune.h"

struct reader { struct nr_study *s; struct nr_yaml_tree *tree; struct nr_error *err; };

#define COMPLAIN(r, at, hint, ...) nr_yaml_tree_complain((r)->tree, at, hint, __VA_ARGS__)

static const char *const top_keys[] = { "title", "question", "base", "stages", "grid", "arms", "seeds", "metric", "also", "baseline",
	"bound", "parallel", "out", "published", "stop", "tune", "tuning", "plugins", NULL };

static int no_memory(struct reader *r) { return nr_fail(r->err, NR_EMEMORY, "cannot read the study", NULL, "out of memory"); }

static void *room(struct reader *r, int64_t count, size_t size)
{
	void *p = nr_arena_alloc(r->s->arena, (size_t)(count + 1) * size);
	if (!p) no_memory(r);
	return p;
}

static const char *did_you_mean(struct reader *r, const char *word, const char *const *list)
{
	const char *best = nr_nearest(word, list);
	return best ? nr_arena_printf(r->s->arena, "did you mean '%s'?", best) : NULL;
}

static void check_keys(struct reader *r, const struct nr_yaml_node *map)
{
	for (int64_t i = 0; i < map->count; i++) {
		int64_t k = 0;
		while (top_keys[k] && strcmp(top_keys[k], map->key[i]->text)) k++;
		if (top_keys[k]) continue;
		const char *hint = did_you_mean(r, map->key[i]->text, top_keys);
		if (!hint) hint = "options of every run belong under 'base:', those of one command under its stage";
		COMPLAIN(r, map->key[i], hint, "unknown key '%.100s'", map->key[i]->text);
	}
}

static const char *text_of(struct reader *r, const struct nr_yaml_node *map, const char *key, const char *other)
{
	const struct nr_yaml_node *n = nr_yaml_value(map, key);
	if (!n || n->kind == NR_YAML_NULL) return other;
	if (n->kind == NR_YAML_VALUE) return n->text;
	COMPLAIN(r, n, NULL, "'%s' should be text", key);
	return other;
}

/* ---- settings ------------------------------------------------------------------------------------------------------------- */

/* Value or list of values. */
static bool read_values(struct reader *r, const struct nr_yaml_node *n, struct nr_setting *s)
{
	const int64_t count = n->kind == NR_YAML_LIST ? n->count : 1;
	const char **value = room(r, count, sizeof *value);
	if (!value) return false;
	for (int64_t i = 0; i < count; i++) {
		const struct nr_yaml_node *item = n->kind == NR_YAML_LIST ? n->item[i] : n;
		if (item->kind != NR_YAML_VALUE) {
			COMPLAIN(r, item, NULL, "'%.100s' %s", s->key, item->kind == NR_YAML_NULL ? "has no value" : "should be a value");
			return false;
		}
		value[i] = item->text;
	}
	s->value = value;
	s->count = count;
	s->value_at = n;
	return true;
}

/* "probe.lr" is the option lr of the stage probe. */
static struct nr_setting split_key(struct reader *r, const struct nr_yaml_node *key, const char *stage)
{
	struct nr_setting s = { .stage = stage, .key = key->text, .at = key };
	const char *dot = strchr(key->text, '.');
	for (int64_t i = 0; dot && !stage && i < r->s->stages; i++) {
		const char *name = r->s->stage[i].name;
		if (strlen(name) == (size_t)(dot - key->text) && !strncmp(name, key->text, strlen(name))) s.stage = name, s.key = dot + 1;
	}
	return s;
}

/* A mapping of options; keys in `skip` (ends with NULL) are not ours. */
static void read_settings(struct reader *r, const struct nr_yaml_node *map, const char *what, const char *stage, const char *const *skip,
	struct nr_settings *to)
{
	if (!map || map->kind == NR_YAML_NULL) return;
	if (map->kind != NR_YAML_MAP) {
		COMPLAIN(r, map, NULL, "'%.100s' should be a mapping of options", what);
		return;
	}
	for (int64_t i = 0; i < map->count; i++) {
		int64_t k = 0;
		while (skip[k] && strcmp(skip[k], map->key[i]->text)) k++;
		struct nr_setting s = split_key(r, map->key[i], stage);
		if (!skip[k] && read_values(r, map->item[i], &s) && nr_settings_add(to, &s, r->s->arena)) no_memory(r);
	}
}

/* ---- stages --------------------------------------------------------------------------------------------------------------- */

static const char *const stage_keys[] = { "run", "from", NULL };

static const struct nr_study_command *find_command(struct reader *r, const char *name, const struct nr_yaml_node *at)
{
	struct nr_near near = { .word = name };
	for (const struct nr_study_command *c = r->s->commands; c->name; c++) {
		if (!strcmp(c->name, name)) return c;
		nr_near_try(&near, c->name);
	}
	struct nr_str known = { 0 };
	for (const struct nr_study_command *c = r->s->commands; c->name; c++) nr_str_printf(&known, "%s%s", known.len ? ", " : "", c->name);
	const char *hint = near.best ? nr_arena_printf(r->s->arena, "did you mean '%s'?", near.best)
				     : nr_arena_printf(r->s->arena, "there are %s", nr_str_text(&known));
	COMPLAIN(r, at, hint, "no stage can run '%.100s'", name);
	nr_str_release(&known);
	return NULL;
}

/* STAGE, STAGE/FILE or a path; without it the last stage before that trains. */
static void find_source(struct reader *r, struct nr_study_stage *s, int64_t number, const struct nr_yaml_node *from)
{
	s->from_stage = -1;
	s->from = from ? from->text : NULL;
	if (s->command && !s->command->takes_checkpoint && !s->command->checkpoint_option) {
		if (from) COMPLAIN(r, from, "finetune does", "%s takes no checkpoint", s->command->name);
		return;
	}
	for (int64_t i = number - 1; i >= 0; i--) {
		const struct nr_study_stage *before = &r->s->stage[i];
		const size_t n = strlen(before->name);
		const bool named = from && !strncmp(from->text, before->name, n) && (!from->text[n] || from->text[n] == '/');
		if (!before->trains || (from && !named)) continue;
		s->from_stage = i;
		s->from = before->name;
		s->file = from && from->text[n] ? from->text + n + 1 : NULL;
		return;
	}
	if (s->command && !s->command->takes_checkpoint && !from) return;
	if (s->command && !from)
		COMPLAIN(r, s->at, "an earlier stage must train, or give `from: FILE`", "'%s' has no checkpoint to work on", s->name);
	else if (from && !strchr(from->text, '/') && !strchr(from->text, '.'))
		COMPLAIN(r, from,
			"name an earlier stage that trains, or a file", "no stage '%.100s' to take a checkpoint from",
			from->text);
}

static void read_stage(struct reader *r, const struct nr_yaml_node *n, int64_t number)
{
	struct nr_study_stage *s = &r->s->stage[number];
	const bool map = n->kind == NR_YAML_MAP && n->count == 1;
	const struct nr_yaml_node *value = map ? n->item[0] : NULL;
	s->at = map ? n->key[0] : n;
	s->name = s->at->text;
	if (!map && n->kind != NR_YAML_VALUE) {
		COMPLAIN(r, n, "e.g. `- train: {epochs: 3}`", "a stage is a command with its options");
		s->name = "?";
		return;
	}
	if (!*s->name || strspn(s->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != strlen(s->name))
		COMPLAIN(r, s->at, "use letters, digits, _ and -", "'%.100s' is not a name for a stage", s->name);
	for (int64_t i = 0; i < number; i++)
		if (!strcmp(r->s->stage[i].name, s->name))
			COMPLAIN(r, s->at,
				"e.g. `- other: {run: COMMAND}`", "two stages are called '%.100s'", s->name);
	const struct nr_yaml_node *run = nr_yaml_value(value, "run"), *from = nr_yaml_value(value, "from");
	s->command = find_command(r, run ? run->text : s->name, run ? run : s->at);
	s->trains = s->command && s->command->trains;
	read_settings(r, value, s->name, s->name, stage_keys, &s->own);
	find_source(r, s, number, from);
}

static void read_stages(struct reader *r, const struct nr_yaml_node *root)
{
	const struct nr_yaml_node *n = nr_yaml_value(root, "stages");
	if (!n || n->kind != NR_YAML_LIST || !n->count || n->count > NR_STUDY_MAX_STAGES) {
		COMPLAIN(r, n ? n : root,
			"e.g. `stages: [train: {epochs: 3}]`", "'stages' should be a list of 1 to %d commands",
			NR_STUDY_MAX_STAGES);
		return;
	}
	if (!(r->s->stage = room(r, n->count, sizeof *r->s->stage))) return;
	for (int64_t i = 0; i < n->count; i++, r->s->stages++) read_stage(r, n->item[i], i);
}

/* ---- arms ------------------------------------------------------------------------------------------------------------------ */

static void read_arms(struct reader *r, const struct nr_yaml_node *n)
{
	static const char *const skip[] = { "name", NULL };
	if (!n || n->kind == NR_YAML_NULL) return;
	if (n->kind != NR_YAML_LIST || n->count > NR_STUDY_MAX_ARMS) {
		COMPLAIN(r, n,
			"e.g. `- {name: A, norm: ln}`", "'arms' should be a list of at most %d", NR_STUDY_MAX_ARMS);
		return;
	}
	if (!(r->s->arm = room(r, n->count, sizeof *r->s->arm))) return;
	for (int64_t i = 0; i < n->count; i++) {
		struct nr_study_arm *a = &r->s->arm[r->s->arms++];
		const struct nr_yaml_node *name = nr_yaml_value(n->item[i], "name");
		*a = (struct nr_study_arm){ .at = name ? name : n->item[i], .name = name && *name->text ? name->text : NULL };
		read_settings(r, n->item[i], "an arm", NULL, skip, &a->own);
	}
}

/* One option of the grid: a list of values, or a mapping from names to values. */
static bool read_axis(struct reader *r, const struct nr_yaml_node *key, const struct nr_yaml_node *n, struct nr_factor *axis)
{
	const bool many = n->kind == NR_YAML_LIST || n->kind == NR_YAML_MAP;
	const int64_t count = many ? n->count : 1;
	axis->item = room(r, count, sizeof *axis->item);
	axis->name = room(r, count, sizeof *axis->name);
	if (!axis->item || !axis->name) return false;
	if (!count) COMPLAIN(r, n, NULL, "'%.100s' has no values", key->text);
	for (int64_t i = 0; i < count; i++) {
		struct nr_setting s = split_key(r, key, NULL);
		if (!read_values(r, many ? n->item[i] : n, &s)) continue;
		axis->name[axis->count] = n->kind == NR_YAML_MAP ? n->key[i]->text : NULL;
		axis->item[axis->count++] = s;
	}
	return axis->count > 0;
}

static void read_grid(struct reader *r, const struct nr_yaml_node *n)
{
	int64_t axes = 0;
	if (n && n->kind != NR_YAML_MAP && n->kind != NR_YAML_NULL)
		COMPLAIN(r, n, NULL, "'grid' should be a mapping from options to lists of values");
	const int64_t count = n && n->kind == NR_YAML_MAP ? n->count : 0;
	struct nr_factor *axis = room(r, count, sizeof *axis);
	for (int64_t i = 0; axis && i < count; i++) axes += read_axis(r, n->key[i], n->item[i], &axis[axes]);
	if (axis && !r->err->code) nr_study_expand(r->s, axis, axes, r->err);
}

/* ---- the rest -------------------------------------------------------------------------------------------------------------- */

static void read_seeds(struct reader *r, const struct nr_yaml_node *n)
{
	int64_t count = 1, seed;
	const bool list = n && n->kind == NR_YAML_LIST;
	if (list) count = n->count;
	else if (n && (n->kind != NR_YAML_VALUE || !nr_parse_int(n->text, &count))) count = 0;
	if (count < 1 || count > NR_STUDY_MAX_SEEDS) {
		COMPLAIN(r, n,
			"e.g. `seeds: 5` or `seeds: [1, 2, 3]`",
			"'seeds' should be a number from 1 to %d, or a list",
			NR_STUDY_MAX_SEEDS);
		return;
	}
	if (!(r->s->seed = room(r, count, sizeof *r->s->seed))) return;
	for (int64_t i = 0; i < count; i++) {
		seed = i;
		if (list && (n->item[i]->kind != NR_YAML_VALUE || !nr_parse_int(n->item[i]->text, &seed) || seed < 0))
			COMPLAIN(r, n->item[i], NULL, "a seed should be a whole number of at least 0");
		for (int64_t k = 0; list && k < i; k++)
			if (r->s->seed[k] == seed) COMPLAIN(r, n->item[i], NULL, "seed %lld is given twice", (long long)seed);
		r->s->seed[r->s->seeds++] = seed;
	}
}

/* `decided`, or a mapping with the looks. */
static void read_stop(struct reader *r, const struct nr_yaml_node *n)
{
	static const char *const keys[] = { "when", "looks", NULL };
	struct nr_study_stop *stop = &r->s->stop;
	if (!n || n->kind == NR_YAML_NULL) return;
	const struct nr_yaml_node *when = n->kind == NR_YAML_MAP ? nr_yaml_value(n, "when") : n, *looks = nr_yaml_value(n, "looks");
	if (!when || when->kind != NR_YAML_VALUE || strcmp(when->text, "decided")) {
		COMPLAIN(r, when ? when : n, "e.g. `stop: decided` or `stop: {when: decided, looks: [3, 5]}`",
			"the only time to stop is 'decided'");
		return;
	}
	for (int64_t i = 0; n->kind == NR_YAML_MAP && i < n->count; i++)
		if (strcmp(n->key[i]->text, "when") && strcmp(n->key[i]->text, "looks"))
			COMPLAIN(r, n->key[i], did_you_mean(r, n->key[i]->text, keys), "unknown key '%.100s' in 'stop'", n->key[i]->text);
	stop->on = true;
	if (!looks) return;
	const bool number = looks->kind == NR_YAML_VALUE && nr_parse_int(looks->text, &stop->count);
	if (looks->kind != NR_YAML_LIST && (!number || stop->count < 1 || stop->count > NR_STUDY_MAX_SEEDS))
		COMPLAIN(r, looks, NULL, "'looks' should be a number, or a list of numbers of seeds");
	if (looks->kind != NR_YAML_LIST || !(stop->look = room(r, looks->count, sizeof *stop->look))) return;
	for (int64_t i = 0; i < looks->count; i++) {
		int64_t at = 0;
		const int64_t least = stop->looks ? stop->look[stop->looks - 1] + 1 : 2;
		if (!nr_parse_int(looks->item[i]->text, &at) || at < least)
			COMPLAIN(r, looks->item[i], NULL, "looks should be rising numbers of seeds of at least 2");
		else stop->look[stop->looks++] = at;
	}
}

static void read_tune(struct reader *r, const struct nr_yaml_node *n)
{
	if (!n || n->kind == NR_YAML_NULL) return;
	if (n->kind != NR_YAML_MAP) COMPLAIN(r, n,
		"e.g. `tune: {lr: [1e-3, 2e-3]}`", "'tune' should be a mapping of options");
	for (int64_t i = 0; n->kind == NR_YAML_MAP && i < n->count; i++) {
		struct nr_setting one = split_key(r, n->key[i], NULL);
		if (!read_values(r, n->item[i], &one)) continue;
		if (!one.count) COMPLAIN(r, n->item[i], NULL, "'%.100s' has no values", one.key);
		else nr_tune_set(r->s, &one, r->err);
	}
}

static void read_also(struct reader *r, const struct nr_yaml_node *n)
{
	if (!n || n->kind == NR_YAML_NULL) return;
	const int64_t count = n->kind == NR_YAML_LIST ? n->count : 1;
	for (int64_t i = 0; i < count; i++) {
		const struct nr_yaml_node *item = n->kind == NR_YAML_LIST ? n->item[i] : n;
		char *copy = item->kind == NR_YAML_VALUE ? nr_arena_strdup(r->s->arena, item->text) : NULL;
		if (!copy || nr_list_add(&r->s->also, copy, r->s->arena)) COMPLAIN(r, item, NULL, "'also' should be a list of metrics");
	}
}

/* runs/NAME of NAME.yaml */
static const char *default_out(struct reader *r, const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file, *dot = strrchr(base, '.');
	const int n = dot && dot > base ? (int)(dot - base) : (int)strlen(base);
	const char *out = nr_arena_printf(r->s->arena, "runs/%.*s", n, base);
	return out ? out : "runs/study";
}

static void read_all(struct reader *r, const struct nr_yaml_node *root, const char *file)
{
	static const char *const none[] = { NULL };
	struct nr_study *s = r->s;
	check_keys(r, root);
	s->title = text_of(r, root, "title", "");
	s->question = text_of(r, root, "question", "");
	s->metric = text_of(r, root, "metric", NULL);
	s->baseline = text_of(r, root, "baseline", NULL);
	s->bound = text_of(r, root, "bound", NULL);
	s->out = text_of(r, root, "out", default_out(r, file));
	s->tuning = !strcmp(text_of(r, root, "tuning", ""), "true");           /* of OUT/tune/study.yaml */
	const struct nr_yaml_node *parallel = nr_yaml_value(root, "parallel");
	s->parallel = 1;
	if (parallel && (!nr_parse_int(parallel->text, &s->parallel) || s->parallel < 1 || s->parallel > 64))
		COMPLAIN(r, parallel, NULL, "'parallel' should be a number from 1 to 64");
	read_stages(r, root);
	read_settings(r, nr_yaml_value(root, "base"), "base", NULL, none, &s->base);
	read_seeds(r, nr_yaml_value(root, "seeds"));
	read_also(r, nr_yaml_value(root, "also"));
	read_stop(r, nr_yaml_value(root, "stop"));
	read_tune(r, nr_yaml_value(root, "tune"));
	read_arms(r, nr_yaml_value(root, "arms"));
	read_grid(r, nr_yaml_value(root, "grid"));
}

int nr_study_parse(struct nr_study *s, const char *text, size_t size, const char *name, const struct nr_study_command *commands,
	struct nr_arena *arena, struct nr_yaml_errors *errors, struct nr_error *err)
{
	const int64_t failures = nr_memory_failures();
	struct nr_yaml_tree *tree = nr_arena_alloc(arena, sizeof *tree);
	*s = (struct nr_study){ .arena = arena, .tree = tree, .commands = commands };
	if (!tree) return nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	if (nr_yaml_tree(tree, text, size, name, arena, errors, err)) return err->code;
	struct reader r = { s, tree, err };
	if (tree->root && tree->root->kind == NR_YAML_MAP) read_all(&r, tree->root, name);
	else nr_yaml_tree_complain(tree, tree->root, NULL, "a study is a mapping of keys");
	if (err->code) return err->code;
	if (s->stages && s->arms && s->seeds && nr_study_check(s, err) && err->code == NR_EMEMORY) return err->code;
	struct nr_study tuning;
	if (!errors->count && s->tune) nr_tune_study(s, &tuning, err);
	if (!errors->count && !err->code && nr_published_read(s, name, err)) return err->code;
	if (!err->code && nr_memory_since(failures, "cannot read", name, err)) return err->code; /* an arm would lack its name */
	return nr_yaml_tree_done(tree, err);
}
