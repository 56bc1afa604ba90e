"""Runs cells of a notebook in a kernel, whose thread has a running loop, and prints what they say."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient

CELLS = [
    "import asyncio, json, os, app\nasyncio.get_running_loop()",
    "got = [app.ids.next() for _ in range(1200)] + [app.plain.next() for _ in range(300)]",
    "got += [await app.tasks.next() for _ in range(1200)]",
    "async def both(): return [await app.tasks.next(), app.ids.next(), app.plain.next()]\n"
    "for each in await asyncio.gather(*(both() for _ in range(100))): got += each",
    "print(json.dumps({'pid': os.getpid(), 'ids': got, 'wrong': []}))",
]

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
print("".join(output["text"] for output in notebook.cells[-1].outputs), end="")
