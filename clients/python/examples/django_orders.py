"""Rows of Django get their IDs from flaked, instead of a BigAutoField.

python django_orders.py 127.0.0.1:7609
"""

from __future__ import annotations

import sys
from typing import Any

import django
from django.conf import settings
from django.db import connection, models

from flaked import Client

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

# The constructor does no I/O, and a worker that is forked later gets connections of its own.
ids = Client(sys.argv[1:] or ["127.0.0.1:7609"], prefetch=1000)


class FlakedField(models.BigIntegerField):  # type: ignore[type-arg]
    """A primary key whose values come from flaked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(primary_key=True, editable=False, default=ids.next)
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        """Leave what __init__ adds out of migrations: they cannot contain a method of an object."""
        name, path, args, kwargs = super().deconstruct()
        for argument in ("primary_key", "editable", "default"):
            kwargs.pop(argument, None)
        return name, path, args, kwargs


class Order(models.Model):
    id = FlakedField()
    item = models.CharField(max_length=50)

    class Meta:
        app_label = "shop"


def main() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Order)
    Order.objects.create(item="item 0")
    Order.objects.bulk_create([Order(item=f"item {n}") for n in range(1, 1000)])
    for order in Order.objects.order_by("id")[:3]:
        print(str(order.id), order.item)  # str(id) for JSON


if __name__ == "__main__":
    main()
