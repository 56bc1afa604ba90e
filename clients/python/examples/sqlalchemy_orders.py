"""SQLAlchemy 2 with IDs from flaked: FLAKED_ADDRESSES=127.0.0.1:7609 python sqlalchemy_orders.py."""

from __future__ import annotations

import os
from datetime import datetime

from sqlalchemy import BigInteger, create_engine, func
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import flaked

# The client makes its connections when they are needed. With prefetch, a bulk insert needs few round trips.
ids = flaked.Client(os.environ.get("FLAKED_ADDRESSES", "127.0.0.1:7609").split(","), prefetch=1000)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, default=ids.next)
    item: Mapped[str]
    # The database computes this column, so the ORM inserts with RETURNING, many rows in one statement.
    created: Mapped[datetime] = mapped_column(server_default=func.now())


def main() -> None:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Order(item="tea"), Order(item="coffee")])
        session.commit()
        for order in session.query(Order).order_by(Order.id):
            print(order.id, order.item, order.created)


if __name__ == "__main__":
    main()
