/* load sends one request again and again, over many connections from one thread. It needs less of a
 * processor than redis-benchmark, knows HTTP and long replies, and can ask at a rate. All replies
 * must have the length of the first one.
 *
 *     cc -O2 -o load load.c -lm && printf 'GET 1000\n' | ./load PORT CONNECTIONS REQUESTS [RATE [HOLD]]
 *
 * With RATE, requests are due at random times, RATE a second on average, and their latency counts
 * from then. It prints requests a second, and p50 and p99 in milliseconds. Then it keeps the
 * connections open for HOLD seconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_US 1000000
#define MAX_SECONDS 60

static char request[64 << 10], in[256 << 10];
static unsigned took[MAX_US + 1]; /* by microseconds */
static struct conn { int fd; ssize_t got; double due; } *conns;
static int *idle; /* a ring of connections, so that all of them are used */

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int dial(int port) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0) err(1, "port %d", port);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

/* first returns the length of a reply: all that comes before a pause of 200 ms. */
static ssize_t first(int fd, ssize_t len) {
	if (send(fd, request, len, 0) != len) err(1, "send");
	ssize_t n, all = recv(fd, in, sizeof in, 0);
	if (all <= 0 || in[0] == '-') errx(1, "no reply, or an error: %.*s", (int)all, in);
	while (usleep(200000), (n = recv(fd, in, sizeof in, MSG_DONTWAIT)) > 0) all += n;
	return all;
}

static double percentile(long requests, double part) {
	long seen = 0, us = 0;
	while (us < MAX_US && (seen += took[us]) < requests * part) us++;
	return us / 1000.;
}

int main(int argc, char **argv) {
	if (argc < 4) errx(2, "load PORT CONNECTIONS REQUESTS [RATE] <request");
	long n = atoi(argv[2]), requests = atol(argv[3]), sent = 0, done = 0, head = 0, tail = 0;
	double rate = argc > 4 ? atof(argv[4]) : 0;
	ssize_t len = fread(request, 1, sizeof request, stdin), reply = 0;
	int loop = epoll_create1(0);
	struct epoll_event events[256];
	conns = calloc(n, sizeof *conns);
	idle = calloc(n, sizeof *idle);
	for (; tail < n; tail++) {
		conns[tail].fd = dial(atoi(argv[1]));
		if (tail == 0) reply = first(conns[0].fd, len);
		struct epoll_event ev = {.events = EPOLLIN, .data.u32 = tail};
		epoll_ctl(loop, EPOLL_CTL_ADD, conns[tail].fd, &ev);
		idle[tail] = tail;
		if (tail % 100 == 99) usleep(10000); /* more at once than a server accepts would wait for a second */
	}
	double began = now(), due = began;
	while (done < requests) {
		for (double at = now(); sent < requests && head < tail && (!rate || due <= at); sent++) {
			struct conn *c = &conns[idle[head++ % n]];
			c->due = rate ? due : at;
			if (rate) due -= log(1 - drand48()) / rate;
			if (send(c->fd, request, len, MSG_NOSIGNAL) != len) err(1, "send");
		}
		/* Between requests at a rate it does not sleep: waking up takes longer than most replies. */
		int ready = epoll_wait(loop, events, 256, rate ? 0 : 1000);
		for (int i = 0; i < ready; i++) {
			struct conn *c = &conns[events[i].data.u32];
			ssize_t got = recv(c->fd, in, sizeof in, 0);
			if (got <= 0 || (c->got += got) > reply) errx(1, "closed, or a reply longer than %zd bytes", reply);
			if (c->got < reply) continue;
			double us = (now() - c->due) * 1e6;
			took[us < MAX_US ? (int)us : MAX_US]++;
			c->got = 0;
			idle[tail++ % n] = events[i].data.u32;
			done++;
		}
		if (now() - began > MAX_SECONDS) errx(1, "%ld of %ld replies after %d s", done, requests, MAX_SECONDS);
	}
	printf("%.0f %.3f %.3f\n", requests / (now() - began), percentile(requests, .5), percentile(requests, .99));
	fflush(stdout);
	if (argc > 5) sleep(atoi(argv[5]));
	return 0;
}
