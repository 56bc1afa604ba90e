from __future__ import annotations

from typing import Any

import pytest

import flaked
from flaked import _protocol as protocol
from flaked._call import Call, Link
from flaked._config import Config, parse_addresses
from flaked._engine import Engine
from flaked._stock import Stock


class World:
    """A driver whose time stands still."""

    def __init__(self, *addresses: str, **options: Any) -> None:
        settings: dict[str, Any] = {"token": None, "tls": None, "timeout": 5.0, "node_timeout": 1.0}
        settings.update({"prefetch": 0, "max_age": 1.0}, **options)
        self.time = 100.0
        self.links: list[Link] = []
        self.sent: dict[Link, bytes] = {}
        self.engine = Engine(Config(parse_addresses(addresses), **settings), self, lambda: self.time)

    def connect(self, link: Link) -> None:
        self.links.append(link)
        self.sent[link] = b""

    def write(self, link: Link, data: bytes) -> None:
        self.sent[link] += data

    def disconnect(self, link: Link) -> None:
        pass

    def ask(self, request: protocol.Request = protocol.ONE_ID, limit: float = 5.0) -> Call:
        call = Call(request, self.time + limit, lambda _: None)
        self.engine.submit(call)
        for link in self.links:
            if not link.open:
                self.engine.opened(link)
        self.engine.flush()
        return call

    def answer(self, link: Link, data: bytes) -> None:
        self.engine.received(link, data)
        for other in self.links:
            if not other.open:
                self.engine.opened(other)
        self.engine.flush()

    def later(self, seconds: float) -> None:
        self.time += seconds
        self.engine.tick()
        self.engine.flush()


def test_replies_come_in_order_in_any_pieces() -> None:
    world = World("a")
    calls = [world.ask(), world.ask(protocol.ids(2)), world.ask()]
    assert world.sent[world.links[0]] == b"GET\nGET 2\nGET\n"
    for byte in b"1\n2\r\n3\n4\n":
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
    world.later(1.0)
    assert isinstance(call.error, flaked.UnavailableError)


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
    assert world.engine.unhealthy == 0


def test_the_reply_of_a_cancelled_call_is_thrown_away() -> None:
    world = World("a")
    first, second = world.ask(), world.ask()
    first.done = True
    world.answer(world.links[0], b"1\n2\n")
    assert (first.values, second.values) == ([], [2])


def test_a_stock_asks_once_and_forgets_old_values(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("a")
    stock = Stock(4, 1.0, protocol.ids)
    monkeypatch.setattr("flaked._stock.monotonic", lambda: world.time)
    world.engine.refill(stock)
    world.engine.refill(stock)
    world.engine.opened(world.links[0])
    world.engine.flush()
    assert world.sent[world.links[0]] == b"GET 4\n"
    world.time += 0.5
    world.answer(world.links[0], b"1\n2\n3\n4\n")
    assert (stock.take(), stock.lacks(), stock.take(), stock.lacks()) == (1, 0, 2, 2)
    world.time += 0.6
    assert stock.take() is None


def test_close_fails_all_calls() -> None:
    world = World("a")
    call = world.ask()
    world.engine.close()
    assert isinstance(call.error, flaked.ClosedError)
