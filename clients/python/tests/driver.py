"""The driver that internal/check/clients/driver describes: python driver.py sync | asyncio."""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import sys
import threading
import time
from pathlib import Path
from typing import Any, Union

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import flaked

Json = dict[str, Any]
_numbers = itertools.count(1)
_saying = threading.Lock()


def say(answer: Json) -> None:
    text = json.dumps(answer) + "\n"
    with _saying:  # a long line takes several writes, between which another thread could say something
        sys.stdout.write(text)
        sys.stdout.flush()


def described(error: BaseException) -> Json:
    kinds = (
        (flaked.RefusedError, "refused"),
        (flaked.UnavailableError, "unavailable"),
        (flaked.ClosedError, "closed"),
        ((ValueError, TypeError), "argument"),
    )
    kind = next((name for types, name in kinds if isinstance(error, types)), type(error).__name__)
    wait = getattr(error, "retry_after", None)
    known = {
        "code": getattr(error, "code", None),
        "reason": getattr(error, "reason", None),
        "retry_after_ms": None if wait is None else round(wait * 1000),
    }
    return {"kind": kind, "text": str(error), **{name: value for name, value in known.items() if value is not None}}


def arguments(options: Json) -> Json:
    args: Json = {name: options[name] for name in ("addresses", "cluster", "token", "prefetch") if name in options}
    for name in ("timeout", "node_timeout", "max_age"):
        if f"{name}_ms" in options:
            args[name] = options[f"{name}_ms"] / 1000
    if "tls_ca" in options:
        args["tls"] = ssl.create_default_context(cafile=options["tls_ca"])
    return args


class Opened:
    """A client, and the sequences that were asked for: each has a stock of its own."""

    def __init__(self, client: Union[flaked.Client, flaked.AsyncClient], prefetch: int) -> None:
        self.client = client
        self.prefetch = prefetch
        self.sequences: dict[str, Any] = {}

    def call(self, command: Json) -> Any:
        """Begin a call. It returns numbers, or an awaitable."""
        op, client = command["op"], self.client
        limit = command["timeout_ms"] / 1000 if command.get("timeout_ms") else None
        if op == "next":
            return client.next(timeout=limit)
        if op == "take":
            return client.next_many(command["n"], timeout=limit)
        name = command["name"]
        sequence = self.sequences.get(name)
        if sequence is None:
            sequence = self.sequences[name] = client.sequence(name, prefetch=self.prefetch)
        if op == "seq_range":
            return sequence.range(command["n"], timeout=limit)
        if op == "seq_key":
            return sequence.next(key=command["key"].replace("*", str(next(_numbers))), timeout=limit)
        if command.get("n") is not None:
            return sequence.next_many(command["n"], timeout=limit)
        return sequence.next(timeout=limit)


def answered(command: Json, result: Any) -> Json:
    if command["op"] == "seq_range":
        result = [result[0], result[-1]]
    return {"values": [str(v) for v in ([result] if isinstance(result, int) else result)]}


def line(command: Json, load: int, began: float, outcome: Json) -> Json:
    about: Json = {name: command[name] for name in ("op", "name") if name in command}
    ended = time.monotonic()
    return {"load": load, **about, "began_ms": began * 1000, "took_ms": (ended - began) * 1000, **outcome}


# Threads: a call waits in a thread of its own.


def sync() -> None:
    clients: dict[str, Opened] = {}
    loads: dict[int, tuple[threading.Event, list[threading.Thread]]] = {}

    def attempt(command: Json) -> Json:
        try:
            return answered(command, clients[command["client"]].call(command))
        except Exception as error:
            return {"error": described(error)}

    def caller(command: Json, stop: threading.Event) -> None:
        for call in itertools.cycle(command["calls"]):
            if stop.is_set():
                return
            began = time.monotonic()
            outcome = attempt({**command, **call})
            say(line(call, command["id"], began, outcome))
            stop.wait(command.get("pause_ms", 0) / 1000)

    def run(command: Json) -> None:
        op, number = command["op"], {"id": command["id"]}
        if op == "close":
            clients[command["client"]].client.close()
        elif op == "load":
            stop = threading.Event()
            threads = [threading.Thread(target=caller, args=(command, stop)) for _ in range(command["callers"])]
            loads[command["id"]] = stop, threads
            say(number)
            for thread in threads:
                thread.start()
            return
        elif op == "stop":
            stop, threads = loads[command["load"]]
            stop.set()
            for thread in threads:
                thread.join()
        else:
            number.update(attempt(command))
        say(number)

    for text in sys.stdin:
        command = json.loads(text)
        if command["op"] == "open":  # in order: later commands use the client
            try:
                options = command["options"]
                clients[command["client"]] = Opened(flaked.Client(**arguments(options)), options.get("prefetch", 0))
                say({"id": command["id"]})
            except Exception as error:
                say({"id": command["id"], "error": described(error)})
        elif command["op"] == "load":
            run(command)
        else:
            threading.Thread(target=run, args=(command,), daemon=True).start()


# asyncio: a call is a task.


async def use_asyncio() -> None:
    clients: dict[str, Opened] = {}
    loads: dict[int, tuple[asyncio.Event, list[asyncio.Task[None]]]] = {}
    tasks: set[asyncio.Task[None]] = set()

    async def attempt(command: Json) -> Json:
        try:
            return answered(command, await clients[command["client"]].call(command))
        except Exception as error:
            return {"error": described(error)}

    async def caller(command: Json, stop: asyncio.Event) -> None:
        for call in itertools.cycle(command["calls"]):
            if stop.is_set():
                return
            began = time.monotonic()
            outcome = await attempt({**command, **call})
            say(line(call, command["id"], began, outcome))
            await asyncio.sleep(command.get("pause_ms", 0) / 1000)

    async def run(command: Json) -> None:
        op, number = command["op"], {"id": command["id"]}
        if op == "open":
            try:
                options = command["options"]
                client = flaked.AsyncClient(**arguments(options))
                clients[command["client"]] = Opened(client, options.get("prefetch", 0))
            except Exception as error:
                number["error"] = described(error)
        elif op == "close":
            await clients[command["client"]].client.close()  # type: ignore[misc]
        elif op == "load":
            stop = asyncio.Event()
            say(number)
            loads[command["id"]] = stop, [asyncio.create_task(caller(command, stop)) for _ in range(command["callers"])]
            return
        elif op == "stop":
            stop, callers = loads[command["load"]]
            stop.set()
            await asyncio.gather(*callers)
        else:
            number.update(await attempt(command))
        say(number)

    stdin = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    while text := await stdin.readline():
        task = asyncio.create_task(run(json.loads(text)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    if sys.argv[1:] == ["sync"]:
        sync()
    elif sys.argv[1:] == ["asyncio"]:
        asyncio.run(use_asyncio())
    else:
        sys.exit("usage: driver.py sync | asyncio")
