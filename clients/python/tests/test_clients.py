from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from typing import Any

import pytest
from conftest import Fake

import flaked


def in_child(do: Any) -> str:
    """Return what do returns in a forked process."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(into, repr(do()).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_a_child_process_has_its_own_connection_and_no_prefetched_values(fake: Fake) -> None:
    with flaked.Client([fake.address], prefetch=100, max_age=60) as client:
        sequence = client.sequence("s", prefetch=100)
        mine = [client.next() for _ in range(50)] + [sequence.next() for _ in range(50)]
        connections = len(fake.peers)
        its = eval(in_child(lambda: [client.next() for _ in range(50)] + [sequence.next() for _ in range(50)]))
        mine += [client.next() for _ in range(50)] + [sequence.next() for _ in range(50)]
        assert len(set(mine) | set(its)) == 300
        assert len(fake.peers) == connections + 2


def test_a_child_process_can_use_a_client_that_other_threads_use(fake: Fake) -> None:
    with flaked.Client([fake.address]) as client:
        stop = threading.Event()
        mine: list[int] = []

        def use() -> None:
            while not stop.is_set():
                mine.append(client.next())

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        its = [value for _ in range(10) for value in eval(in_child(lambda: [client.next() for _ in range(5)]))]
        stop.set()
        for thread in threads:
            thread.join()
        assert len(its) == 50
        assert len(set(mine + its)) == len(mine) + 50


def test_interrupts_lose_no_other_call(fake: Fake) -> None:
    class Interrupt(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    got: list[int] = []
    others: list[int] = []
    interrupted = 0
    with flaked.Client([fake.address], timeout=20) as client:
        client.next()
        other = threading.Thread(target=lambda: others.extend(client.next() for _ in range(1000)))
        other.start()
        ends = time.monotonic() + 2
        while time.monotonic() < ends:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0003)
                while time.monotonic() < ends:
                    got.append(client.next())
            except Interrupt:
                interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        other.join(20)
        got.append(client.next())
    assert interrupted > 10
    assert len(others) == 1000
    assert len(set(got + others)) == len(got) + 1000


def test_a_dropped_client_ends_its_thread(fake: Fake) -> None:
    client = flaked.Client([fake.address])
    client.next()
    thread = client._runner._reactor._thread  # type: ignore[union-attr]
    del client
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_close_during_calls_of_many_threads(fake: Fake) -> None:
    fake.hang = True
    client = flaked.Client([fake.address], timeout=20, node_timeout=20)
    errors: list[Exception] = []

    def use() -> None:
        try:
            client.next()
        except flaked.ClosedError as error:
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(200)]
    for thread in threads:
        thread.start()
    while len(fake.asked) < 200:
        time.sleep(0.01)
    client.close()
    for thread in threads:
        thread.join(10)
    assert len(errors) == 200
    client.close()
    with pytest.raises(flaked.ClosedError):
        client.next()


def test_cancelling_in_a_pipeline_disturbs_no_other_task(fake: Fake) -> None:
    async def main() -> None:
        async with flaked.AsyncClient([fake.address], timeout=20) as client:
            values: list[int] = []
            for _ in range(50):
                tasks = [asyncio.create_task(client.next_many(3)) for _ in range(10)]
                await asyncio.sleep(0)
                for task in tasks[::2]:
                    task.cancel()
                for result in await asyncio.gather(*tasks, return_exceptions=True):
                    values += result if isinstance(result, list) else []
            assert len(values) >= 50 * 15
            assert len(set(values)) == len(values)

    asyncio.run(main())


def test_an_asyncio_client_is_bound_to_its_loop_and_survives_its_end(fake: Fake) -> None:
    client = flaked.AsyncClient([fake.address])
    first = asyncio.run(client.next())
    assert asyncio.run(client.next()) > first


def test_wrong_arguments_send_nothing(fake: Fake) -> None:
    with flaked.Client([fake.address]) as client:
        for call in (
            lambda: client.next_many(0),
            lambda: client.next(timeout=0),
            lambda: client.sequence("1"),
            lambda: client.sequence("s").range(1_000_001),
            lambda: client.sequence("s").next(key="1"),
        ):
            with pytest.raises(ValueError):
                call()
    assert fake.asked == []
