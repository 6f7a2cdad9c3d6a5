"""The vocabulary: what it takes, what it refuses, and how it says so."""

import json
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from components.domain.accelerators import Accelerator
from components.domain.args import Args
from components.domain.images import ImageRef
from components.domain.names import K8S_NAME_LIMIT, safe_name
from components.domain.predicates import hardening_problems
from components.domain.quantities import Quantity, parse_quantity
from components.domain.registration import EndpointType, Registration
from components.domain.timeouts import LINGER_SECONDS, Timeouts
from components.domain.weights import Weights

ROOT = Path(__file__).resolve().parents[3]
DIGEST = "sha256:" + "0" * 64
quantity = TypeAdapter(Quantity)
image_ref = TypeAdapter(ImageRef)


class Sized(Args):
    gpus: int
    labels: Mapping[str, str] = Field(default_factory=dict)
    url: str | pulumi.Output[str] = ""


def test_the_domain_is_importable_without_pulumi() -> None:
    program = (
        "import sys, pkgutil, importlib, components, components.domain as domain\n"
        "for module in pkgutil.iter_modules(domain.__path__):\n"
        "    importlib.import_module(f'components.domain.{module.name}')\n"
        "wrong = [name for name in sys.modules if name.split('.')[0].startswith('pulumi')]\n"
        "assert not wrong, wrong\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_can_be_imported() -> None:
    import components

    assert components.__all__ == sorted(components._HOMES)
    assert all(getattr(components, name) is not None for name in components.__all__)
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = components.NoSuchThing


def test_an_output_where_a_plain_value_belongs_is_refused_by_its_field() -> None:
    with pytest.raises(ValidationError) as refused:
        Sized(gpus=pulumi.Output.from_input(2))  # pyright: ignore[reportArgumentType]
    problem = refused.value.errors()[0]
    assert problem["loc"] == ("gpus",)
    assert "gpus decides shape and must be a plain value" in problem["msg"]


def test_an_output_inside_a_collection_is_refused_as_well() -> None:
    with pytest.raises(ValidationError, match="labels decides shape"):
        Sized(gpus=1, labels={"a": pulumi.Output.from_input("b")})  # pyright: ignore[reportArgumentType]


def test_an_output_that_is_only_passed_on_is_taken() -> None:
    url = pulumi.Output.from_input("http://gateway")
    assert Sized(gpus=1, url=url).url is url


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="gpu\n"):
        Sized(gpus=1, gpu=2)  # pyright: ignore[reportCallIssue]


def test_args_cannot_be_changed() -> None:
    sized = Sized(gpus=1)
    with pytest.raises(ValidationError, match="frozen"):
        sized.gpus = 2  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4Gi", Decimal(4 * 1024**3)),
        ("4G", Decimal(4 * 10**9)),
        ("500m", Decimal("0.5")),
        ("1.5", Decimal("1.5")),
        ("100k", Decimal(100_000)),
        ("2Ki", Decimal(2048)),
    ],
)
def test_a_quantity_is_what_kubernetes_reads(text: str, number: Decimal) -> None:
    assert quantity.validate_python(text) == text
    assert parse_quantity(text) == number


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("4GB", "did you mean 4Gi / 4G?"),
        ("4gb", "did you mean 4Gi / 4G?"),
        ("512MiB", "did you mean 512Mi / 512M?"),
        ("64K", "did you mean 64Ki / 64k?"),
        ("1e3x", "number and a unit"),
        ("-1Gi", "number and a unit"),
        ("4 Gi", "number and a unit"),
        ("", "number and a unit"),
        ("3xyz", "unknown unit 'xyz'"),
        ("0", "more than zero"),
    ],
)
def test_a_wrong_quantity_is_refused_with_what_was_meant(text: str, hint: str) -> None:
    with pytest.raises(ValidationError) as refused:
        quantity.validate_python(text)
    assert hint in str(refused.value)


@given(st.integers(min_value=1, max_value=10**6), st.sampled_from(["Ki", "Mi", "Gi", "Ti"]))
def test_a_binary_quantity_is_above_its_decimal_twin(number: int, unit: str) -> None:
    decimal = unit[0].lower() if unit[0] == "K" else unit[0]
    assert parse_quantity(f"{number}{unit}") > parse_quantity(f"{number}{decimal}")


