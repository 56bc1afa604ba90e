from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import socket
import threading
import time
from typing import Any, Callable

import pytest
from conftest import Fake

import flaked


def plain_fork() -> int:
    """Fork as uWSGI does: Python does not learn of it, and calls no hook."""
    return int(ctypes.PyDLL(None).fork())


def in_child(do: Any, fork: Callable[[], int] = os.fork) -> str:
    """Return what do returns in a forked process."""
    out, into = os.pipe()
    child = fork()
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


@pytest.mark.parametrize("fork", [os.fork, plain_fork])
def test_a_child_process_has_its_own_connection_and_no_prefetched_values(fake: Fake, fork: Callable[[], int]) -> None:
    with flaked.Client([fake.address], prefetch=100, max_age=60) as client:
        sequence = client.sequence("s", prefetch=100)
        mine = [client.next() for _ in range(50)] + [sequence.next() for _ in range(50)]
        connections = len(fake.peers)
        its = eval(in_child(lambda: [client.next() for _ in range(50)] + [sequence.next() for _ in range(50)], fork))
        mine += [client.next() for _ in range(50)] + [sequence.next() for _ in range(50)]
        assert len(set(mine) | set(its)) == 300
        assert len(fake.peers) == connections + 2


@pytest.mark.parametrize("fork", [os.fork, plain_fork])
def test_threads_of_a_child_process_begin_anew_together(fake: Fake, fork: Callable[[], int]) -> None:
    with flaked.Client([fake.address], prefetch=100, max_age=60) as client:

        def many() -> list[int]:
            start = threading.Barrier(8)
            got: list[int] = []

            def use() -> None:
                start.wait()
                got.extend(client.next() for _ in range(20))

            threads = [threading.Thread(target=use) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return got

        mine = many()
        connections = len(fake.peers)
        its: list[int] = eval(in_child(many, fork))
        assert len(set(mine + its)) == 320
        assert len(fake.peers) == connections + 1


@pytest.mark.parametrize("fork", [os.fork, plain_fork])
def test_a_child_process_can_close_the_client(fake: Fake, fork: Callable[[], int]) -> None:
    with flaked.Client([fake.address], node_timeout=60) as client:
        first = client.next()
        assert in_child(client.close, fork) == "None"
        assert client.next() > first
        assert len(fake.peers) == 1


@pytest.mark.parametrize("fork", [os.fork, plain_fork])
def test_a_child_process_uses_an_asyncio_client_of_its_parent(fake: Fake, fork: Callable[[], int]) -> None:
    client = flaked.AsyncClient([fake.address], prefetch=100, max_age=60)

    async def some() -> list[int]:
        return [await client.next() for _ in range(50)]

    got: list[int] = asyncio.run(some()) + eval(in_child(lambda: asyncio.run(some()), fork)) + asyncio.run(some())
    assert len(set(got)) == 150
    asyncio.run(client.close())


def test_values_of_a_client_rise(fake: Fake) -> None:
    with flaked.Client([fake.address], prefetch=10) as client:
        got = [client.next() for _ in range(2000)]
        assert got == sorted(got)


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


def test_an_interrupt_while_the_thread_starts_leaves_no_thread(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    with flaked.Client([fake.address]) as client:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupted)
            with pytest.raises(KeyboardInterrupt):
                client.next()
        client.next()
        started[0].join(10)
        assert not started[0].is_alive()


def test_a_dropped_client_ends_its_thread(fake: Fake) -> None:
    client = flaked.Client([fake.address])
    client.next()
    thread = client._core.thread
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
    sockets = list(client._core.sockets)
    assert asyncio.run(client.next()) > first
    assert [sock.fileno() for sock in sockets] == [-1]
    sockets = list(client._core.sockets)
    asyncio.run(client.close())
    assert [sock.fileno() for sock in sockets] == [-1] * len(sockets)


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


@pytest.mark.parametrize("listens", [False, True])
def test_a_child_that_is_forked_while_the_client_connects_keeps_no_socket(listens: bool) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = server.getsockname()
        if not listens:  # a full backlog: further connections stay in SYN_SENT
            for _ in range(4):
                filler = stack.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(address)
        client = stack.enter_context(flaked.Client([f"127.0.0.1:{address[1]}"], timeout=20, node_timeout=20))
        caller = threading.Thread(target=_ignore_closed, args=(client,))
        caller.start()

        def sockets() -> int:
            return len([sock for sock in client._core.sockets if sock.fileno() >= 0])

        while not client._core.loop or not sockets():
            time.sleep(0.001)
        if listens:
            stack.enter_context(server.accept()[0])
        (ours,) = [sock.fileno() for sock in client._core.sockets]
        assert in_child(lambda: [sockets(), is_open(ours)]) == "[0, False]"
        assert sockets() == 1
        client.close()
        caller.join(10)


def _ignore_closed(client: flaked.Client) -> None:
    with contextlib.suppress(flaked.ClosedError):
        client.next()


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
