/* The floor answers every RESP array with the same bulk string, from one thread and one epoll
 * loop. It only looks for the beginnings of arrays, makes no IDs and keeps nothing for a
 * connection. So it shows the most that the kernel allows. With LINES it answers every line with
 * so many lines, as a node answers GET LINES.
 *
 *     cc -O2 -o floor epoll.c && ./floor PORT [LINES]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY "$19\r\n2123840256405929993\r\n"
#define REPLY_LEN (sizeof REPLY - 1)
#define LINE "2123840256405929993\n"
#define LINE_LEN (sizeof LINE - 1)

static char in[64 << 10];
static char out[sizeof in * REPLY_LEN];
static char mark = '*'; /* each one in a request gets a reply */
static size_t most = sizeof in, reply_len = REPLY_LEN;

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static int listen_on(int port) {
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0) fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0) fail("bind");
	if (listen(fd, 4096) < 0) fail("listen");
	return fd;
}

/* answer reads once and answers each mark that it got: no other byte of a request of
 * redis-benchmark is '*'. It returns -1 if the connection must be closed. A client that does
 * not read is disconnected: the floor buffers no output. */
static int answer(int fd) {
	ssize_t n = recv(fd, in, most, 0);
	if (n <= 0) return n < 0 && errno == EAGAIN ? 0 : -1;
	size_t len = 0;
	for (char *p = in; (p = memchr(p, mark, in + n - p)) != NULL; p++) len += reply_len;
	return send(fd, out, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

int main(int argc, char **argv) {
	signal(SIGPIPE, SIG_IGN);
	size_t lines = argc > 2 ? atoi(argv[2]) : 0;
	if (lines > 0) mark = '\n', reply_len = lines * LINE_LEN, most = sizeof in / lines;
	for (size_t i = 0; lines == 0 && i < sizeof in; i++) memcpy(out + i * REPLY_LEN, REPLY, REPLY_LEN);
	for (size_t i = 0; i < most * lines; i++) memcpy(out + i * LINE_LEN, LINE, LINE_LEN);
	int listener = listen_on(argc > 1 ? atoi(argv[1]) : 7700);
	int loop = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener}, events[512];
	if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, listener, &ev) < 0) fail("epoll");
	for (;;) {
		int n = epoll_wait(loop, events, 512, -1);
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd, one = 1;
			if (fd != listener) {
				if (answer(fd) < 0) close(fd);
				continue;
			}
			while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
				setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
				ev.data.fd = fd;
				epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev);
			}
		}
	}
}
