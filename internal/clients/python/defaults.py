# python3 defaults.py HOST PORT: asks a node for IDs as a program with redis-py would, with its
# defaults, and prints them one a line.
import sys

import redis


def strings(what, ids, n):
    if len(ids) != n or not all(isinstance(i, bytes) and i.isdigit() for i in ids):
        raise SystemExit(f"{what}: {ids!r}")
    for i in ids:
        print(i.decode())


r = redis.Redis(sys.argv[1], int(sys.argv[2]), client_name="e" * 100, socket_timeout=10)
strings("GET", [r.get("order")], 1)
strings("MGET", r.mget("a", "b", "c"), 3)
strings("COUNT 100", r.execute_command("GET", "order", "COUNT", 100), 100)
pipe = r.pipeline()  # with MULTI and EXEC, as by default
for _ in range(1000):
    pipe.get("order")
strings("pipeline", pipe.execute(), 1000)
pipe = r.pipeline(transaction=False)
for _ in range(1000):
    pipe.get("order")
strings("pipeline without MULTI", pipe.execute(), 1000)
pipe = r.pipeline()
pipe.get("order")
pipe.execute_command("FOO")
try:
    raise SystemExit(f"EXEC after a refused request: {pipe.execute()!r}")
except redis.ResponseError as e:
    if "unknown command" not in str(e):
        raise
assert r.ping() and r.info("replication")["role"] == "master"
r.close()
