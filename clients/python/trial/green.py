"""An eventlet server of three processes: green.py PORT. Gunicorn has no worker for eventlet any more."""

from __future__ import annotations

import os
import sys

import eventlet

eventlet.monkey_patch()

from eventlet import hubs, wsgi  # noqa: E402

listener = eventlet.listen(("127.0.0.1", int(sys.argv[1])))
if sys.argv[2:] == ["preloaded"]:
    import app
for _ in range(2):
    if os.fork() == 0:
        hubs.use_hub()
        break
import app  # noqa: E402

wsgi.server(listener, app.wsgi, log_output=False)
