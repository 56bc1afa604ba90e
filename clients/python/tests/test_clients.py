from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import random
import re
import select
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import Fake

import flaked


def plain_fork() -> int:
    """Fork as uWSGI does: Python does not learn of it, and calls no hook.

    A thread that is just ending, or waits for its turn, may hold a lock of Python itself, which nobody would release in
    the child. So the others get their turn first.
    """
    tasks = Path("/proc/self/task")
    time.sleep(0.01)
    while tasks.is_dir() and len(list(tasks.iterdir())) > threading.active_count():
        time.sleep(0.01)
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


class Interrupt(Exception):
    pass


@contextlib.contextmanager
def alarms(handler: Callable[[], object]) -> Iterator[None]:
    """Let the handler interrupt this thread at any place, often."""
    before = signal.signal(signal.SIGALRM, lambda *_: handler())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # some alarms hit a callback of Python
@pytest.mark.parametrize("prefetch", [0, 100])
def test_interrupts_lose_no_other_call(fake: Fake, prefetch: int) -> None:
    def interrupt() -> None:
        raise Interrupt

    got: list[int] = []
    others: list[int] = []
    interrupted = 0
    with flaked.Client([fake.address], timeout=20, prefetch=prefetch) as client, alarms(interrupt):
        threads = [threading.Thread(target=lambda: others.extend(client.next() for _ in range(1000))) for _ in range(2)]
        for thread in threads:
            thread.start()
        ends = time.monotonic() + 2

        def use() -> None:  # with Python 3.13 an interrupt at the end of a loop's body escapes a try around the loop
            while time.monotonic() < ends:
                got.append(client.next())

        while time.monotonic() < ends:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.001))
                try:
                    use()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                interrupted += 1
        for thread in threads:
            thread.join(20)
        got.append(client.next())
        assert client._core._calls == {}
    assert interrupted > 10
    assert len(others) == 2000
    assert len(set(got + others)) == len(got) + 2000


def test_a_signal_handler_may_use_the_client_that_it_interrupts(fake: Fake) -> None:
    got: list[int] = []
    handled: list[int] = []
    with flaked.Client([fake.address], timeout=20) as client, alarms(lambda: handled.append(client.next())):
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.0005))
            got += [client.next() for _ in range(5)]
    assert len(handled) > 10
    assert len(set(got + handled)) == len(got + handled)


def test_a_signal_handler_may_close_the_client_that_it_interrupts(fake: Fake) -> None:
    for _ in range(50):
        client = flaked.Client([fake.address], timeout=20)
        sockets = client._core.sockets
        with alarms(client.close):
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.003))
            with pytest.raises(flaked.ClosedError):
                while True:
                    client.next()
        assert [sock for sock in sockets if sock.fileno() >= 0] == []


def test_a_client_has_neither_a_thread_nor_a_loop(fake: Fake) -> None:
    before = threading.active_count()
    with flaked.Client([fake.address], prefetch=10) as client:
        client.next()
        assert threading.active_count() <= before + 1  # the node's
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()


def test_a_dropped_client_closes_its_connections(fake: Fake) -> None:
    client = flaked.Client([fake.address])
    client.next()
    sockets = list(client._core.sockets)
    del client
    gc.collect()
    assert [sock.fileno() for sock in sockets] == [-1] * 3  # a connection, and the two of the bell


def test_callers_go_on_when_the_time_of_the_one_that_leads_is_up(fake: Fake) -> None:
    fake.hang = True
    with flaked.Client([fake.address], timeout=20, node_timeout=20) as client:
        outcomes: list[object] = []

        def use(timeout: float) -> None:
            try:
                outcomes.append(client.next(timeout=timeout))
            except flaked.UnavailableError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=use, args=(timeout,)) for timeout in (0.2, 0.4, 20, 20)]
        for number, thread in enumerate(threads, 1):
            thread.start()
            while len(fake.asked) < number:
                time.sleep(0.001)
        for thread in threads[:2]:
            thread.join(10)
        assert [type(each) for each in outcomes] == [flaked.UnavailableError] * 2
        fake.peers[0].sendall(b"1001\n1002\n1003\n1004\n")
        for thread in threads[2:]:
            thread.join(10)
        assert sorted(map(str, outcomes[2:])) == ["1003", "1004"]


def test_a_node_without_tls_that_is_asked_with_it_is_an_error_that_says_so() -> None:
    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(4096)
                    peer.sendall(b"-ERR unknown command\n")

    async def ask(address: str) -> None:
        async with flaked.AsyncClient([address], tls=ssl.create_default_context(), timeout=1) as client:
            await client.next()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        said = f"does not use TLS at {address}. Correct the address, or leave out the argument tls="
        client = flaked.Client([address], tls=ssl.create_default_context(), timeout=1)
        with client, pytest.raises(flaked.UnavailableError, match=re.escape(said)):
            client.next()
        with pytest.raises(flaked.UnavailableError, match=re.escape(said)):
            asyncio.run(ask(address))
        listener.shutdown(socket.SHUT_RDWR)


def test_bytes_that_came_while_nobody_called_are_no_reply(fake: Fake) -> None:
    with flaked.Client([fake.address]) as client:
        assert client.next() == 1
        fake.peers[0].sendall(b"77\n")
        readable, _, _ = select.select([sock for sock in client._core.sockets if sock.fileno() >= 0], [], [], 10)
        assert readable
        assert client.next() == 2
        assert len(fake.peers) == 2


def test_a_reply_for_the_stock_may_come_while_nobody_calls(fake: Fake) -> None:
    with flaked.Client([fake.address], prefetch=10, max_age=60, node_timeout=0.05) as client:
        first = client.next()
        time.sleep(0.1)  # longer than the node may be silent
        assert [client.next() for _ in range(10)] == list(range(first + 1, first + 11))
        assert fake.asked[:2] == ["GET", "GET 10"]
        assert len(fake.peers) == 1


def test_it_works_without_poll(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "poll")
    with flaked.Client([fake.address, "127.0.0.1:1"]) as client:
        got: list[int] = []
        threads = [threading.Thread(target=lambda: got.extend(client.next() for _ in range(100))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(set(got)) == 400


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

        def ours() -> list[int]:
            core = client._core
            bell = core._bell.pair if core._bell else ()
            return [sock.fileno() for sock in core.sockets if sock.fileno() >= 0 and sock not in bell]

        while not ours():
            time.sleep(0.001)
        if listens:
            stack.enter_context(server.accept()[0])
        (connection,) = ours()
        assert in_child(lambda: [ours(), is_open(connection)]) == "[[], False]"
        assert ours() == [connection]
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
