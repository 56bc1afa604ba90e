"""A real flaked node on a real ZooKeeper."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ZK_DEV = str(ROOT / "scripts" / "zk-dev.sh")


class Node:
    """A process of flaked serve."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.address = self._await_serving()
        # A full pipe would stop the node.
        threading.Thread(target=self._drain, daemon=True).start()

    def _await_serving(self) -> str:
        assert self._process.stdout
        address, lines = "", []
        for line in self._process.stdout:
            lines.append(line)
            record = json.loads(line) if line.startswith("{") else {}
            if record.get("@message") == "listening" and not address:
                address = record["address"]
            if record.get("@message") == "serving":
                return address
        self._process.wait()
        raise RuntimeError("the node ended before it served:\n" + "".join(lines))

    def _drain(self) -> None:
        assert self._process.stdout
        for _ in self._process.stdout:
            pass

    def requests(self) -> int:
        """Return how many requests for IDs the node has answered."""
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=10) as sock:
            sock.sendall(b"STATS\nQUIT\n")
            stats = sock.makefile("r", encoding="utf-8").read()
        found = re.search(r"^requests_get_ok (\d+)$", stats, re.MULTILINE)
        assert found, stats
        return int(found[1])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _binary(directory: str) -> str:
    """Return the program that FLAKED_TEST_BINARY names, or else one that is built from the repository."""
    path = os.environ.get("FLAKED_TEST_BINARY")
    if not path:
        path = f"{directory}/flaked"
        subprocess.run(["go", "build", "-o", path, "./cmd/flaked"], cwd=ROOT, check=True)
    return path


def _run(*command: str) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextlib.contextmanager
def real_node() -> Iterator[Node]:
    """Start a node, whose cluster has the sequence order."""
    if os.environ.get("FLAKED_TEST_ZK") != "require":
        pytest.skip("needs a real node: run make test-clients, or set FLAKED_TEST_ZK=require")
    with tempfile.TemporaryDirectory(prefix="flaked-test") as directory:
        binary = _binary(directory)
        zk_directory = f"{directory}/zk"
        exported = _run(ZK_DEV, "start", "--nodes", "1", "--port", "0", "--dir", zk_directory)
        try:
            zk = exported.strip().rpartition("FLAKED_ZK=")[2]
            serve = [binary, "serve", "--zk", zk, "--bootstrap", "--listen", "127.0.0.1:0", "--admin", "off"]
            serve += ["--name", "n1", "--state-dir", f"{directory}/n1", "--log-format", "json"]
            started = Node([*serve, "--heartbeat", "200ms", "--confirm-time", "800ms"])
            try:
                _run(binary, "seq", "create", "--zk", zk, "order")
                yield started
            finally:
                started.kill()
        finally:
            _run(ZK_DEV, "stop", "--wipe", "--dir", zk_directory)
