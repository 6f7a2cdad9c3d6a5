"""Asynchronous tasks: a table of their own, which the version before doesn't look at."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    time = sa.DateTime(timezone=True)
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("endpoint", sa.String(63), nullable=False),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("team", sa.String(63), nullable=False),
        sa.Column("caller", sa.String(63), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("payload_key", sa.String, nullable=False),
        sa.Column("result_key", sa.String, nullable=False),
        sa.Column("timeout_seconds", sa.Integer, nullable=False),
        sa.Column("created_at", time, nullable=False, server_default=sa.func.now()),
        sa.Column("started_at", time),
        sa.Column("expires_at", time, nullable=False),
        sa.Column("settled_at", time, nullable=False),
    )
    op.create_index("ix_tasks_settled_at", "tasks", ["settled_at"])
    op.create_index("ix_tasks_endpoint", "tasks", ["namespace", "endpoint", "created_at"])


def downgrade() -> None:
    """Remove it."""
    op.drop_table("tasks")
