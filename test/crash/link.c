/* A slow and lossy line between two network namespaces, for kernels without netem: a TUN device in each, and this program between them,
 * which keeps every packet for a while and drops some. Either end may be cut by taking its device down.
 *
 *   link NAMESPACE-A ADDRESS-A/BITS NAMESPACE-B ADDRESS-B/BITS DELAY-MS LOSS-PER-MILLE
 *
 * The namespaces are those of `ip netns`; the devices are called wire0. It says "up" when they are there, and runs until it is killed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKETS = 4096, BYTES = 2048 };
struct packet { double due; size_t bytes; char data[BYTES]; };
struct way { int from, to; int64_t in, out; struct packet packet[PACKETS]; };     /* a ring */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int device(const char *space, const char *address)
{
	char path[256], command[512];
	snprintf(path, sizeof path, "/run/netns/%s", space);
	const int home = open("/proc/self/ns/net", O_RDONLY), there = open(path, O_RDONLY);
	if (home < 0 || there < 0 || setns(there, CLONE_NEWNET)) return perror(path), -1;
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "wire0" };
	const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (tun < 0 || ioctl(tun, TUNSETIFF, &r)) return perror("/dev/net/tun"), -1;
	snprintf(command, sizeof command, "ip addr add %s dev wire0 && ip link set wire0 mtu 1500 txqueuelen 2000 up", address);
	if (system(command) || setns(home, CLONE_NEWNET)) return -1;
	close(home);
	close(there);
	return tun;
}

static bool lost(int64_t per_mille)
{
	static uint64_t state = 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((state >> 33) % 1000) < per_mille;
}

static void carry(struct way *w, double delay, int64_t per_mille)
{
	while (w->in - w->out < PACKETS) {
		struct packet *p = &w->packet[w->in % PACKETS];
		const ssize_t n = read(w->from, p->data, BYTES);
		if (n <= 0) break;
		p->due = now() + delay;
		p->bytes = (size_t)n;
		if (!lost(per_mille)) w->in++;
	}
	for (; w->out < w->in && w->packet[w->out % PACKETS].due <= now(); w->out++) {
		const struct packet *p = &w->packet[w->out % PACKETS];
		if (write(w->to, p->data, p->bytes) < 0 && errno == EAGAIN) break;      /* one that is down drops it */
	}
}

int main(int argc, char **argv)
{
	static struct way way[2];
	if (argc != 7) return fprintf(stderr, "link NAMESPACE-A ADDRESS-A NAMESPACE-B ADDRESS-B DELAY-MS LOSS-PER-MILLE\n"), 2;
	const int a = device(argv[1], argv[2]), b = device(argv[3], argv[4]);
	if (a < 0 || b < 0) return 1;
	const double delay = 1e-3 * atof(argv[5]);
	way[0].from = way[1].to = a;
	way[1].from = way[0].to = b;
	puts("up");
	fflush(stdout);
	for (;;) {
		struct pollfd p[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };
		const bool idle = way[0].in == way[0].out && way[1].in == way[1].out;
		poll(p, 2, idle ? -1 : 1);
		for (int i = 0; i < 2; i++) carry(&way[i], delay, atoll(argv[6]));
	}
}