@pytest.mark.parametrize(
    "text", [f"redis@{DIGEST}", f"10.88.0.1:5000/a/b@{DIGEST}", f"ghcr.io/a/b:v1.2@{DIGEST}"]
)
def test_an_image_by_digest_is_taken(text: str) -> None:
    assert image_ref.validate_python(text) == text


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("vllm/vllm-openai:latest", "by tag"),
        ("redis", "by tag"),
        ("redis@sha256:abc", "64 hexadecimal digits"),
        (f"Redis UPPER@{DIGEST}", "isn't an image reference"),
    ],
)
def test_an_image_without_digest_is_refused_with_what_to_do(text: str, hint: str) -> None:
    with pytest.raises(ValidationError, match=hint):
        image_ref.validate_python(text)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("s3://weights/gemma/latest/", "other weights tomorrow"),
        ("s3://weights/gemma/Main/", "other weights tomorrow"),
        ("s3://weights/gemma/", "has no version"),
        ("s3://weights/gemma//", "has no version"),
        ("s3://weights/gemma/1", "slash at the end"),
        ("gs://weights/gemma/1/", "isn't a source"),
        ("/models/gemma/1/", "isn't a source"),
    ],
)
def test_weights_that_could_change_are_refused(source: str, hint: str) -> None:
    with pytest.raises(ValidationError, match=hint):
        Weights(source)


def test_versioned_weights_know_their_bucket() -> None:
    assert Weights("s3://acme-weights/llama/2026-11-03/").bucket == "acme-weights"


@given(st.integers(min_value=1, max_value=86400))
def test_no_time_limit_cuts_the_one_that_it_follows_from(seconds: int) -> None:
    timeouts = Timeouts(seconds)
    # A request that comes in the last moment of lingering may still take its whole time.
    assert timeouts.drain_seconds >= seconds + LINGER_SECONDS
    assert timeouts.grace_period_seconds > timeouts.drain_seconds + LINGER_SECONDS
    assert 0 < timeouts.stop_seconds < timeouts.grace_period_seconds - timeouts.drain_seconds


@given(st.lists(st.text("abcdefg-", min_size=1, max_size=60), min_size=2, max_size=2, unique=True))
def test_two_long_names_stay_two_names_within_the_limit(names: list[str]) -> None:
    first, second = (safe_name(name, "x" * 40) for name in names)
    assert len(first) <= K8S_NAME_LIMIT
    assert first != second


def test_only_the_cpu_is_no_gpu() -> None:
    assert [kind for kind in Accelerator if not kind.is_gpu] == [Accelerator.CPU]


def test_a_registration_reads_back_as_it_was_written() -> None:
    written = Registration(
        name="gemma",
        type=EndpointType.STREAMING,
        service="gemma",
        runtime="llama.cpp",
        image="x",
        min_workers=1,
        max_workers=1,
        per_worker=2,
        max_concurrency=4,
    )
    assert Registration.from_data(written.to_data()) == written


@pytest.mark.parametrize("field", ["runtime", "image", "model", "weights", "accelerator", "stack"])
def test_a_registration_holds_one_short_line_in_each_text(field: str) -> None:
    document = {
        "name": "gemma",
        "type": "sync",
        "service": "gemma",
        "runtime": "x",
        "image": "x",
        "min_workers": 1,
        "max_workers": 1,
        "per_worker": 2,
        "max_concurrency": 4,
    }
    for text in ("ü" * 1024, "a b/c:d@e"):
        assert getattr(Registration.from_document({**document, field: text}), field) == text
    for wrong in ("x\x00y", "two\nlines", "end\n", "\x85", "x" * 1025):
        with pytest.raises(ValidationError, match=field):
            Registration.from_document({**document, field: wrong})


def test_a_registration_is_written_strictly_and_read_with_fields_of_a_newer_version() -> None:
    document = {
        "name": "gemma",
        "type": "sync",
        "service": "gemma",
        "runtime": "x",
        "image": "x",
        "min_workers": 1,
        "max_workers": 1,
        "per_worker": 2,
        "max_concurrency": 4,
        "of_a_newer_version": True,
    }
    with pytest.raises(ValidationError, match="of_a_newer_version"):
        Registration.model_validate(document)
    data = {"registration.json": json.dumps(document)}
    assert Registration.from_data(data) == Registration.from_document(document)


HARDENED = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "model",
            "image": f"x@{DIGEST}",
            "securityContext": {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
            "resources": {"limits": {"memory": "1Gi"}},
        }
    ],
}


def test_a_hardened_pod_has_no_problems() -> None:
    assert hardening_problems(HARDENED) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"securityContext": {}}, "as root"),
        ({"securityContext": {"runAsNonRoot": True}}, "seccomp"),
        ({"hostNetwork": True}, "hostNetwork"),
        ({"initContainers": [{"name": "sneaky", "image": "x"}]}, "sneaky: it may escalate"),
        ({"containers": [{"name": "open", "image": "x:1"}]}, "isn't pinned by digest"),
        ({"containers": [{"name": "open", "image": "x:1"}]}, "no memory limit"),
        ({"containers": [{"name": "open", "image": "x:1"}]}, "file system is writable"),
        ({"containers": [{"name": "open", "image": "x:1"}]}, "keeps capabilities"),
        (
            {"containers": [{"name": "open", "securityContext": {"privileged": True}}]},
            "it is privileged",
        ),
    ],
)
def test_a_pod_that_is_not_hardened_is_told_why(change: dict[str, object], words: str) -> None:
    assert any(words in problem for problem in hardening_problems({**HARDENED, **change}))
