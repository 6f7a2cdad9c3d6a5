"""The tables, as SQLAlchemy sees them; Alembic's migrations in the gateway make them."""

import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, DateTime, Identity, Index, Integer, String, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

ABSENT = "absent"
"""Status of an endpoint whose declaration is gone; its name is kept for a while, unrouted."""

_TIME = DateTime(timezone=True)


class Record(DeclarativeBase):
    """The base of all tables."""


class ApiKey(Record):
    """A key's hash and what the key may do; the key itself is nowhere."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    prefix: Mapped[str] = mapped_column(String(16))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    team: Mapped[str] = mapped_column(String(63))
    role: Mapped[str] = mapped_column(String(16))
    declared: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[datetime.datetime] = mapped_column(_TIME, server_default=func.now())
    expires_at: Mapped[datetime.datetime | None] = mapped_column(_TIME)
    revoked_at: Mapped[datetime.datetime | None] = mapped_column(_TIME)


class Endpoint(Record):
    """An endpoint that the gateway routes to."""

    __tablename__ = "endpoints"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    team: Mapped[str] = mapped_column(String(63), index=True)
    namespace: Mapped[str] = mapped_column(String(63))
    registration: Mapped[dict[str, Any]] = mapped_column(JSONB)
    status: Mapped[str] = mapped_column(String(16))
    status_reason: Mapped[str] = mapped_column(default="")
    source: Mapped[str] = mapped_column(String(16))
    stack: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime.datetime] = mapped_column(_TIME, server_default=func.now())
    updated_at: Mapped[datetime.datetime] = mapped_column(
        _TIME, server_default=func.now(), onupdate=func.now()
    )


class Task(Record):
    """An asynchronous request: what became of it, and where its payload and result are."""

    __tablename__ = "tasks"
    __table_args__ = (
        Index("ix_tasks_settled_at", "settled_at"),
        Index("ix_tasks_endpoint", "namespace", "endpoint", "created_at"),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    endpoint: Mapped[str] = mapped_column(String(63))
    namespace: Mapped[str] = mapped_column(String(63))
    team: Mapped[str] = mapped_column(String(63))
    caller: Mapped[str] = mapped_column(String(63))
    """The team that sent it, which may read its result."""
    status: Mapped[str] = mapped_column(String(16))
    status_code: Mapped[int | None] = mapped_column(Integer)
    token_hash: Mapped[str] = mapped_column(String(64))
    """Of the token that the worker of this one task has."""
    payload_key: Mapped[str] = mapped_column(default="")
    """The payload's key in the bucket; empty when the message carries it."""
    result_key: Mapped[str] = mapped_column(default="")
    """The result's key in the bucket; empty while there is none."""
    timeout_seconds: Mapped[int] = mapped_column(Integer)
    """How long its worker may take."""
    created_at: Mapped[datetime.datetime] = mapped_column(_TIME, server_default=func.now())
    started_at: Mapped[datetime.datetime | None] = mapped_column(_TIME)
    expires_at: Mapped[datetime.datetime] = mapped_column(_TIME)
    """No worker begins on it later."""
    settled_at: Mapped[datetime.datetime] = mapped_column(_TIME)
    """When it finished; before that, when it expires. It is kept for a while from then on."""
