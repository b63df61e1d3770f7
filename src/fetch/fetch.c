/* Downloads: see fetch.h; libcurl does the talking. */
#include "fetch/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/checksum.h"

struct transfer {
	const struct nr_fetch *f;
	const char *part;
	int fd, number;                     /* errno of a failed write */
	int64_t have;                       /* bytes in the part */
	bool too_much, stopped;
	CURL *curl;
};

static size_t take(char *data, size_t one, size_t n, void *arg)
{
	struct transfer *t = arg;
	const size_t size = one * n;
	if (t->f->bytes && (int64_t)size > t->f->bytes - t->have) {
		t->too_much = true;
		return 0;
	}
	for (size_t done = 0; done < size;) {
		const ssize_t k = write(t->fd, data + done, size - done);
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) {
			t->number = k < 0 ? errno : ENOSPC;
			return 0;
		}
		done += (size_t)k;
	}
	t->have += (int64_t)size;
	return size;
}

static int watch(void *arg, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t sent)
{
	struct transfer *t = arg;
	(void)up, (void)sent;
	if (!t->f->watch.tell) return 0;
	const char *slash = strrchr(t->f->path, '/');
	const int64_t all = t->f->bytes ? t->f->bytes : total > 0 ? t->have - now + total : 0;
	t->stopped = !t->f->watch.tell(t->f->watch.arg, slash ? slash + 1 : t->f->path, t->have, all);
	return t->stopped;
}

static void global_init(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

static bool prepare(struct transfer *t, char *message)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, global_init);
	CURL *c = t->curl = curl_easy_init();
	if (!c) return false;
	curl_easy_setopt(c, CURLOPT_URL, t->f->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
	curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 20L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 100L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 60L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "norma");
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, message);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, watch);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
	return true;
}

static bool restart(struct transfer *t)
{
	t->have = 0;
	t->too_much = false;
	return !ftruncate(t->fd, 0) && !lseek(t->fd, 0, SEEK_SET);
}

/* Worth another try, from where it broke off. */
static bool passing(CURLcode code, long status)
{
	if (code == CURLE_HTTP_RETURNED_ERROR) return status == 408 || status == 429 || status >= 500;
	return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
		code == CURLE_GOT_NOTHING ||
		code == CURLE_OPERATION_TIMEDOUT || code == CURLE_HTTP2_STREAM || code == CURLE_HTTP2;
}

static int explain(const struct transfer *t, CURLcode code, long status, const char *message, struct nr_error *err)
{
	const struct nr_fetch *f = t->f;
	if (t->number) {
		nr_fail(err, NR_EIO, "cannot write", t->part, "%s", strerror(t->number));
		return t->number == ENOSPC ? nr_hint(err, "free some space: the next attempt resumes here") : NR_EIO;
	}
	if (t->stopped) return nr_fail(err, NR_EIO, "stopped fetching", f->url, "%lld bytes are kept in '%s'",
		(long long)t->have, t->part);
	if (t->too_much)
		return nr_fail(err, NR_EFORMAT, "cannot download", f->url,
			"it is longer than the expected %lld bytes", (long long)f->bytes);
	if (code == CURLE_HTTP_RETURNED_ERROR) {
		nr_fail(err, NR_EIO, "cannot download", f->url, "the server answered %ld", status);
		return status == 404 ? nr_hint(err, "the file is no longer at this address") : NR_EIO;
	}
	nr_fail(err, NR_EIO, "cannot download", f->url, "%s", *message ? message : curl_easy_strerror(code));
	if (t->have) return nr_hint(err, "repeat the command: it resumes at byte %lld", (long long)t->have);
	return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ? nr_hint(err,
		"is there a network?") : NR_EIO;
}

static void nap(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
	while (nanosleep(&t, &t) && errno == EINTR) continue;
}

