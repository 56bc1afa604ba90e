"""An application that uses the client as programs do: made at import, and used before the server forks."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from celery import Celery
from django.utils.asyncio import async_unsafe

import flaked

ADDRESSES = [os.environ["FLAKED_ADDRESS"]]
ids = flaked.Client(ADDRESSES, prefetch=1000, max_age=60)
plain = flaked.Client(ADDRESSES)
tasks = flaked.AsyncClient(ADDRESSES, prefetch=1000, max_age=60)
#: The 1,000 that the parent has prefetched must not be those of a child.
with open(os.environ["FLAKED_PARENT"], "a", encoding="ascii") as file:
    file.write("".join(f"{ids.next()}\n" for _ in range(600)) + f"{plain.next()}\n")


@async_unsafe
def of_django() -> None:
    """Refuse to run where Django's database would: in a thread with a running loop."""


def answer() -> dict[str, Any]:
    """Return 61 IDs from within a request, and what is wrong in its thread."""
    wrong: list[str] = []

    def check(what: str, do: Any) -> Any:
        try:
            return do()
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__} {error}")
            return []

    def no_loop() -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise RuntimeError("there is a running loop")

    got = check("prefetched", lambda: [ids.next(timeout=10) for _ in range(50)])
    got += check("not prefetched", lambda: [plain.next(timeout=10) for _ in range(10)])
    check("the thread", no_loop)
    check("Django", of_django)
    with flaked.Client(ADDRESSES, timeout=10) as second:
        got += check("a second client", lambda: [second.next()])
    return {"pid": os.getpid(), "ids": got, "wrong": wrong}


def wsgi(environ: Any, start: Any) -> list[bytes]:
    start("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(answer()).encode()]


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """Answer with asyncio's client, the blocking one in a thread, and the blocking one in the loop's own thread."""
    if scope["type"] != "http":
        return
    loop = asyncio.get_running_loop()
    result = await loop.run_in_executor(None, answer)
    result["ids"] += [await tasks.next(timeout=10) for _ in range(50)] + [ids.next(timeout=10) for _ in range(50)]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(result).encode()})


folder = os.environ.get("FLAKED_QUEUE", ".")
celery = Celery("app", broker="filesystem://", backend=f"file://{folder}/results")
celery.conf.broker_transport_options = {
    "data_folder_in": f"{folder}/queue",
    "data_folder_out": f"{folder}/queue",
    "control_folder": f"{folder}/control",
}
celery.conf.worker_prefetch_multiplier = 1


@celery.task(name="answer")
def work() -> dict[str, Any]:
    return answer()


if __name__ == "__main__" and sys.argv[1:] == ["send"]:
    for pending in [work.delay() for _ in range(60)]:
        print(json.dumps(pending.get(timeout=60)))
