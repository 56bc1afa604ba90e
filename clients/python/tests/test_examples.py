"""The examples, and the code of the README, with a real node."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Node, real_node
from conftest import Fake
from django.db import connection
from django.db.migrations.writer import MigrationWriter
from django.test.utils import CaptureQueriesContext
from sqlalchemy import create_engine, event, func, insert, select
from sqlalchemy.orm import Session

import flaked

PYTHON = Path(__file__).resolve().parent.parent
ROWS = 1000


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with real_node() as started:
        yield started


def imported(example: str, node: Node) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAKED_ADDRESSES", node.address)
        patch.setattr(sys, "path", [str(PYTHON / "examples"), *sys.path])
        return importlib.import_module(example)


@pytest.fixture(scope="module")
def sqlalchemy_orders(node: Node) -> Any:
    return imported("sqlalchemy_orders", node)


def test_the_program_for_sqlalchemy_runs(sqlalchemy_orders: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sqlalchemy_orders.main()
    numbers = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert len(set(numbers)) == 2
    assert min(numbers) > 0


@pytest.mark.parametrize("way", ["add_all", "insert"])
def test_a_bulk_insert_needs_few_statements_and_round_trips(sqlalchemy_orders: Any, node: Node, way: str) -> None:
    order = sqlalchemy_orders.Order
    engine = create_engine("sqlite://")
    sqlalchemy_orders.Base.metadata.create_all(engine)
    statements: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def seen(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    before = node.requests()
    with Session(engine) as session:
        if way == "add_all":
            inserted = [order(item=str(n)) for n in range(ROWS)]
            session.add_all(inserted)
            session.flush()
        else:
            rows = [{"item": str(n)} for n in range(ROWS)]
            returning = insert(order).returning(order, sort_by_parameter_order=True)
            inserted = list(session.scalars(returning, rows))
        asked = node.requests() - before
        numbers = [o.id for o in inserted]
        assert [o.item for o in inserted] == [str(n) for n in range(ROWS)]
        assert all(statement.startswith("INSERT") for statement in statements)
        assert "RETURNING" in statements[0]
        assert len(statements) <= 3, "insertmanyvalues does not work"
        assert 1 <= asked <= 10
        assert len(set(numbers)) == ROWS
        assert session.scalar(select(func.count()).select_from(order)) == ROWS
        assert set(session.scalars(select(order.id))) == set(numbers)


@pytest.fixture(scope="module")
def django_orders(node: Node) -> Any:
    module = imported("django_orders", node)
    module.create_tables()
    return module


def test_django_inserts(django_orders: Any) -> None:
    with CaptureQueriesContext(connection) as queries:
        tea = django_orders.Order.objects.create(item="tea")
    assert [query["sql"].split()[0] for query in queries] == ["INSERT"]  # no UPDATE first
    coffee = django_orders.Order(item="coffee")
    coffee.save()
    line = tea.lines.create()
    assert tea.id > 0
    assert len({tea.id, coffee.id, line.id}) == 3
    assert django_orders.Order.objects.get(pk=tea.id).item == "tea"
    assert django_orders.Line.objects.get(pk=line.id).order == tea
    tea.item = "green tea"
    tea.save()
    assert django_orders.Order.objects.get(pk=tea.id).item == "green tea"


def test_bulk_create_needs_few_round_trips(django_orders: Any, node: Node) -> None:
    before = node.requests()
    made = django_orders.Order.objects.bulk_create([django_orders.Order(item=str(n)) for n in range(500)])
    assert node.requests() - before <= 10
    numbers = [order.id for order in made]
    assert len(set(numbers)) == 500
    assert django_orders.Order.objects.filter(pk__in=numbers[:100]).count() == 100


def test_a_migration_refers_to_the_default_by_name(django_orders: Any) -> None:
    field = django_orders.Order._meta.pk
    assert "default=django_orders.new_id" in MigrationWriter.serialize(field)[0]


MODELS = """
from django.db import models
import flaked

client = flaked.Client([{address!r}])
order = client.sequence("order")

def new_id():
    return client.next()

class Order(models.Model):
    id = models.BigIntegerField(primary_key=True, default={default}, editable=False)
    item = models.TextField(default="tea")
"""
ROWS_IN_A_MIGRATION = """
from django.db import migrations

def insert(apps, editor):
    apps.get_model("shop", "Order").objects.create()

class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [migrations.RunPython(insert)]
"""


def manage(project: Path, *command: str) -> str:
    """Run a command of Django in a project. Return what it says, and how it ended."""
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(project / "db")}
    settings = f"DATABASES={{'default': {database}}}, INSTALLED_APPS=['shop']"
    program = "from django.conf import settings; from django.core.management import execute_from_command_line as run"
    program += f"; settings.configure({settings}); run(['manage.py', *{command}])"
    environment = {**os.environ, "PYTHONPATH": str(PYTHON / "src")}
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=project, env=environment, text=True, capture_output=True
    )
    return f"{ended.stdout}{ended.stderr}exit={ended.returncode}"


def project(directory: Path, address: str, default: str) -> Path:
    (directory / "shop").mkdir()
    (directory / "shop" / "__init__.py").touch()
    (directory / "shop" / "models.py").write_text(MODELS.format(address=address, default=default))
    return directory


def test_a_function_of_a_module_is_a_default_in_migrations(fake: Fake, tmp_path: Path) -> None:
    made = project(tmp_path, fake.address, "new_id")
    assert "exit=0" in manage(made, "makemigrations", "shop")
    (made / "shop" / "migrations" / "0002_rows.py").write_text(ROWS_IN_A_MIGRATION)
    assert "exit=0" in manage(made, "migrate")
    assert fake.asked == ["GET"]
    assert "exit=0" in manage(made, "makemigrations", "--check")


@pytest.mark.parametrize("default", ["client.next", "order.next"])
def test_makemigrations_refuses_the_method_of_a_client(fake: Fake, tmp_path: Path, default: str) -> None:
    said = manage(project(tmp_path, fake.address, default), "makemigrations", "shop")
    assert "ValueError: a migration cannot refer to a method of a client." in said
    assert "def new_id(): return client.next(), and use default=new_id" in said
    assert not list((tmp_path / "shop").glob("migrations/0*"))


def test_the_readme(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PYTHON / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 300
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for example in re.findall(r"\((examples/[^)]*)\)", text):
        assert (PYTHON / example).is_file()
    code = "\n".join(blocks)
    assert "127.0.0.1:7609" in code
    exec(compile(code.replace("127.0.0.1:7609", node.address), "README.md", "exec"), {})
    first, many, values = capsys.readouterr().out.splitlines()
    page = (PYTHON / "../../docs/clients.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(client = .*?)```", page, re.DOTALL)
    got: dict[str, Any] = {"flaked": flaked}
    exec(compile(code.replace("127.0.0.1:7609", node.address), "clients.md", "exec"), got)
    assert got["id"] > int(first)
    got["client"].close()
    assert first.isdigit()
    assert many.count(",") == 99
    assert re.fullmatch(r"\d+ \[\d+, \d+, \d+\] range\(\d+, \d+\)", values)
