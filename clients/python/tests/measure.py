"""Measures calls per second for next(), and those of redis-py if it is installed, with a real node.

From clients/python: FLAKED_TEST_ZK=require ../../bin/clients-python/bin/python tests/measure.py
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from cluster import real_node

import flaked

SECONDS = 2.0
ROUNDS = 3


def report(what: str, measure: Callable[[], float]) -> None:
    """Print the best of some rounds: other programs can only make a round slower."""
    rates = sorted(measure() for _ in range(ROUNDS))
    print(f"{what:28} {rates[-1]:10,.0f} calls/s   (worst {rates[0]:,.0f})", flush=True)


def blocking(call: Callable[[], Any], callers: int) -> float:
    counts = [0] * callers
    call()
    ends = time.monotonic() + SECONDS

    def caller(number: int) -> None:
        while time.monotonic() < ends:
            for _ in range(10):
                call()
            counts[number] += 10

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


async def asynchronous(address: str, callers: int) -> float:
    counts = [0] * callers
    async with flaked.AsyncClient([address]) as client:
        await client.next()
        ends = time.monotonic() + SECONDS

        async def caller(number: int) -> None:
            while time.monotonic() < ends:
                for _ in range(10):
                    await client.next()
                counts[number] += 10

        await asyncio.gather(*map(caller, range(callers)))
    return sum(counts) / SECONDS


def with_a_loop(address: str, callers: int) -> float:
    return asyncio.run(asynchronous(address, callers))


def main() -> None:
    with real_node() as node:
        for callers in (1, 16):
            with flaked.Client([node.address]) as client:
                report(f"blocking, {callers} threads", partial(blocking, client.next, callers))
        for callers in (1, 100):
            report(f"asyncio, {callers} tasks", partial(with_a_loop, node.address, callers))
        with contextlib.suppress(ImportError):
            redis: Any = importlib.import_module("redis")
            host, _, port = node.address.rpartition(":")
            peer = redis.Redis(host, int(port))
            for callers in (1, 16):
                report(f"redis-py, {callers} threads", partial(blocking, partial(peer.get, "id"), callers))


if __name__ == "__main__":
    main()
