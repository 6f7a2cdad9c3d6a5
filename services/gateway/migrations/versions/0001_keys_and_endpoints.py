"""Keys and endpoints."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the first tables."""
    now = sa.func.now()
    time = sa.DateTime(timezone=True)
    op.create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("team", sa.String(63), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("declared", sa.Boolean, nullable=False),
        sa.Column("created_at", time, nullable=False, server_default=now),
        sa.Column("expires_at", time),
        sa.Column("revoked_at", time),
    )
    op.create_table(
        "endpoints",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("team", sa.String(63), nullable=False, index=True),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("registration", postgresql.JSONB, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("status_reason", sa.String, nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
        sa.Column("stack", sa.String, nullable=False),
        sa.Column("created_at", time, nullable=False, server_default=now),
        sa.Column("updated_at", time, nullable=False, server_default=now),
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_table("endpoints")
    op.drop_table("api_keys")
