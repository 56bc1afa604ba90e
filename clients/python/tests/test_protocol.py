from __future__ import annotations

import pickle

import pytest

import flaked
from flaked import _protocol as protocol
from flaked._options import parse_address
from flaked._protocol import unavailable

ADDRESSES = [
    ("127.0.0.1", "127.0.0.1", 7609),
    ("ids.example.com:80", "ids.example.com", 80),
    ("::1", "::1", 7609),
    ("[::1]", "::1", 7609),
    ("[::1]:80", "::1", 80),
]


@pytest.mark.parametrize(("text", "host", "port"), ADDRESSES)
def test_addresses(text: str, host: str, port: int) -> None:
    assert parse_address(text)[1:3] == (host, port)


BAD_ADDRESSES = [
    "",
    "7609",
    "http://a",
    "unix:a",
    "/a",
    "a:0",
    "a:65536",
    "a:x",
    "[::1",
    "[::1]x",
    "[::1]80",
    "::1:7609:x",
    ":1",
]


@pytest.mark.parametrize("text", BAD_ADDRESSES)
def test_wrong_addresses(text: str) -> None:
    with pytest.raises(ValueError):
        flaked.Client([text])


@pytest.mark.parametrize("line", [b"", b"0", b"01", b"+1", b"-1", b"1 ", b"1_0", b"9223372036854775808", b"1" * 20])
def test_lines_that_are_no_id(line: bytes) -> None:
    with pytest.raises(ValueError):
        protocol.values("").numbers(line)


def test_lines_of_numbers() -> None:
    assert protocol.values("").numbers(b"9223372036854775807") == [2**63 - 1]
    assert protocol.values("s").numbers(b"0") == [0]
    assert protocol.span("s", 3).result([10, 30]) == range(10, 31, 10)
    assert list(protocol.span("s", 1).result([7, 7])) == [7]
    assert protocol.span("s", 3).numbers(b"0 2") == [0, 2]
    for line in (b"1", b"1 2 3", b"3 1", b"1 4", b"2 2"):
        with pytest.raises(ValueError):
            protocol.span("s", 3).numbers(line)


@pytest.mark.parametrize("name", ["", "12", "a b", "é", "-a", "a" * 129, "a\n"])
def test_wrong_names_and_keys(name: str) -> None:
    with pytest.raises(ValueError):
        protocol.check_name(name)
    with pytest.raises(ValueError):
        protocol.values("s", key=name)


@pytest.mark.parametrize("n", [0, -1, 10_001])
def test_wrong_counts(n: int) -> None:
    with pytest.raises(ValueError):
        protocol.values("", n)


def test_errors_say_what_the_node_said_and_can_be_pickled() -> None:
    refused = protocol.refusal("a:1", b"-NOTREADY reason=ceiling retry_after_ms=250 too fast")
    assert refused
    assert (refused.code, refused.reason, refused.retry_after) == ("NOTREADY", "ceiling", 0.25)
    for error in (refused, unavailable(refused), flaked.ClosedError()):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert vars(copy) == vars(error)


def test_a_number_is_no_answer_to_ready_and_a_long_line_is_no_refusal() -> None:
    with pytest.raises(ValueError):
        protocol.READY.numbers(b"5")
    assert protocol.refusal("a", b"-ERR " + b"x" * 4091)
    assert not protocol.refusal("a", b"-ERR " + b"x" * 4092)
