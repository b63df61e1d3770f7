/* Where the server listens: both loopback addresses, or the one address that --host gives. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/server.h"

union address { struct sockaddr any; struct sockaddr_in four; struct sockaddr_in6 six; };

/* A listening socket, or -1 and errno; *port becomes the one it got. */
static int listen_at(union address *at, int *port)
{
	const bool six = at->any.sa_family == AF_INET6;
	socklen_t size = six ? sizeof at->six : sizeof at->four;
	const int yes = 1, fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (six) at->six.sin6_port = htons((uint16_t)*port);
	else at->four.sin_port = htons((uint16_t)*port);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) &&
		(!six || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes)) && !bind(fd, &at->any, size) && !listen(fd, 512) &&
		!getsockname(fd, &at->any, &size)) {
		*port = ntohs(six ? at->six.sin6_port : at->four.sin_port);
		return fd;
	}
	const int number = errno;
	if (fd >= 0) close(fd);
	errno = number;
	return -1;
}

static bool parse(const char *host, union address *at)
{
	*at = (union address){ .four = { .sin_family = AF_INET } };
	if (inet_pton(AF_INET, host, &at->four.sin_addr) == 1) return true;
	*at = (union address){ .six = { .sin6_family = AF_INET6 } };
	return inet_pton(AF_INET6, host, &at->six.sin6_addr) == 1;
}

int nr_listen(struct nr_server *s, int fd[2], struct nr_error *err)
{
	const char *host = s->conf->host ? s->conf->host : "127.0.0.1";
	union address at;
	fd[0] = fd[1] = -1;
	if (!parse(host, &at)) {
		nr_fail(err, NR_EUSAGE, "cannot serve on", host, "it is not an address");
		return nr_hint(err, "give one of this machine's, such as 192.168.1.5, or 0.0.0.0 for all of them");
	}
	s->port = (int)s->conf->port;
	if ((fd[0] = listen_at(&at, &s->port)) < 0) {
		const int number = errno;
		nr_fail(err, NR_EIO, "cannot serve on", host, "port %lld: %s", (long long)s->conf->port, strerror(number));
		return number == EADDRINUSE ? nr_hint(err, "another server uses this port; use --port 0 for a free one") : NR_EIO;
	}
	/* IPv6 as well, where there is any and nobody has that port */
	at = (union address){ .six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	if (!s->conf->host) fd[1] = listen_at(&at, &s->port);
	return NR_OK;
}
