/* HTTP by libmicrohttpd: one thread, epoll. Viewers sleep (suspended connections) until nr_http_wake. Callbacks take our lock and,
 * inside it, may suspend; resuming is done outside it. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "draw/web.h"
#include "serve/pages.h"
#include "serve/policy.h"
#include "serve/server.h"
#include "serve/token.h"

/* Seconds without a byte; until a request must be whole. Bytes of a request's line and headers. */
enum { IDLE = 40, PATIENCE = 10, REQUEST = 16 << 10 };

/* ---- responses -------------------------------------------------------------------------------------------------------------- */

static void add_headers(struct MHD_Response *r, const char *type, const char *policy)
{
	if (type) MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Content-Security-Policy", policy ? policy : "default-src 'none'; frame-ancestors 'none'");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(r, "Cache-Control", "no-store");
}

struct MHD_Response *nr_http_response(struct nr_str *text, const char *type, const char *policy)
{
	const size_t size = text->len;
	char *bytes = nr_str_take(text);
	struct MHD_Response *r = bytes ? MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE) : NULL;
	if (!r) free(bytes);
	else add_headers(r, type, policy);
	return r;
}

/* Queues it and gives up our hold on it. */
static enum MHD_Result send_response(struct MHD_Connection *c, unsigned code, struct MHD_Response *r)
{
	if (!r) return MHD_NO;
	const enum MHD_Result done = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result send_page(struct MHD_Connection *c, unsigned code, struct nr_str *page)
{
	return send_response(c, code, nr_http_response(page, "text/html; charset=utf-8", nr_live_policy));
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned code, const char *title, const char *text)
{
	struct nr_str page = { 0 };
	nr_page_note(&page, title, text);
	struct MHD_Response *r = nr_http_response(&page, "text/html; charset=utf-8", nr_live_policy);
	if (r && code == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(r, "Allow", "GET, HEAD");
	if (r && code == MHD_HTTP_SERVICE_UNAVAILABLE) MHD_add_response_header(r, "Retry-After", "10");
	return send_response(c, code, r);
}

static bool make_files(struct nr_server *s)
{
	const struct { enum nr_route route; const char *text, *type; } files[] = {
		{ NR_ROUTE_REPORT_CSS, nr_web_report_css, "text/css; charset=utf-8" },
		{ NR_ROUTE_UPLOT_CSS, nr_web_uplot_css, "text/css; charset=utf-8" },
		{ NR_ROUTE_LIVE_CSS, nr_web_live_css, "text/css; charset=utf-8" },
		{ NR_ROUTE_UPLOT_JS, nr_web_uplot_js, "text/javascript; charset=utf-8" },
		{ NR_ROUTE_LIVE_JS, nr_web_live_js, "text/javascript; charset=utf-8" },
	};
	bool all = true;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct nr_str text = { 0 };
		nr_str_add(&text, files[i].text);
		s->file[files[i].route] = nr_http_response(&text, files[i].type, NULL);
		all &= s->file[files[i].route] != NULL;
	}
	return all;
}

/* ---- viewers ---------------------------------------------------------------------------------------------------------------- */

static ssize_t read_events(void *viewer, uint64_t at, char *buf, size_t max)
{
	struct nr_viewer *v = viewer;
	struct nr_server *s = v->server;
	bool lost = false;
	(void)at;
	pthread_mutex_lock(&s->lock);
	size_t n = nr_viewer_read(v, &s->backlog, buf, max, &lost);
	const bool end = !n && (lost || s->stopping);
	if (!n && !end) {
		v->asleep = true;
		MHD_suspend_connection(v->connection);
	}
	pthread_mutex_unlock(&s->lock);
	return end ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)n;
}

static void free_viewer(void *viewer)
{
	struct nr_viewer *v = viewer;
	struct nr_server *s = v->server;
	pthread_mutex_lock(&s->lock);
	if (v->before) v->before->after = v->after;
	else s->viewer = v->after;
	if (v->after) v->after->before = v->before;
	s->viewers--;
	pthread_mutex_unlock(&s->lock);
	free(v);
}

static const char *header(struct MHD_Connection *c, const char *name) { return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name); }

