/* The server as a whole: see serve.h. */
#include "serve/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "serve/server.h"

enum { BEAT = 15 };                         /* seconds */

static void loop(struct nr_server *s, const sigset_t *wanted)
{
	const struct timespec pause = { .tv_sec = 1 };
	double beat = nr_clock();
	for (;;) {
		const int number = sigtimedwait(wanted, NULL, &pause);
		if (number == SIGINT || number == SIGTERM || number == SIGHUP) return;
		nr_watch(s);
		nr_http_sweep(s);
		if (nr_clock() - beat < BEAT) continue;
		beat = nr_clock();
		nr_http_beat(s);
	}
}

static void tell_start(struct nr_server *s, nr_serve_tell *tell, void *context)
{
	struct nr_serve_start start = { .port = s->port, .token = s->token };
	for (int64_t i = 0; i < s->catalogue.count; i++) {
		if (s->catalogue.entry[i]->study) start.studies++;
		else start.runs++;
	}
	tell(context, &start);
}

static int serve(struct nr_server *s, const sigset_t *wanted, nr_serve_tell *tell, void *context, struct nr_error *err)
{
	pthread_t maker;
	nr_watch(s);
	if (nr_http_start(s, err)) return err->code;
	const int number = pthread_create(&maker, NULL, nr_maker, s);
	if (number) nr_fail(err, NR_EIO, "cannot serve", NULL, "no thread: %s", strerror(number));
	else {
		tell_start(s, tell, context);
		loop(s, wanted);
	}
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	if (!number) pthread_join(maker, NULL);
	return err->code;
}

int nr_serve_run(const struct nr_serve *conf, nr_serve_tell *tell, void *context, struct nr_error *err)
{
	struct nr_server *s = calloc(1, sizeof *s);
	sigset_t wanted, before;
	if (!s) return nr_fail(err, NR_EMEMORY, "cannot serve", NULL, "out of memory");
	s->conf = conf;
	s->backlog.session = (uint32_t)time(NULL) ^ (uint32_t)getpid() << 16;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &wanted, &before);   /* before threads begin: they inherit it */
	setpriority(PRIO_PROCESS, 0, 19);               /* as well as the priority; it may be so low already */
	int code = nr_catalogue_open(&s->catalogue, &conf->roots, err);
	nr_file_confine(&s->catalogue.roots);           /* a link in a run leads to nothing else */
	if (!code) code = serve(s, &wanted, tell, context, err);
	nr_http_stop(s);
	nr_backlog_release(&s->backlog);
	nr_file_confine(NULL);
	nr_catalogue_close(&s->catalogue);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return code;
}
