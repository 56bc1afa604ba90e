"""The examples and the README's program, against a real node on a real ZooKeeper.

FLAKED_TEST_ZK=require makes them run. Else they are skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import flaked

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent
ROOT = PYTHON.parent.parent


def started(directory: Path, address: str, zookeeper: str) -> Iterator[str]:
    program = directory / "flaked"
    subprocess.run(["go", "build", "-o", str(program), "./cmd/flaked"], cwd=ROOT, check=True)
    command = [
        str(program),
        "serve",
        "--zk",
        zookeeper,
        "--bootstrap",
        "--heartbeat",
        "200ms",
        "--confirm-time",
        "800ms",
    ]
    command += ["--listen", address, "--admin", "off", "--state-dir", str(directory / "state")]
    node = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        with flaked.Client([address]) as client:
            ends = time.monotonic() + 60
            while True:
                try:
                    client.next()
                    break
                except flaked.UnavailableError:
                    assert node.poll() is None and time.monotonic() < ends, "the node does not serve"
                    time.sleep(0.05)
            subprocess.run([str(program), "seq", "create", "order", "--zk", zookeeper], check=True, timeout=60)
        yield address
    finally:
        node.terminate()
        node.wait(timeout=30)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not os.environ.get("FLAKED_TEST_ZK"):
        pytest.skip("it needs ZooKeeper: set FLAKED_TEST_ZK=require")
    directory = tmp_path_factory.mktemp("node")
    zk = [str(ROOT / "scripts/zk-dev.sh")]
    where = ["--dir", str(directory / "zk")]
    text = subprocess.run(
        [*zk, "start", "--nodes", "1", "--port", "0", *where], check=True, stdout=subprocess.PIPE, text=True
    )
    try:
        zookeeper = re.search(r"FLAKED_ZK=['\"]?([0-9.:,]+)", text.stdout)
        assert zookeeper
        yield from started(directory, f"unix:{directory}/s", zookeeper[1])
    finally:
        subprocess.run([*zk, "stop", "--wipe", *where], check=True, stdout=subprocess.DEVNULL)


def ran(arguments: list[str]) -> str:
    env = {**os.environ, "PYTHONPATH": str(PYTHON / "src")}
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", ["sqlalchemy_orders", "django_orders"])
def test_example(node: str, example: str) -> None:
    lines = ran([str(PYTHON / "examples" / f"{example}.py"), node]).splitlines()
    assert len(lines) == 3
    assert len({int(line.split()[0]) for line in lines}) == 3


def test_a_thousand_rows_are_one_statement_with_returning(node: str) -> None:
    program = f"""
import sys; sys.argv[1:] = [{node!r}]; sys.path.insert(0, {str(PYTHON / "examples")!r})
import sqlalchemy, sqlalchemy_orders as example
from sqlalchemy import event
statements = []
@event.listens_for(sqlalchemy.engine.Engine, "before_cursor_execute")
def note(conn, cursor, statement, parameters, context, executemany):
    statements.append(statement)
example.main()
inserts = [s for s in statements if s.startswith("INSERT")]
print(len(inserts), all("RETURNING" in s for s in inserts))
"""
    assert ran(["-c", program]).splitlines()[-1] == "1 True"


def test_readme(node: str) -> None:
    text = (PYTHON / "README.md").read_text()
    assert len(text.split()) <= 300
    program = re.search("```python\n(.*?)```", text, re.S)
    assert program
    lines = ran(
        ["-c", program[1].replace("127.0.0.1:7609", node).replace("unix:/run/flaked/flaked.sock", "unix:/none")]
    )
    first, many, values = lines.splitlines()
    assert first.isdigit()
    assert many.count(",") == 99
    assert re.fullmatch(r"\d+ \[\d+, \d+, \d+\] range\(\d+, \d+\)", values)