/* With the lock. A browser that comes back says what it has seen; else the page's data say so. */
static struct MHD_Response *make_stream(struct nr_server *s, struct MHD_Connection *c, const struct nr_served *of)
{
	const char *from = header(c, "Last-Event-ID");
	struct nr_viewer *v = malloc(sizeof *v);
	if (!v) return NULL;
	nr_viewer_init(v, &s->backlog, of, from ? from : MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "since"));
	struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_events, v, free_viewer);
	if (!r) {
		free(v);
		return NULL;
	}
	v->server = s;
	v->connection = c;
	v->after = s->viewer;
	if (s->viewer) s->viewer->before = v;
	s->viewer = v;
	s->viewers++;
	add_headers(r, "text/event-stream", NULL);
	return r;
}

/* ---- requests --------------------------------------------------------------------------------------------------------------- */

/* With the lock. */
static enum MHD_Result send_made(struct nr_server *s, struct MHD_Connection *c, struct nr_request *q, struct nr_served *e,
	enum nr_making what)
{
	struct nr_made *m = &e->made[what];
	if (!nr_made_fresh(s, e, what) && !q->asked && !s->stopping) {
		m->wanted = q->asked = true;
		q->made = m;
		q->connection = c;
		q->next = s->waiting;
		s->waiting = q;
		pthread_cond_signal(&s->work);
		MHD_suspend_connection(c);
		return MHD_YES;
	}
	return m->response ? MHD_queue_response(c, m->code, m->response) : MHD_NO;
}

/* With the lock. A stream is left to the caller: libmicrohttpd locks it while it asks us for events, so it comes before our lock. */
static enum MHD_Result send_entry(struct nr_server *s, struct MHD_Connection *c, struct nr_request *q, enum nr_route route,
	const char *name, struct MHD_Response **stream)
{
	struct nr_served *e = *name ? nr_catalogue_find(&s->catalogue, name) : NULL;
	struct nr_str page = { 0 };
	const bool list = route == NR_ROUTE_EVENTS && !*name;
	if (!list && (!e || (route == NR_ROUTE_RUN && e->study) || (route == NR_ROUTE_STUDY && !e->study)))
		return refuse(c, MHD_HTTP_NOT_FOUND, "Not found", "There is no run or study with this name.");
	switch (route) {
	case NR_ROUTE_DATA: return send_made(s, c, q, e, NR_MAKE_DATA);
	case NR_ROUTE_REPORT: return send_made(s, c, q, e, NR_MAKE_REPORT);
	case NR_ROUTE_EVENTS:
		if (s->viewers >= NR_VIEWERS || s->stopping)
			return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "Too many viewers", "Close other pages and try again.");
		*stream = make_stream(s, c, e);
		return *stream ? MHD_YES : MHD_NO;
	default:
		nr_page_entry(&page, e);
		return send_page(c, MHD_HTTP_OK, &page);
	}
}

static enum MHD_Result send_route(struct nr_server *s, struct MHD_Connection *c, struct nr_request *q, enum nr_route route,
	const char *name)
{
	struct nr_str page = { 0 };
	switch (route) {
	case NR_ROUTE_BAD: return refuse(c, MHD_HTTP_BAD_REQUEST, "Bad request", "No run or study can have such a name.");
	case NR_ROUTE_NONE: return refuse(c, MHD_HTTP_NOT_FOUND, "Not found", "There is no such page.");
	case NR_ROUTE_ICON: return send_response(c, MHD_HTTP_NO_CONTENT, nr_http_response(&page, NULL, NULL));
	case NR_ROUTE_REPORT_CSS:
	case NR_ROUTE_UPLOT_CSS:
	case NR_ROUTE_LIVE_CSS:
	case NR_ROUTE_UPLOT_JS:
	case NR_ROUTE_LIVE_JS: return MHD_queue_response(c, MHD_HTTP_OK, s->file[route]);
	default: break;
	}
	struct MHD_Response *stream = NULL;
	enum MHD_Result done;
	pthread_mutex_lock(&s->lock);
	if (route == NR_ROUTE_INDEX) {
		nr_page_index(&page, &s->catalogue);
		done = send_page(c, MHD_HTTP_OK, &page);
	} else done = send_entry(s, c, q, route, name, &stream);
	pthread_mutex_unlock(&s->lock);
	return stream ? send_response(c, MHD_HTTP_OK, stream) : done;
}

static void has_request(struct nr_server *s, struct MHD_Connection *c, bool whole)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct nr_caller *caller = info ? info->socket_context : NULL;
	pthread_mutex_lock(&s->lock);
	if (caller) caller->since = whole ? 0 : nr_clock();
	pthread_mutex_unlock(&s->lock);
}

