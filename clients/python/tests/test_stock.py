from __future__ import annotations

import pytest
from test_engine import World

from flaked import _protocol as protocol
from flaked import _stock
from flaked._engine import Call
from flaked._stock import Stock


class Clocks:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.monotonic, self.wall = 100.0, 1.8e9
        patch.setattr(_stock, "monotonic", lambda: self.monotonic)
        patch.setattr(_stock, "time", lambda: self.wall)

    def move(self, monotonic: float, wall: float) -> None:
        self.monotonic += monotonic
        self.wall += wall


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def ask(stock: Stock, world: World) -> Call:
    call = Call(protocol.values(""), world.time + 5, lambda _: None)
    stock.submit(call, world.engine)
    world.work()
    return call


@pytest.mark.parametrize(
    ("monotonic", "wall", "taken"),
    [
        (0.5, 0.5, 2),
        (2.5, 2.5, None),  # too old
        (0.5, 2.4, 2),
        (0.5, 2.6, None),  # resumed: the boot clock stood
        (0.5, -2.0, None),
        (0.0, 3600.0, None),
    ],
)
def test_a_value_is_too_old_by_either_clock(clocks: Clocks, monotonic: float, wall: float, taken: int | None) -> None:
    world, stock = World("a"), Stock("", 4, 2.0)
    ask(stock, world)
    world.answer(world.links[0], b"1\n2\n3\n4\n5\n")
    clocks.move(monotonic, wall)
    assert stock.take() == taken


def test_values_that_were_on_their_way_come_before_those_of_later_calls(clocks: Clocks) -> None:
    world, stock = World("a"), Stock("", 4, 2.0)
    calls = [ask(stock, world) for _ in range(3)]
    assert world.sent[world.links[0]] == b"GET\nGET 4\nGET\nGET\n"
    world.answer(world.links[0], b"1\n2\n3\n4\n5\n6\n7\n")
    assert [call.values for call in calls] == [[1], [2], [3]]
    assert [stock.take() for _ in range(5)] == [4, 5, 6, 7, None]


def test_a_later_call_may_have_a_lower_value_of_another_node(clocks: Clocks) -> None:
    world, stock = World("a"), Stock("", 2, 2.0)
    calls = [ask(stock, world) for _ in range(2)]
    world.answer(world.links[0], b"11\n12\n13\n5\n")
    assert [call.values for call in calls] == [[11], [5]]
    assert [stock.take() for _ in range(3)] == [12, 13, None]


def test_a_stock_is_filled_after_a_request_that_failed(clocks: Clocks) -> None:
    world, stock = World("a"), Stock("", 4, 2.0)
    ask(stock, world)
    assert stock.lacks() == 0
    world.answer(world.links[0], b"1\n-NOTREADY\n")
    assert stock.take() is None
    assert stock.lacks() == 4
