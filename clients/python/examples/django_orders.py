"""Django with IDs from flaked instead of BigAutoField: FLAKED_ADDRESSES=127.0.0.1:7609 python django_orders.py."""

from __future__ import annotations

import os

import django
from django.conf import settings
from django.db import connection, models

import flaked

# A project has this in its settings.
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}, USE_TZ=True)
django.setup()

# The client makes its connections when they are needed. A worker that the server forks may use it.
ids = flaked.Client(os.environ.get("FLAKED_ADDRESSES", "127.0.0.1:7609").split(","), prefetch=1000)


def new_id() -> int:
    """Return a new ID. Migrations refer to this function by its name. They refuse ids.next."""
    return ids.next()


class WithId(models.Model):
    """Gives its subclasses an ID from flaked. Django's DEFAULT_AUTO_FIELD cannot: it must count in the database."""

    id = models.BigIntegerField(primary_key=True, default=new_id, editable=False)

    class Meta:
        abstract = True


class Order(WithId):
    item = models.TextField()

    class Meta:
        app_label = "shop"  # only because this file is no app


class Line(WithId):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")

    class Meta:
        app_label = "shop"


def create_tables() -> None:
    """Create the tables. A project has migrations for this."""
    with connection.schema_editor() as editor:
        editor.create_model(Order)
        editor.create_model(Line)


def main() -> None:
    create_tables()
    tea = Order.objects.create(item="tea")
    Line.objects.bulk_create([Line(order=tea), Line(order=tea)])
    print(tea.id, [line.id for line in tea.lines.all()])


if __name__ == "__main__":
    main()
