from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator

import pytest


class Fake:
    """A node in this process that gives 1, 2, 3, ... and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.peers: list[socket.socket] = []
        self.hang = False
        self.cluster = "u1"
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        try:
            for line in peer.makefile("r"):
                if line.startswith("WORKER"):
                    peer.sendall(f"worker=0 cluster=fake cluster_uuid={self.cluster}\n".encode())
                    continue
                with self._lock:
                    self.asked.append(line.strip())
                    words = line.split()
                    n = int(words[-1]) if words[-1].isdigit() else 1
                    reply = "".join(f"{next(self._numbers)}\n" for _ in range(n))
                if not self.hang:
                    peer.sendall(reply.encode())
        except OSError:
            pass

    def close(self) -> None:
        self._listener.close()
        for peer in self.peers:
            peer.close()


@pytest.fixture
def fake() -> Iterator[Fake]:
    node = Fake()
    yield node
    node.close()
