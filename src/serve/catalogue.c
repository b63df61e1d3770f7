/* Finding runs and studies: see entry.h. Links are not followed below a root, so that there are no circles. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "serve/entry.h"
#include "serve/follow_study.h"
#include "serve/route.h"

enum { DEPTH = 6, MAX_FOLDERS = 20000 };

struct scan {
	struct nr_catalogue *c;
	int64_t count, folders;
};

static bool has(const char *dir, const char *file)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof path, "%s/%s", dir, file) < (int)sizeof path && access(path, F_OK) == 0;
}

static bool is_run(const char *dir)
{
	return has(dir, "config.yaml") && (has(dir, "events.jsonl") || has(dir, "metrics.csv") || has(dir, "env.json"));
}

/* "ARM/seed-S/STAGE" below the study's folder. */
static void find_place(struct nr_served *e, const struct nr_served *study, struct nr_arena *arena)
{
	char arm[512], stage[256];
	long long seed;
	int end = 0;
	const char *rest = e->dir + strlen(study->dir);
	if (sscanf(rest, "/%511[^/]/seed-%lld/%255[^/]%n", arm, &seed, stage, &end) != 3 || rest[end]) return;
	e->arm = nr_arena_strdup(arena, arm);
	e->stage = nr_arena_strdup(arena, stage);
	e->seed = seed;
}

static bool taken(const struct scan *s, const char *name)
{
	for (int64_t i = 0; i < s->count; i++)
		if (!strcmp(s->c->entry[i]->name, name)) return true;
	return false;
}

static struct nr_served *known(const struct scan *s, const char *dir)
{
	for (int64_t i = 0; i < s->count; i++)
		if (!strcmp(s->c->entry[i]->dir, dir)) return s->c->entry[i];
	return NULL;
}

/* Folders of two roots can have one name. */
static char *free_name(const struct scan *s, const char *wanted)
{
	char *name = nr_arena_strdup(s->c->arena, wanted);
	for (int n = 2; name && taken(s, name); n++) name = nr_arena_printf(s->c->arena, "%s~%d", wanted, n);
	return name;
}

static struct nr_served *enter(struct scan *s, const char *dir, const char *name, struct nr_served *study, bool is_study)
{
	struct nr_served *e = known(s, dir);
	if (e || s->count == NR_CATALOGUE_MAX) return e;
	e = nr_arena_alloc(s->c->arena, sizeof *e);
	if (!e) return NULL;
	e->study = is_study;
	e->part_of = study;
	e->dir = nr_arena_strdup(s->c->arena, dir);
	e->name = free_name(s, name);
	if (!e->dir || !e->name) return NULL;
	if (study) find_place(e, study, s->c->arena);
	snprintf(e->status.words, sizeof e->status.words, "waiting");
	return s->c->entry[s->count++] = e;
}

/* Stages that were set aside and files that a run keeps for itself are not looked into. */
static bool skipped(const char *name)
{
	char clean[NR_NAME_MAX];
	const char *old = strstr(name, ".old");
	if (*name == '.' || !strcmp(name, "tensorboard") || !strcmp(name, "pictures")) return true;
	if (old && strspn(old + 4, "0123456789") == strlen(old + 4)) return true;
	return strchr(name, '%') || !nr_url_decode(name, clean, sizeof clean);   /* no name that a request could give */
}

static bool is_folder(const char *path)
{
	struct stat st;
	return !lstat(path, &st) && S_ISDIR(st.st_mode);
}

static void look(struct scan *s, const char *dir, const char *name, struct nr_served *study, int depth)
{
	if (has(dir, "study.yaml")) study = enter(s, dir, name, NULL, true);
	else if (is_run(dir)) {
		enter(s, dir, name, study, false);
		return;
	}
	DIR *d = depth < DEPTH && s->folders++ < MAX_FOLDERS ? opendir(dir) : NULL;
	for (const struct dirent *f; d && (f = readdir(d));) {
		char path[PATH_MAX], full[NR_NAME_MAX];
		if (f->d_type != DT_DIR && f->d_type != DT_UNKNOWN) continue;
		if (skipped(f->d_name) || snprintf(path, sizeof path, "%s/%s", dir, f->d_name) >= (int)sizeof path) continue;
		if (snprintf(full, sizeof full, "%s%s%s", name, *name ? "/" : "", f->d_name) >= (int)sizeof full - 16) continue;
		if (f->d_type == DT_DIR || is_folder(path)) look(s, path, full, study, depth + 1);
	}
	if (d) closedir(d);
}

static const char *last_part(const char *dir)
{
	const char *slash = strrchr(dir, '/');
	return slash && slash[1] && !skipped(slash + 1) ? slash + 1 : "run";
}

/* The only root needs no name, unless it is itself a run or a study. */
static const char *root_name(const struct nr_catalogue *c, const char *dir)
{
	return c->roots.count > 1 || is_run(dir) || has(dir, "study.yaml") ? last_part(dir) : "";
}

int64_t nr_catalogue_scan(struct nr_catalogue *c)
{
	struct scan s = { .c = c, .count = c->count };
	for (int64_t i = 0; i < c->roots.count; i++) look(&s, c->roots.item[i], root_name(c, c->roots.item[i]), NULL, 0);
	return s.count;
}

int nr_catalogue_open(struct nr_catalogue *c, const struct nr_list *roots, struct nr_error *err)
{
	*c = (struct nr_catalogue){ .arena = nr_arena_make() };
	if (c->arena) c->entry = nr_arena_alloc(c->arena, NR_CATALOGUE_MAX * sizeof *c->entry);
	if (c->arena) c->roots.item = nr_arena_alloc(c->arena, (size_t)(roots->count + 1) * sizeof *c->roots.item);
	if (!c->entry || !c->roots.item) return nr_fail(err, NR_EMEMORY, "cannot serve", NULL, "out of memory");
	for (int64_t i = 0; i < roots->count; i++) {
		char path[PATH_MAX];
		if (!realpath(roots->item[i], path) || !is_folder(path)) {
			nr_fail(err, NR_EIO, "cannot serve", roots->item[i], "there is no such folder");
			return nr_hint(err, "give the folder of a run or a study, or one that contains some");
		}
		char *copy = nr_arena_strdup(c->arena, path);
		if (!copy) return nr_fail(err, NR_EMEMORY, "cannot serve", NULL, "out of memory");
		c->roots.item[c->roots.count++] = copy;
	}
	return NR_OK;
}

struct nr_served *nr_catalogue_find(const struct nr_catalogue *c, const char *name)
{
	for (int64_t i = 0; i < c->count; i++)
		if (!strcmp(c->entry[i]->name, name)) return c->entry[i];
	return NULL;
}

void nr_catalogue_close(struct nr_catalogue *c)
{
	for (int64_t i = 0; i < c->count; i++) {
		struct nr_served *e = c->entry[i];
		free(e->title);
		free(e->head);
		free(e->body);
		nr_study_view_free(e->view);
	}
	nr_arena_free(c->arena);
	*c = (struct nr_catalogue){ 0 };
}
