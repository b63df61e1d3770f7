/* Getting a data set: see get.h. */
#include "data/dataset_get.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "fetch/checksum.h"
#include "fetch/package.h"
#include "fetch/unpack.h"

struct work {
	const struct nr_get *o;
	const char *dir, *out, *target;     /* ROOT/.get-NAME, its folder `out`, and where that goes in the end */
	struct nr_arena *arena;
	struct nr_error *err;
};

bool nr_dataset_complete(const struct nr_dataset *d, const char *dir, bool optional, const char **wrong,
	struct nr_arena *arena)
{
	for (const struct nr_data_file *f = d->files; f && f->path; f++) {
		struct nr_file_report r;
		struct nr_error err = { 0 };
		const int e = nr_data_file_check(f, dir, false, &r, &err);
		if (f->optional && !optional) continue;
		if (!e && r.state == NR_FILE_RIGHT) continue;
		if (e) *wrong = nr_arena_strdup(arena, err.detail);
		else if (r.state == NR_FILE_MISSING) *wrong = nr_arena_printf(arena, "no %s", f->path);
		else *wrong = nr_arena_printf(arena, "%s has %lld bytes instead of %lld", f->path,
			(long long)r.bytes, (long long)f->bytes);
		if (!*wrong) *wrong = "out of memory";
		return false;
	}
	return true;
}

/* The folders of a path, as mkdir -p. */
static const char *mirror(struct work *w, const char *url)
{
	const char *slash = strrchr(url, '/');
	return w->o->base && slash ? nr_arena_printf(w->arena, "%s%s", w->o->base, slash) : url;
}

/* To w->dir/file, checked. */
static int fetch_one(struct work *w, const struct nr_download *d)
{
	const char *path = nr_arena_printf(w->arena, "%s/%s", w->dir, d->file);
	if (!path) return nr_fail(w->err, NR_EMEMORY, "cannot download", d->url, "out of memory");
	if (!nr_package_is(d->url))
		return nr_fetch(&(struct nr_fetch){ .url = mirror(w, d->url), .path = path, .md5 = d->md5,
			.sha256 = d->sha256,
			.bytes = d->bytes, .watch = w->o->watch }, w->err);
	if (d->sha256 && !access(path, F_OK) && !nr_checksum_expect(path, d->md5, d->sha256, NULL)) return NR_OK;
	if (nr_package_fetch(d->url, w->dir, d->file, w->err)) return w->err->code;
	if (!nr_checksum_expect(path, d->md5, d->sha256, w->err)) return NR_OK;
	unlink(path);
	return w->err->code;
}

static int place(struct work *w, const struct nr_download *d)
{
	const char *path = nr_arena_printf(w->arena, "%s/%s", w->dir, d->file), *to = nr_arena_printf(w->arena,
		"%s/%s", w->out, d->file);
	if (!path || !to) return nr_fail(w->err, NR_EMEMORY, "cannot unpack", d->file, "out of memory");
	if (!d->inside) {
		/* a hard link, so that a failure further on does not lose the download */
		if (link(path, to) && rename(path, to)) return nr_fail(w->err, NR_EIO, "cannot write", to, "%s",
			strerror(errno));
		return NR_OK;
	}
	const struct nr_unpack u = { .archive = path, .into = w->out, .inside = d->inside, .watch = w->o->watch };
	if (nr_unpack(&u, w->err)) return w->err->code;
	return d->convert ? d->convert(w->out, w->err) : NR_OK;
}

/* What came must be the data set itself, byte for byte where the sums are known. */
static int verify(struct work *w)
{
	for (const struct nr_data_file *f = w->o->of->files; f && f->path; f++) {
		struct nr_file_report r;
		if (nr_data_file_check(f, w->out, f->md5, &r, w->err)) return w->err->code;
		if (r.state == NR_FILE_RIGHT || (r.state == NR_FILE_MISSING && f->optional && !w->o->optional)) continue;
		const char *what = r.state == NR_FILE_MISSING ? "is missing" : r.state == NR_FILE_SIZE ?
			"has the wrong size" : "has the wrong md5";
		return nr_fail(w->err, NR_EFORMAT, "cannot use the download of", w->o->of->name, "%s %s", f->path, what);
	}
	return NR_OK;
}

/* All that has this `from`. */
static int try_from(struct work *w, const char *from)
{
	if (nr_remove_tree(w->out, w->err)) return w->err->code;
	if (mkdir(w->out, 0777)) return nr_fail(w->err, NR_EIO, "cannot make", w->out, "%s", strerror(errno));
	for (int pass = 0; pass < 2; pass++)
		for (const struct nr_download *d = w->o->of->downloads; d->url; d++) {
			if (strcmp(d->from, from) || (d->optional && !w->o->optional)) continue;
			if (pass ? place(w, d) : fetch_one(w, d)) return w->err->code;
		}
	return verify(w);
}

static bool first_of(const struct nr_download *all, const struct nr_download *d)
{
	for (const struct nr_download *b = all; b < d; b++)
		if (!strcmp(b->from, d->from)) return false;
	return true;
}

