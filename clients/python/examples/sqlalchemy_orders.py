"""Rows of SQLAlchemy 2 get their IDs from flaked before the insert.

python sqlalchemy_orders.py 127.0.0.1:7609
"""

from __future__ import annotations

import sys

from sqlalchemy import BigInteger, String, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from flaked import Client

# The constructor does no I/O, so a module may make the client.
ids = Client(sys.argv[1:] or ["127.0.0.1:7609"], prefetch=1000)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, default=ids.next)
    item: Mapped[str] = mapped_column(String(50))
    # The database makes this value, so inserts have RETURNING, and many rows go into one statement.
    made: Mapped[str] = mapped_column(server_default=func.current_timestamp())

    __mapper_args__ = {"eager_defaults": True}


def main() -> None:
    engine = create_engine("sqlite://", echo="debug" in sys.argv)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Order(item=f"item {n}") for n in range(1000)])
        session.commit()
        for order in session.scalars(select(Order).limit(3)):
            print(str(order.id), order.item, order.made)  # str(id) for JSON


if __name__ == "__main__":
    main()
