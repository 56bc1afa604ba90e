from __future__ import annotations

import time
from typing import Optional

import flaked
from flaked import _protocol as protocol
from flaked._engine import Call, Engine, Link
from flaked._options import Options, parse_address


class World:
    """A driver whose time stands still."""

    def __init__(self, *addresses: str, token: Optional[str] = None, node_timeout: float = 1.0) -> None:
        self.time = 100.0
        self.links: list[Link] = []
        self.sent: dict[Link, bytes] = {}
        options = Options(tuple(map(parse_address, addresses)), token, None, 5.0, node_timeout)
        self.engine = Engine(options, self.connect)
        self.engine.now = lambda: self.time

    def connect(self, link: Link) -> None:
        self.links.append(link)
        self.sent[link] = b""

        def write(data: bytes) -> None:
            self.sent[link] += data

        link.write, link.close = write, lambda: None

    def work(self) -> None:
        for link in self.links:
            if not link.open and not link.closed:
                self.engine.opened(link)
        if self.engine.next_tick <= self.time:
            self.engine.tick()
        self.engine.flush()

    def ask(self, request: protocol.Request = protocol.values(""), limit: float = 5.0) -> Call:  # noqa: B008
        call = Call(request, self.time + limit, lambda _: None)
        self.engine.submit(call)
        self.work()
        return call

    def answer(self, link: Link, data: bytes) -> None:
        self.engine.received(link, data)
        self.work()

    def later(self, seconds: float) -> None:
        self.time += seconds
        self.work()


def test_replies_come_in_order_in_any_pieces() -> None:
    world = World("a")
    calls = [world.ask(), world.ask(protocol.values("", 2)), world.ask()]
    assert world.sent[world.links[0]] == b"GET\nGET 2\nGET\n"
    for byte in b"1\n2\n3\n4\n":
        world.answer(world.links[0], bytes([byte]))
    assert [call.values for call in calls] == [[1], [2, 3], [4]]


def test_token_goes_out_in_the_same_write() -> None:
    world = World("a", token="t")
    call = world.ask()
    assert world.sent[world.links[0]] == b"AUTH t\nGET\n"
    world.answer(world.links[0], b"OK\n7\n")
    assert call.values == [7]


def test_calls_of_a_node_that_fails_go_to_the_next() -> None:
    world = World("a", "b")
    calls = [world.ask(), world.ask()]
    world.answer(world.links[0], b"x\n")
    assert world.sent[world.links[1]] == b"GET\nGET\n"
    world.answer(world.links[1], b"8\n9\n")
    assert [call.values for call in calls] == [[8], [9]]


def test_a_failed_node_is_probed_before_it_gets_calls() -> None:
    world = World("a", "b")
    world.ask()
    world.answer(world.links[0], b"-NOTREADY\n")
    world.later(0.04)
    world.ask()
    probe = world.links[2]
    assert (probe.node, world.sent[probe]) == (world.engine.nodes[0], b"READY\n")
    world.answer(probe, b"OK\n")
    world.ask()
    assert world.sent[world.links[0]] == b"GET\nGET\n"


def test_a_silent_node_has_half_of_the_time_and_is_slow() -> None:
    world = World("a", "b", node_timeout=10.0)
    call = world.ask(limit=2.0)
    world.later(0.9)
    assert len(world.links) == 1
    world.later(0.2)
    assert world.links[1].node is world.engine.nodes[1]
    assert world.engine.nodes[0].slow
    world.answer(world.links[1], b"7\n")
    assert call.values == [7]


def test_the_time_for_a_reply_begins_when_the_connection_is_there() -> None:
    world = World("a", "b")
    call = Call(protocol.values(""), world.time + 5, lambda _: None)
    world.engine.submit(call)
    world.time += 0.9
    world.work()
    world.later(0.9)
    world.answer(world.links[0], b"7\n")
    assert call.values == [7]


def test_a_sequence_that_all_nodes_refuse_is_asked_again() -> None:
    world = World("a")
    call = world.ask(protocol.values("s"))
    world.answer(world.links[0], b"-NOTREADY reason=no-block retry_after_ms=100 x\n")
    world.later(0.05)
    assert world.sent[world.links[0]] == b"NEXT s\n"
    world.later(0.06)
    assert world.sent[world.links[0]] == b"NEXT s\nNEXT s\n"
    world.answer(world.links[0], b"-NOTREADY reason=frozen x\n")
    assert isinstance(call.error, flaked.RefusedError)
    assert world.engine.nodes[0].failures == 0


def test_the_reply_of_a_cancelled_call_is_thrown_away() -> None:
    world = World("a")
    first, second = world.ask(), world.ask()
    first.done = True
    world.answer(world.links[0], b"1\n2\n")
    assert (first.values, second.values) == ([], [2])


def test_close_fails_all_calls() -> None:
    world = World("a")
    call = world.ask()
    world.engine.close()
    assert isinstance(call.error, flaked.ClosedError)


def test_bytes_without_a_request_are_no_beginning_of_a_reply() -> None:
    world = World("a")
    world.ask()
    world.answer(world.links[0], b"1\n77")
    call = world.ask()
    assert len(world.links) == 2
    world.answer(world.links[1], b"2\n")
    assert call.values == [2]


def test_a_node_is_silent_until_a_reply_is_complete() -> None:
    world = World("a", "b")
    calls = [world.ask(limit=9.0) for _ in range(4)]
    for line in (b"1\n", b"2\n", b"3\n"):
        world.later(0.9)
        world.answer(world.links[0], line)
    assert [call.values for call in calls] == [[1], [2], [3], []]
    world.later(0.9)
    world.answer(world.links[0], b"4")
    assert len(world.links) == 1
    world.later(0.2)
    assert len(world.links) == 2


def test_many_requests_in_one_write_take_little_time() -> None:
    world = World("a")
    request = protocol.values("x" * 128, key="k" * 64)
    began = time.process_time()
    for _ in range(20_000):
        world.engine.submit(Call(request, 105.0, lambda _: None))
    assert time.process_time() - began < 1.5  # it was 10 s while each request copied those before it
    world.work()
    assert len(world.sent[world.links[0]]) == 20_000 * len(request.line)