static bool knows_token(const struct nr_server *s, struct MHD_Connection *c)
{
	char name[32];
	return nr_token_same(s->token, MHD_lookup_connection_value(c, MHD_COOKIE_KIND, nr_token_cookie(s->port, name, sizeof name)));
}

/* The first visit: the token of the address becomes a cookie, and leaves the address. */
static enum MHD_Result greet(const struct nr_server *s, struct MHD_Connection *c, const char *url)
{
	char name[32];
	struct nr_str cookie = { 0 }, none = { 0 };
	if (!nr_token_same(s->token, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token")))
		return refuse(c, MHD_HTTP_FORBIDDEN, "Forbidden", "Use the address that norma serve printed: it ends with a token.");
	nr_str_printf(&cookie, "%s=%s; Path=/; HttpOnly; SameSite=Lax", nr_token_cookie(s->port, name, sizeof name), s->token);
	struct MHD_Response *r = nr_http_response(&none, NULL, NULL);
	if (r && !cookie.failed) {
		MHD_add_response_header(r, "Set-Cookie", cookie.text);
		MHD_add_response_header(r, "Location", *url == '/' && url[1] != '/' ? url : "/");       /* never another host */
	}
	nr_str_release(&cookie);
	return send_response(c, MHD_HTTP_SEE_OTHER, r);
}

/* Called when the headers are there, and again after a wait for the maker. Nothing is ever uploaded. */
static enum MHD_Result answer(void *server, struct MHD_Connection *c, const char *url, const char *method, const char *version,
	const char *upload, size_t *upload_size, void **state)
{
	struct nr_server *s = server;
	char name[NR_NAME_MAX];
	(void)version, (void)upload, (void)upload_size;
	if (!*state && !(*state = calloc(1, sizeof(struct nr_request)))) return MHD_NO;
	has_request(s, c, true);
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "Not allowed", "This server is read-only.");
	const char *host = header(c, "Host"), *origin = header(c, "Origin");
	const bool ours = s->conf->host ? nr_origin_of_host(origin, host) : nr_host_ours(host, s->port) && nr_origin_ours(origin, s->port);
	if (!ours) return refuse(c, MHD_HTTP_FORBIDDEN, "Forbidden", "Use localhost or 127.0.0.1 with the port of this server.");
	if (!s->conf->open && !knows_token(s, c)) return greet(s, c, url);
	const enum nr_route route = nr_route_find(url, name);
	if ((route == NR_ROUTE_DATA || route == NR_ROUTE_EVENTS) && !nr_fetch_ours(header(c, "Sec-Fetch-Site")))
		return refuse(c, MHD_HTTP_FORBIDDEN, "Forbidden", "Other sites may not read this.");
	return send_route(s, c, *state, route, name);
}

static void completed(void *server, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
	(void)why;
	free(*state);
	*state = NULL;
	has_request(server, c, false);
}

/* Escapes stay: route.c decodes them, and sees what was hidden in them. */
static size_t keep_escapes(void *cls, struct MHD_Connection *c, char *text)
{
	(void)cls, (void)c;
	return strlen(text);
}

/* ---- connections ------------------------------------------------------------------------------------------------------------- */

static void connected(void *server, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what)
{
	struct nr_server *s = server;
	struct nr_caller *caller = *context;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	pthread_mutex_lock(&s->lock);
	if (what == MHD_CONNECTION_NOTIFY_STARTED && info && (caller = calloc(1, sizeof *caller))) {
		*caller = (struct nr_caller){ .fd = info->connect_fd, .since = nr_clock(), .after = s->caller };
		if (s->caller) s->caller->before = caller;
		s->caller = caller;
		*context = caller;
	} else if (what == MHD_CONNECTION_NOTIFY_CLOSED && caller) {
		if (caller->before) caller->before->after = caller->after;
		else s->caller = caller->after;
		if (caller->after) caller->after->before = caller->before;
		free(caller);
		*context = NULL;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Who drips bytes resets the timeout for idle connections, but not this one. */
void nr_http_sweep(struct nr_server *s)
{
	const double now = nr_clock();
	pthread_mutex_lock(&s->lock);
	for (const struct nr_caller *c = s->caller; c; c = c->after)
		if (c->since > 0 && now - c->since > PATIENCE) shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
}

void nr_http_beat(struct nr_server *s)
{
	pthread_mutex_lock(&s->lock);
	for (struct nr_viewer *v = s->viewer; v; v = v->after)
		if (v->asleep) nr_viewer_beat(v);
	pthread_mutex_unlock(&s->lock);
	nr_http_wake(s);
}

/* Who sleeps cannot go away, so what was collected with the lock is good without it. */
void nr_http_wake(struct nr_server *s)
{
	struct MHD_Connection *sleeper[2 * NR_CONNECTIONS];
	int n = 0;
	pthread_mutex_lock(&s->lock);
	for (struct nr_viewer *v = s->viewer; v; v = v->after)
		if (v->asleep && (s->stopping || nr_viewer_ready(v, &s->backlog))) {
			v->asleep = false;
			sleeper[n++] = v->connection;
		}
	for (struct nr_request **q = &s->waiting; *q;) {
		struct nr_request *one = *q;
		if (one->made->wanted && !s->stopping) {
			q = &one->next;
			continue;
		}
		*q = one->next;
		sleeper[n++] = one->connection;
	}
	pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < n; i++) MHD_resume_connection(sleeper[i]);
}

/* ---- the daemon -------------------------------------------------------------------------------------------------------------- */

/* Files that can be open: each connection is one. */
static unsigned connections(void)
{
	enum { OTHERS = 64 };
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r)) return 200;
	if (r.rlim_cur < NR_CONNECTIONS + OTHERS) {
		r.rlim_cur = r.rlim_max < NR_CONNECTIONS + OTHERS ? r.rlim_max : NR_CONNECTIONS + OTHERS;
		if (setrlimit(RLIMIT_NOFILE, &r)) getrlimit(RLIMIT_NOFILE, &r);
	}
	if (r.rlim_cur >= NR_CONNECTIONS + OTHERS) return NR_CONNECTIONS;
	return r.rlim_cur > 2 * OTHERS ? (unsigned)r.rlim_cur - OTHERS : OTHERS;
}

