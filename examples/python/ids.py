#!/usr/bin/env python3
"""IDs from flaked, with redis-py.

    ids = IDs(["unix:/run/flaked/flaked.sock", "127.0.0.1:7609"])
    ids.next()    # 2123840319823806551
    ids.take(100)

As a program: ids.py COUNT NODE... prints IDs, one a line.
"""

import sys

import redis

# What a node says when another one may well answer. Anything else is a
# mistake in the request, and the same everywhere.
TRY_ANOTHER = ("NOTREADY", "CLOCK", "FENCED", "EXHAUSTED", "BUSY")


class IDs:
    """IDs of the node that answered last, or else of the next that does.

    It is for one thread or many: redis-py keeps a pool of connections.
    """

    def __init__(self, nodes, token=None, timeout=1.0):
        self._nodes = [self._connect(n, token, timeout) for n in nodes]
        self._current = 0

    @staticmethod
    def _connect(node, token, timeout):
        options = {
            "password": token,
            "socket_timeout": timeout,
            # A firewall, or a node with many connections, may close idle ones.
            "health_check_interval": 60,
        }
        if node.startswith("unix:"):
            return redis.Redis(unix_socket_path=node[len("unix:"):], **options)
        host, _, port = node.rpartition(":")
        return redis.Redis(host=host, port=int(port), socket_connect_timeout=timeout, **options)

    def next(self):
        """One ID."""
        return self.take(1)[0]

    def take(self, n):
        """n IDs, or an exception and none. Those of a reply that was lost are
        not handed out: a gap, and never a duplicate."""
        why = None
        for i in range(len(self._nodes)):
            at = (self._current + i) % len(self._nodes)
            try:
                ids = self._nodes[at].execute_command("GET", "id", "COUNT", n)
            except (redis.ConnectionError, redis.TimeoutError) as e:
                why = e
            except redis.ResponseError as e:
                if not str(e).startswith(TRY_ANOTHER):
                    raise
                why = e
            else:
                self._current = at
                # Python's int holds them. For JSON that a browser reads, keep them as str.
                return [int(id) for id in ids]
        raise why


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: ids.py COUNT NODE...")
    ids = IDs(sys.argv[2:])
    print(ids.next())
    for id in ids.take(int(sys.argv[1]) - 1):
        print(id)


if __name__ == "__main__":
    main()
