/* The floor answers every line with the same line of 20 bytes, from one thread and one
 * epoll loop. It only looks for the ends of lines, makes no IDs and keeps nothing for a
 * connection. So it shows the most that the kernel allows.
 *
 *     cc -O2 -o floor epoll.c && ./floor 127.0.0.1:7700
 *     ./floor unix:/tmp/floor.sock
 *     ./floor 127.0.0.1:7700 1000      answers with 1,000 lines, as for GET 1000
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE "2123840256405929993\n"
#define LINE_LEN (sizeof LINE - 1)
#define MAX_LINES 16384

static char in[64 << 10];
static char out[MAX_LINES * LINE_LEN];
static size_t lines_each = 1;

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static int listen_on(const char *where) {
	int fd, one = 1;
	if (strncmp(where, "unix:", 5) == 0) {
		struct sockaddr_un a = {.sun_family = AF_UNIX};
		strncpy(a.sun_path, where + 5, sizeof a.sun_path - 1);
		unlink(a.sun_path);
		if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0) fail("socket");
		if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0) fail("bind");
	} else {
		struct sockaddr_in a = {.sin_family = AF_INET};
		char host[64] = "";
		int port = 0;
		if (sscanf(where, "%63[^:]:%d", host, &port) != 2 || inet_pton(AF_INET, host, &a.sin_addr) != 1) {
			fprintf(stderr, "usage: floor HOST:PORT | unix:PATH [LINES]\n");
			exit(2);
		}
		a.sin_port = htons(port);
		if ((fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0) fail("socket");
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0) fail("bind");
	}
	if (listen(fd, 4096) < 0) fail("listen");
	return fd;
}

/* answer reads once and answers all lines that it got. It returns -1 if the connection must
 * be closed. A client that does not read is disconnected: the floor buffers no output. */
static int answer(int fd) {
	ssize_t n = recv(fd, in, sizeof in, 0);
	if (n <= 0) return n < 0 && errno == EAGAIN ? 0 : -1;
	size_t lines = 0;
	for (char *p = in; (p = memchr(p, '\n', in + n - p)) != NULL; p++) lines += lines_each;
	while (lines > 0) {
		size_t now = lines < MAX_LINES ? lines : MAX_LINES;
		if (send(fd, out, now * LINE_LEN, MSG_NOSIGNAL) != (ssize_t)(now * LINE_LEN)) return -1;
		lines -= now;
	}
	return 0;
}

int main(int argc, char **argv) {
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < MAX_LINES; i++) memcpy(out + i * LINE_LEN, LINE, LINE_LEN);
	if (argc > 2) lines_each = strtoul(argv[2], NULL, 10);
	int listener = listen_on(argc > 1 ? argv[1] : "");
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