static int receive(struct transfer *t, struct nr_error *err)
{
	const int tries = t->f->tries ? t->f->tries : 5;
	double pause = t->f->pause > 0 ? t->f->pause : 1;
	char message[CURL_ERROR_SIZE] = "";
	if (!prepare(t, message)) return nr_fail(err, NR_EMEMORY, "cannot download", t->f->url, "out of memory");
	for (int i = 1;; i++) {
		*message = 0;
		const int64_t before = t->have;
		curl_easy_setopt(t->curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)before);
		const CURLcode code = curl_easy_perform(t->curl);
		long status = 0;
		curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
		if (code == CURLE_OK) return NR_OK;
		/* No ranges at this server, or none of this file beyond what is here: from the start, once. */
		const bool no_range = before > 0 && (code == CURLE_RANGE_ERROR ||
			code == CURLE_BAD_DOWNLOAD_RESUME || status == 416);
		const bool other = before > 0 && t->too_much;
		if (no_range || other) {
			if (!restart(t)) t->number = errno;
			else if (i < tries) continue;
		}
		if (t->number || t->stopped || t->too_much || !passing(code, status) || i >= tries)
			return explain(t, code, status, message, err);
		nap(pause);
		pause *= 2;
	}
}

static int verify(const struct nr_fetch *f, const char *path, struct nr_error *err)
{
	struct stat st;
	if (stat(path, &st)) return nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
	if (f->bytes && st.st_size != f->bytes)
		return nr_fail(err, NR_EFORMAT, "cannot use", f->url, "it has %lld bytes instead of %lld",
			(long long)st.st_size,
			(long long)f->bytes);
	return nr_checksum_expect(path, f->md5, f->sha256, err);
}

/* *resumed: there was a beginning, which may be of another file. */
static int fetch_part(const struct nr_fetch *f, const char *part, bool *resumed, struct nr_error *err)
{
	struct transfer t = { .f = f, .part = part };
	t.fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (t.fd < 0) return nr_fail(err, NR_EIO, "cannot write", part, "%s", strerror(errno));
	t.have = lseek(t.fd, 0, SEEK_END);
	*resumed = t.have > 0;
	int e = NR_OK;
	if (t.have < 0) e = nr_fail(err, NR_EIO, "cannot write", part, "%s", strerror(errno));
	if (!e && f->bytes && t.have > f->bytes && !restart(&t)) e = nr_fail(err, NR_EIO, "cannot write", part,
		"%s", strerror(errno));
	if (!e && !(f->bytes && t.have == f->bytes)) e = receive(&t, err);
	if (!e && fsync(t.fd)) e = nr_fail(err, NR_EIO, "cannot write", part, "%s", strerror(errno));
	if (close(t.fd) && !e) e = nr_fail(err, NR_EIO, "cannot write", part, "%s", strerror(errno));
	if (t.curl) curl_easy_cleanup(t.curl);
	if (e && !t.have) unlink(part);
	return e;
}

static int fetch(const struct nr_fetch *f, const char *part, struct nr_error *err)
{
	for (int round = 0;; round++) {
		bool resumed = false;
		if (fetch_part(f, part, &resumed, err)) return err->code;
		struct nr_error wrong = { 0 };
		if (!verify(f, part, &wrong)) break;
		unlink(part);
		if (resumed && !round) continue;         /* two halves of different files: once more, from the start */
		*err = wrong;
		return nr_hint(err,
			"the file at this address has changed, or the transfer was damaged; it was deleted");
	}
	if (rename(part, f->path)) return nr_fail(err, NR_EIO, "cannot write", f->path, "%s", strerror(errno));
	return NR_OK;
}

int nr_fetch(const struct nr_fetch *f, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct nr_error *slot = err ? err : &own;
	if (!access(f->path, F_OK) && !verify(f, f->path, &(struct nr_error){ 0 })) return NR_OK;
	struct nr_str part = { 0 };
	nr_str_printf(&part, "%s.part", f->path);
	int e = part.failed ? nr_fail(slot, NR_EMEMORY, "cannot download", f->url, "out of memory") :
		fetch(f, part.text, slot);
	nr_str_release(&part);
	return e;
}
