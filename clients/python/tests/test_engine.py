from __future__ import annotations

import re
import time
from typing import Optional

import pytest

import flaked
from flaked import _protocol as protocol
from flaked._engine import Call, Engine, Link
from flaked._options import Options, parse_address

WHO = b"worker=0 term=1 node=n name=a state=serving cluster=prod cluster_uuid=u1\n"
OTHER = b"worker=0 cluster=test cluster_uuid=u2\n"


class World:
    """A driver whose time stands still. All nodes say at once that they are of one cluster, unless who is empty."""

    def __init__(
        self,
        *addresses: str,
        token: Optional[str] = None,
        node_timeout: float = 1.0,
        who: bytes = WHO,
        cluster: str = "",
    ) -> None:
        self.who = who
        self.time = 100.0
        self.links: list[Link] = []
        self.sent: dict[Link, bytes] = {}
        options = Options(tuple(map(parse_address, addresses)), token, None, 5.0, node_timeout, cluster)
        self.engine = Engine(options, self.connect)
        self.engine.now = lambda: self.time

    def connect(self, link: Link) -> None:
        self.sent[link] = b""
        if link.kind != "compare" or not self.who:
            self.links.append(link)

        def write(data: bytes) -> None:
            self.sent[link] += re.sub(b"WORKER.*\n", b"", data) if self.who else data

        link.write, link.close = write, lambda: None

    def work(self) -> None:
        for link in list(self.sent):
            if not link.open and not link.closed:
                self.engine.opened(link)
            if link not in self.links and not link.closed:
                self.engine.received(link, self.who)
        if self.engine.next_tick <= self.time:
            self.engine.tick()
        self.engine.flush()

    def ask(self, request: protocol.Request = protocol.values(""), limit: float = 5.0) -> Call:  # noqa: B008
        call = Call(request, self.time + limit, lambda _: None)
        self.engine.submit(call)
        self.work()
        return call

    def answer(self, link: Link, data: bytes) -> None:
        if self.who and link.greeting:
            greeting, data = (b"OK\n", data[3:]) if link.greeting == 2 else (b"", data)
            self.engine.received(link, greeting + self.who)
        self.engine.received(link, data)
        self.work()

    def later(self, seconds: float) -> None:
        self.time += seconds
        self.work()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"-NOAUTH a token", "a answered -NOAUTH a token. Give the client the argument token="),
        (b"-WRONGPASS wrong", "a answered -WRONGPASS wrong. Correct the client's argument token="),
    ],
)
def test_a_refusal_because_of_the_token_names_the_argument(reply: bytes, said: str) -> None:
    world = World("a", who=b"")
    call = world.ask()
    world.answer(world.links[0], reply + b"\n")
    assert isinstance(call.error, flaked.UnavailableError)
    assert str(call.error).endswith(said)
    assert call.error.text == reply.decode().partition(" ")[2]


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


def test_each_connection_begins_with_the_question_which_cluster_answers() -> None:
    world = World("a", who=b"")
    calls = [world.ask(), world.ask(protocol.values("s"))]
    assert [world.sent[link] for link in world.links] == [b"WORKER\nGET\n", b"WORKER\nNEXT s\n"]
    world.answer(world.links[0], WHO + b"1\n")
    world.answer(world.links[1], WHO + b"2\n")
    world.engine.lost(world.links[0], flaked.FlakedError("closed"))
    calls.append(world.ask())
    assert world.sent[world.links[2]] == b"WORKER u1\nGET\n"
    world.answer(world.links[2], WHO + b"3\n")
    assert [call.values for call in calls] == [[1], [2], [3]]


REFUSED = b"-WRONGNODE reason=other-cluster cluster=test cluster_uuid=u2 this node does not belong to cluster u1\n"


@pytest.mark.parametrize("reply", [OTHER + b"7\n", REFUSED])
def test_an_address_that_went_to_another_cluster_has_failed(reply: bytes) -> None:
    world = World("a", who=b"")
    world.ask()
    world.answer(world.links[0], WHO + b"1\n")
    world.engine.lost(world.links[0], flaked.FlakedError("closed"))
    call = world.ask()
    world.answer(world.links[1], reply)
    assert call.values == []
    assert isinstance(call.error, flaked.UnavailableError)
    assert (call.error.code, call.error.reason) == ("WRONGNODE", "other-cluster")
    assert "a belongs to cluster test (u2), not to prod (u1)" in str(call.error)
    assert world.engine.identity.error is None


@pytest.mark.parametrize("cluster", ["prod", "u1"])
def test_a_client_with_a_cluster_asks_the_nodes_of_that(cluster: str) -> None:
    world = World("a", "b", who=b"", cluster=cluster)
    call = world.ask()
    assert world.sent[world.links[0]] == f"WORKER {cluster}\nGET\n".encode()
    world.answer(world.links[0], REFUSED)
    assert "a belongs to cluster test (u2), not to " + cluster in str(world.engine.nodes[0].last)
    world.answer(world.links[1], WHO + b"5\n")
    assert call.values == [5]
    assert len(world.links) == 2


def test_addresses_of_two_clusters_are_refused() -> None:
    world = World("a", "b", "c", who=b"")
    calls = [world.ask(), world.ask()]
    world.answer(world.links[0], WHO + b"1\n")
    assert [world.sent[link] for link in world.links[1:]] == [b"WORKER u1\n", b"WORKER u1\n"]
    world.answer(world.links[1], WHO)
    assert not calls[0].done
    world.answer(world.links[2], REFUSED)
    world.answer(world.links[0], b"2\n")
    for call in [*calls, world.ask()]:
        assert isinstance(call.error, flaked.RefusedError)
        assert "two clusters: a to prod (u1) and c to test (u2)" in str(call.error)


def test_the_first_call_waits_a_moment_for_nodes_that_do_not_say_their_cluster() -> None:
    world = World("a", "b", "c", who=b"")
    call = world.ask()
    world.answer(world.links[0], WHO + b"1\n")
    world.engine.lost(world.links[1], flaked.FlakedError("refused"))
    world.later(0.49)
    assert not call.done
    world.later(0.02)
    assert call.values == [1]
    assert [node.failures for node in world.engine.nodes] == [0, 0, 0]
    world.answer(world.links[2], OTHER)  # late, but before it was asked for anything
    assert isinstance(world.ask().error, flaked.RefusedError)


def test_the_wait_for_the_clusters_of_other_nodes_fails_no_call() -> None:
    world = World("a", "b", who=b"")
    call = world.ask(limit=0.2)
    world.answer(world.links[0], WHO + b"1\n")
    world.later(0.11)
    assert call.values == [1]


def test_a_node_that_has_not_joined_its_cluster_is_not_ready() -> None:
    world = World("a", "b", who=b"")
    call = world.ask()
    world.answer(world.links[0], b"worker=none cluster=prod cluster_uuid=none\n")
    world.answer(world.links[1], WHO + b"3\n")
    assert call.values == [3]
    assert [node.failures for node in world.engine.nodes] == [1, 0]


@pytest.mark.parametrize("reply", [b"PONG\n", b"-ERR unknown command\n", b"worker=0\n"])
def test_a_server_that_does_not_say_its_cluster_has_failed(reply: bytes) -> None:
    world = World("a", "b", who=b"")
    call = world.ask()
    world.answer(world.links[0], reply)
    world.answer(world.links[1], WHO + b"3\n")
    world.later(0.2)
    assert call.values == [3]
    assert world.engine.nodes[0].failures == 1
