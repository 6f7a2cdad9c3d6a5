"""Whose password services use at the database, and that it may change under them."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from service_harness import Postgres
from sqlalchemy import text
from sqlalchemy.engine import make_url

from services.core.database import DatabaseSettings, ManagedPassword, NoPassword, database

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds-1"


class FakeSecrets:
    """Hands out what it is told to."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def get_secret_value(self, **arguments: Any) -> dict[str, str]:
        self.asked.append(arguments["SecretId"])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"SecretString": json.dumps({"username": "platform", "password": answer})}


AWAY = EndpointConnectionError(endpoint_url="https://secretsmanager")


async def test_the_password_is_the_one_of_now() -> None:
    secrets = FakeSecrets("first", "second")
    password = ManagedPassword(ARN, lambda: secrets)
    assert [await password(), await password()] == ["first", "second"]
    assert secrets.asked == [ARN, ARN]


async def test_the_last_password_serves_while_its_keeper_is_away() -> None:
    secrets = FakeSecrets("first", AWAY)
    password = ManagedPassword(ARN, lambda: secrets)
    assert [await password(), await password()] == ["first", "first"]


async def test_without_any_password_it_is_said_which_secret_is_meant() -> None:
    password = ManagedPassword(ARN, lambda: FakeSecrets(AWAY))
    with pytest.raises(NoPassword, match="rds-1"):
        await password()
    # As a database that is away: who connects waits and tries again.
    assert issubclass(NoPassword, OSError)


async def test_a_password_that_was_changed_is_found_by_the_next_connection(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(f"{postgres.url}/{postgres.new_database()}")
    admin = database(DatabaseSettings(database_url=url.render_as_string(hide_password=False)))
    async with admin.begin() as connection:
        await connection.execute(text("DROP ROLE IF EXISTS rotated"))
        await connection.execute(text("CREATE ROLE rotated LOGIN PASSWORD 'first'"))
    secrets = FakeSecrets("first", "second")
    monkeypatch.setattr("services.core.database._client", lambda: secrets)
    settings = DatabaseSettings(
        database_url=f"postgresql://rotated@{url.host}:{url.port}/{url.database}",
        database_secret_arn=ARN,
    )
    engine = database(settings)
    async with engine.begin() as connection:
        assert (await connection.execute(text("SELECT current_user"))).scalar() == "rotated"
    async with admin.begin() as connection:
        await connection.execute(text("ALTER ROLE rotated PASSWORD 'second'"))
    await engine.dispose()
    async with engine.begin() as connection:
        assert (await connection.execute(text("SELECT current_user"))).scalar() == "rotated"
    assert secrets.asked == [ARN, ARN]
    await engine.dispose()
    await admin.dispose()


def test_with_certificates_the_server_s_name_is_checked(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.pem"
    wrong.write_text("nothing of the kind")
    settings = DatabaseSettings(database_url="postgresql://a@b/c", database_ca=wrong)
    with pytest.raises(OSError, match=r"(?i)no certificate|PEM"):
        database(settings)
