/* hiredis HOST PORT: asks a node for IDs as a program with hiredis would, and prints them one a line. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

static void print(redisContext *c, redisReply *r, size_t n) {
	size_t i;
	if (r == NULL || (n == 1 && r->type != REDIS_REPLY_STRING) || (n > 1 && (r->type != REDIS_REPLY_ARRAY || r->elements != n))) {
		fprintf(stderr, "reply of type %d: %s\n", r ? r->type : -1, r && r->str ? r->str : c->errstr);
		exit(1);
	}
	if (n == 1)
		puts(r->str);
	for (i = 0; n > 1 && i < n; i++)
		puts(r->element[i]->str);
	freeReplyObject(r);
}

int main(int argc, char **argv) {
	struct timeval patience = {10, 0};
	redisContext *c;
	redisReply *r;
	int i;
	if (argc != 3 || (c = redisConnectWithTimeout(argv[1], atoi(argv[2]), patience)) == NULL || c->err)
		return 1;
	print(c, redisCommand(c, "GET order"), 1);
	print(c, redisCommand(c, "MGET %s %s %s", "a", "b", "c"), 3);
	print(c, redisCommand(c, "GET order COUNT %d", 100), 100);
	for (i = 0; i < 1000; i++)
		redisAppendCommand(c, "GET %s", "order");
	for (i = 0; i < 1000; i++) {
		if (redisGetReply(c, (void **)&r) != REDIS_OK)
			return 2;
		print(c, r, 1);
	}
	redisFree(c);
	return 0;
}