/* Origin after origin until one works. One that was tried alone keeps its own error. */
static int try_all(const struct work *w)
{
	const struct nr_get *o = w->o;
	struct nr_error *err = w->err, mine = { 0 };
	struct nr_str failed = { 0 };
	int tried = 0;
	struct work each = *w;
	each.err = &mine;
	for (const struct nr_download *d = o->of->downloads; d->url; d++) {
		if (!first_of(o->of->downloads, d) || (o->from && strcmp(o->from, d->from))) continue;
		mine = (struct nr_error){ 0 };
		if ((!nr_package_is(d->url) || nr_package_possible(d->url, &mine)) && !try_from(&each, d->from)) break;
		char text[1024];
		nr_str_printf(&failed, "%s%s: %s", tried++ ? "; " : "", d->from, nr_error_text(&mine, text, sizeof text));
	}
	if (mine.code && tried == 1) *err = mine;
	else if (mine.code) nr_fail(err, mine.code, "cannot get", o->of->name, "%s", nr_str_text(&failed));
	nr_str_release(&failed);
	return err->code;
}

static int unknown_from(const struct nr_get *o, struct nr_error *err)
{
	struct nr_near near = { .word = o->from };
	struct nr_str all = { 0 };
	for (const struct nr_download *d = o->of->downloads; d->url; d++)
		if (first_of(o->of->downloads, d)) nr_near_try(&near, d->from), nr_str_printf(&all, "%s%s",
			all.len ? ", " : "", d->from);
	nr_fail(err, NR_ENAME, "unknown origin", o->from, "%s comes from: %s", o->of->name, nr_str_text(&all));
	nr_str_release(&all);
	return near.best ? nr_hint(err, "did you mean '%s'?", near.best) : NR_ENAME;
}

/* The new folder takes the place of the old one, which is gone only when the new one is there. */
static int install(struct work *w)
{
	const char *old = nr_arena_printf(w->arena, "%s/old", w->dir);
	if (!old || nr_remove_tree(old, w->err)) return nr_fail(w->err, NR_EMEMORY, "cannot write", w->target,
		"out of memory");
	const bool was = !access(w->target, F_OK);
	if (was && rename(w->target, old)) return nr_fail(w->err, NR_EIO, "cannot replace", w->target, "%s",
		strerror(errno));
	if (!rename(w->out, w->target)) return NR_OK;
	nr_fail(w->err, NR_EIO, "cannot write", w->target, "%s", strerror(errno));
	if (was && rename(old, w->target)) nr_hint(w->err, "the old files are now in '%s'", old);
	return w->err->code;
}

static int get_locked(struct work *w, bool *did)
{
	const struct nr_get *o = w->o;
	const char *wrong = NULL;
	struct stat st;
	/* while we waited for the lock, another may have done it all */
	if (!o->force && nr_dataset_complete(o->of, w->target, o->optional, &wrong, w->arena)) return NR_OK;
	if (!o->force && !lstat(w->target, &st)) {
		nr_fail(w->err, NR_EIO, "cannot overwrite", w->target, "it exists but is incomplete: %s", wrong);
		return nr_hint(w->err, "move it away, or use --force to replace it");
	}
	*did = true;
	if (try_all(w) || install(w)) return w->err->code;
	if (!o->keep) return nr_remove_tree(w->dir, w->err);
	return NR_OK;
}

static int known_from(const struct nr_get *o, struct nr_error *err)
{
	if (!o->of->downloads)
		return nr_fail(err, NR_EVALUE, "cannot get", o->of->name,
			"there is nothing to download: its option path says where it is");
	for (const struct nr_download *d = o->of->downloads; d->url; d++)
		if (!o->from || !strcmp(o->from, d->from)) return NR_OK;
	return unknown_from(o, err);
}

int nr_dataset_get(const struct nr_get *o, const char **dir, bool *did, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct work w = { .o = o, .arena = arena, .err = err ? err : &own };
	*did = false;
	if (known_from(o, w.err)) return w.err->code;
	const char *wrong, *here = nr_dataset_dir(o->of, o->root, arena);
	if (here && !o->force && nr_dataset_complete(o->of, here, o->optional, &wrong, arena)) {
		*dir = here;
		return NR_OK;
	}
	w.dir = nr_arena_printf(arena, "%s/.get-%s", o->root, o->of->name);
	w.target = *dir = nr_arena_printf(arena, "%s/%s", o->root, o->of->folder);
	w.out = w.dir ? nr_arena_printf(arena, "%s/out", w.dir) : NULL;
	if (!w.out || !w.target) return nr_fail(w.err, NR_EMEMORY, "cannot get", o->of->name, "out of memory");
	if (nr_folder_make(o->root, w.err)) return w.err->code;
	const int fd = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) return nr_fail(w.err, NR_EIO, "cannot open", o->root, "%s", strerror(errno));
	while (flock(fd, LOCK_EX) && errno == EINTR) continue;
	if (!nr_folder_make(w.dir, w.err)) get_locked(&w, did);
	if (w.err->code) nr_remove_tree(w.out, NULL),
		rmdir(w.dir);    /* the latter only if no beginning of a file is kept */
	close(fd);
	return w.err->code;
}
