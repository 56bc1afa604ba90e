"""Greenlets that share a client, and some that give up all the time: greenlets.py gevent | eventlet [late].

late: the client was made and used before gevent or eventlet has patched anything. With gevent native threads call, too.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time

late = sys.argv[2:] == ["late"]
if late:
    import app
if sys.argv[1] == "gevent":
    import gevent
    from gevent import Timeout, monkey, spawn

    monkey.patch_all()
    native = gevent.get_hub().threadpool.spawn
else:
    import eventlet
    from eventlet import Timeout, spawn

    eventlet.monkey_patch()
    native = spawn

import app  # noqa: E402

got: list[int] = []
wrong: list[str] = []
ends = time.monotonic() + 4


def call(client: app.flaked.Client) -> None:
    began = time.monotonic()
    try:
        got.append(client.next(timeout=10))
    except app.flaked.FlakedError as error:
        wrong.append(str(error))
    if time.monotonic() - began > 2:
        wrong.append(f"a call took {time.monotonic() - began:.1f} s")
    time.sleep(0)


def patient() -> None:
    while time.monotonic() < ends:
        call(app.ids)
        call(app.plain)


def hasty() -> None:
    while time.monotonic() < ends:
        try:
            with Timeout(random.uniform(0.00005, 0.002)):
                while True:
                    call(app.plain)
                    call(app.ids)
        except Timeout:
            pass


def fresh() -> None:
    """Use new clients, whose first calls come together, and look up a name."""
    while time.monotonic() < ends:
        with app.flaked.Client([app.ADDRESSES[0].replace("127.0.0.1", "localhost")]) as client:
            for each in [spawn(call, client) for _ in range(5)]:
                each.get() if sys.argv[1] == "gevent" else each.wait()


tasks = [spawn(what) for what in [patient] * 10 + [hasty] * 5 + [fresh] * 2]
tasks += [native(patient) for _ in range(2)]
for task in tasks:
    task.get() if sys.argv[1] == "gevent" else task.wait()
print(json.dumps({"pid": os.getpid(), "ids": got, "wrong": wrong}))
