/* A very small HTTP server on 127.0.0.1, in a thread, that misbehaves as the path asks:
 *   /range/X  all of it, or the range asked for        /plain/X  all of it, whatever range was asked for
 *   /cut/X    a part of what was asked for, then closes  /dead/X   the header, then closes
 *   /long/X   more than there should be                /move/X   redirects to /range/X
 *   /busy/X   503 the first time, then as range        else      404
 * X is a file of server.folder. */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "unit/datasets.h"

static struct { int fd, port; _Atomic int requests; _Atomic bool ranged; pthread_t thread; const char *folder; } server;

static void send_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;
	while (n) {
		const ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
		if (k <= 0) return;
		p += k;
		n -= (size_t)k;
	}
}

static void answer(int fd, const char *kind, const char *file, long first)
{
	char path[600], head[300];
	snprintf(path, sizeof path, "%s/%s", server.folder, file);
	const bool known = strstr("range plain cut dead long move busy", kind) && !access(path, F_OK);
	if (!known || (!strcmp(kind, "busy") && server.requests == 1)) {
		snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
			known ? "503 Busy" : "404 Not Found");
		send_all(fd, head, strlen(head));
		return;
	}
	if (!strcmp(kind, "move")) {
		snprintf(head, sizeof head, "HTTP/1.1 302 Found\r\nLocation: /range/%s\r\n"
			"Content-Length: 0\r\nConnection: close\r\n\r\n", file);
		send_all(fd, head, strlen(head));
		return;
	}
	size_t n;
	uint8_t *b = made_read(path, &n);
	const size_t at = strcmp(kind, "plain") && first > 0 ? (size_t)first : 0, more = strcmp(kind, "long") ? 0 : 1;
	if (at >= n && at > 0)
		snprintf(head, sizeof head, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	else if (at > 0)
		snprintf(head, sizeof head, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n"
			"Connection: close\r\n\r\n", at, n - 1, n, n - at + more);
	else snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", n + more);
	send_all(fd, head, strlen(head));
	size_t part = at < n ? n - at : 0;
	if (!strcmp(kind, "cut")) part = part > 100000 ? 100000 : part;
	if (!strcmp(kind, "dead")) part = 0;
	send_all(fd, b + at, part + (more && part));    /* made_read ends with a zero byte */
	free(b);
}

static void *serve(void *arg)
{
	(void)arg;
	for (;;) {
		const int fd = accept(server.fd, NULL, NULL);
		if (fd < 0) return NULL;
		char text[4096] = "", kind[64] = "", file[64] = "";
		size_t n = 0;
		while (n < sizeof text - 1 && !strstr(text, "\r\n\r\n")) {
			const ssize_t k = recv(fd, text + n, sizeof text - 1 - n, 0);
			if (k <= 0) break;
			n += (size_t)k;
			text[n] = 0;
		}
		server.requests++;
		const char *range = strcasestr(text, "Range: bytes=");
		server.ranged = range;
		if (sscanf(text, "GET /%63[^/]/%63[^/ ] ", kind, file) == 2) answer(fd, kind, file, range ?
			atol(range + 13) : 0);
		shutdown(fd, SHUT_WR);
		close(fd);
	}
}

static int server_start(void **state)
{
	if (made_setup(state)) return -1;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	server.folder = made_dir;
	server.requests = 0;
	server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(server.fd, (struct sockaddr *)&at, sizeof at) || listen(server.fd, 8)) return -1;
	getsockname(server.fd, (struct sockaddr *)&at, &n);
	server.port = ntohs(at.sin_port);
	return pthread_create(&server.thread, NULL, serve, NULL);
}

static int server_stop(void **state)
{
	shutdown(server.fd, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	close(server.fd);
	return made_teardown(state);
}

#endif
