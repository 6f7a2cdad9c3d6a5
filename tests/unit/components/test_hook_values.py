"""Hooks as values: what people may say, and that it reaches the worker unchanged."""

from typing import Any

import pytest
from pydantic import ValidationError

from components import Callback, Hooks, Logging, Validation

HOOKS = Hooks(
    pre=(
        Validation(
            schema={
                "type": "object",
                "properties": {"text": {"$ref": "#/$defs/text"}},
                "$defs": {"text": {"type": "string"}},
            }
        ),
    ),
    post=(Callback(url="https://hooks.example/done"), Logging()),
)


def test_hooks_are_read_as_they_were_written() -> None:
    assert Hooks.from_json(HOOKS.to_json()) == HOOKS
    assert HOOKS.to_json() == Hooks.from_json(HOOKS.to_json()).to_json()


def test_no_hooks_are_nothing_to_run() -> None:
    assert not Hooks()
    assert not Hooks.from_json("")
    assert Hooks(post=(Logging(),))
    assert Hooks(pre=HOOKS.pre)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "https://schemas.example/body.json"}, "would be fetched for every request"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "would be fetched"),
        ({"allOf": [{"$dynamicRef": "http://169.254.169.254/"}]}, "would be fetched"),
        ({"const": {1, 2}}, "isn't JSON"),
        ({"const": "x" * 70_000}, "at most 65536 fit"),
    ],
)
def test_a_schema_that_a_worker_could_not_use_is_refused(
    schema: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        Validation(schema=schema)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://hooks.example/", "isn't a web address"),
        ("https:///done", "isn't a web address"),
        ("hooks.example", "isn't a web address"),
        ("https://me:secret@hooks.example/", "holds a password"),
    ],
)
def test_an_address_that_cannot_be_called_is_refused(url: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Callback(url=url)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"post": [{"kind": "callback"}]}', "url"),
        ('{"post": [{"kind": "shell"}]}', "post"),
        ('{"pre": [{"kind": "validation"}]}', "schema"),
    ],
)
def test_what_is_no_hook_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Hooks.from_json(text)