static struct MHD_Daemon *start_daemon(struct nr_server *s, int fd, unsigned most)
{
	return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, most, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
		keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, completed, s, MHD_OPTION_NOTIFY_CONNECTION, connected, s, MHD_OPTION_END);
}

int nr_http_start(struct nr_server *s, struct nr_error *err)
{
	if (!make_files(s)) return nr_fail(err, NR_EMEMORY, "cannot serve", NULL, "out of memory");
	if (!s->conf->open && !nr_token_make(s->token))
		return nr_fail(err, NR_EIO, "cannot serve", NULL, "the system has no random bytes for a token");
	int fd[2];
	if (nr_listen(s, fd, err)) return err->code;
	const unsigned each = connections() / (fd[1] < 0 ? 1 : 2);
	for (int i = 0; i < 2; i++) {
		if (fd[i] < 0) continue;
		s->daemon[i] = start_daemon(s, fd[i], each);
		if (!s->daemon[i]) close(fd[i]);
	}
	return s->daemon[0] ? NR_OK : nr_fail(err, NR_EIO, "cannot serve", NULL, "libmicrohttpd did not start");
}

static int64_t viewers_left(struct nr_server *s)
{
	pthread_mutex_lock(&s->lock);
	const int64_t n = s->viewers;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* The caller has set stopping: nobody goes to sleep any more. Streams get a second to end in good order. */
void nr_http_stop(struct nr_server *s)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	MHD_socket fd[2] = { MHD_INVALID_SOCKET, MHD_INVALID_SOCKET };
	for (int i = 0; i < 2; i++)
		if (s->daemon[i]) fd[i] = MHD_quiesce_daemon(s->daemon[i]);
	if (s->daemon[0]) nr_http_wake(s);
	for (int i = 0; i < 50 && s->daemon[0] && viewers_left(s); i++) nanosleep(&pause, NULL);
	for (int i = 0; i < 2; i++) {
		if (s->daemon[i]) MHD_stop_daemon(s->daemon[i]);
		if (fd[i] != MHD_INVALID_SOCKET) close(fd[i]);
	}
	for (size_t i = 0; i < sizeof s->file / sizeof *s->file; i++)
		if (s->file[i]) MHD_destroy_response(s->file[i]);
	for (int64_t i = 0; i < s->catalogue.count; i++)
		for (int k = 0; k < NR_MAKINGS; k++)
			if (s->catalogue.entry[i]->made[k].response) MHD_destroy_response(s->catalogue.entry[i]->made[k].response);
}
