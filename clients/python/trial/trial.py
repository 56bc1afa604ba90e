"""Runs app.py under servers: each must answer with different IDs from several processes, and without errors.

python trial.py HOST:PORT [STACK...]     HOST:PORT is a node's
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
PROCESSES = 3


def gunicorn(*flags: str) -> list[str]:
    return [f"{BIN}/gunicorn", "-b", "127.0.0.1:{port}", "-w", str(PROCESSES), *flags, "app:wsgi"]


def uwsgi(*flags: str) -> list[str]:
    server = [f"{BIN}/pyuwsgi", "--http-socket", "127.0.0.1:{port}", "--master", "-p", str(PROCESSES)]
    return [*server, "--die-on-term", "--need-app", "--module", "app:wsgi", "--home", sys.prefix, *flags]


def celery(*flags: str) -> list[str]:
    return [f"{BIN}/celery", "-A", "app", "worker", "--without-gossip", "--without-mingle", "-l", "warning", *flags]


STACKS = {
    "gunicorn sync": gunicorn("-k", "sync"),
    "gunicorn sync, preloaded": gunicorn("-k", "sync", "--preload"),
    "gunicorn gthread": gunicorn("-k", "gthread", "--threads", "8"),
    "gunicorn gthread, preloaded": gunicorn("-k", "gthread", "--threads", "8", "--preload"),
    "gunicorn gevent": gunicorn("-k", "gevent"),
    "gunicorn gevent, preloaded": gunicorn("-k", "gevent", "--preload"),
    "eventlet": [sys.executable, "green.py", "{port}"],
    "eventlet, preloaded": [sys.executable, "green.py", "{port}", "preloaded"],
    "uWSGI": uwsgi(),
    "uWSGI, threads": uwsgi("--enable-threads", "--threads", "8"),
    "uWSGI, hooks": uwsgi("--enable-threads", "--py-call-uwsgi-fork-hooks"),
    "uWSGI, lazy-apps": uwsgi("--lazy-apps"),
    "uWSGI, lazy-apps, threads": uwsgi("--lazy-apps", "--enable-threads", "--threads", "8"),
    "celery prefork": celery("-P", "prefork", "-c", str(PROCESSES)),
    "celery threads": celery("-P", "threads", "-c", "8"),
    "celery gevent": celery("-P", "gevent", "-c", "20"),
    "celery eventlet": celery("-P", "eventlet", "-c", "20"),
    "uvicorn": [
        f"{BIN}/uvicorn",
        "--port",
        "{port}",
        "--workers",
        str(PROCESSES),
        "--log-level",
        "warning",
        "app:asgi",
    ],
}
#: These serve nothing: they print.
PROGRAMS = {
    "gevent's timeouts": ["greenlets.py", "gevent"],
    "gevent's timeouts, patched late": ["greenlets.py", "gevent", "late"],
    "eventlet's timeouts": ["greenlets.py", "eventlet"],
    "eventlet's timeouts, patched late": ["greenlets.py", "eventlet", "late"],
    "Jupyter": ["notebook.py"],
}
STACKS.update((name, ["sleep", "600"]) for name in PROGRAMS)
ONE_PROCESS = ("celery threads", "celery gevent", "celery eventlet", *PROGRAMS)


def answers(name: str, environment: dict[str, str], process: subprocess.Popen[bytes], url: str) -> list[Any]:
    program = ["app.py", "send"] if name.startswith("celery") else PROGRAMS.get(name)
    if program:
        command = [sys.executable, *program]
        done = subprocess.run(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, timeout=120, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]
    ends = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=20).read()
            break
        except OSError:
            if process.poll() is not None or time.monotonic() > ends:
                raise
            time.sleep(0.1)
    with ThreadPoolExecutor(12) as pool:  # keep on until each process has answered
        got: list[Any] = []
        while time.monotonic() < ends and (len(got) < 60 or len({a["pid"] for a in got}) < PROCESSES):
            got += pool.map(lambda _: json.load(urllib.request.urlopen(url, timeout=30)), range(30))
    return got


def run(name: str, command: list[str], address: str) -> str:
    """Return what is wrong with a server, or what it did."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        for part in ("queue", "control", "results"):
            os.mkdir(f"{folder}/{part}")
        environment = {**os.environ, "FLAKED_ADDRESS": address, "FLAKED_QUEUE": folder}
        environment.update(FLAKED_PARENT=f"{folder}/parent", PYTHONPATH=str(HERE), HOME=folder, PYTHONWARNINGS="ignore")
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen(
                [part.format(port=port) for part in command],
                cwd=HERE,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            got = answers(name, environment, process, f"http://127.0.0.1:{port}/")
        except Exception as error:
            got = [{"pid": 0, "ids": [], "wrong": [f"{type(error).__name__} {error}"]}]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        parent = (
            Path(f"{folder}/parent").read_text(encoding="ascii").split() if os.path.exists(f"{folder}/parent") else []
        )
        ids = [int(text) for text in parent] + [number for each in got for number in each["ids"]]
        processes = len({each["pid"] for each in got})
        wrong = sorted({text for each in got for text in each["wrong"]})
        if len(ids) > len(set(ids)):
            wrong.append(f"{len(ids) - len(set(ids))} IDs twice")
        if len(ids) < 3000 or processes < (1 if name in ONE_PROCESS else PROCESSES):
            wrong.append(f"{len(ids)} IDs from {processes} processes are too few")
        if wrong:
            return f"FAILED: {'; '.join(wrong)}\n" + Path(f"{folder}/log").read_text(errors="replace")[-3000:]
        return f"{len(ids)} different IDs from {processes} processes"


def main(address: str, *names: str) -> None:
    failed = False
    for name, command in STACKS.items():
        if not names or name in names:
            result = run(name, command, address)
            failed = failed or result.startswith("FAILED")
            print(f"Python {sys.version.split()[0]}, {name}: {result}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
