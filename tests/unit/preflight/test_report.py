"""What people see: a table, an exit code, and every error of AWS as a row that helps."""

import threading
from pathlib import Path

import pytest
from botocore.exceptions import (
    EndpointConnectionError,
    NoCredentialsError,
    TokenRetrievalError,
)
from preflight_harness import ACCOUNT, StubbedAws, nodes, plan

from deploy import preflight
from deploy.preflight import credentials, domain, offerings, processors, tools, version
from deploy.preflight.aws import explain, rows_of
from deploy.preflight.report import Result, cant_tell, exit_code, ok, table, would_fail

OK, WOULD_FAIL, CANT_TELL = Result.OK, Result.WOULD_FAIL, Result.CANT_TELL
ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/me"


def caller(aws: StubbedAws) -> None:
    aws.answer("sts", "get_caller_identity", {"Arn": ARN, "Account": ACCOUNT, "UserId": "me"})


# Table


def test_the_table_has_a_row_for_each_finding_and_counts_them() -> None:
    rows = [
        ok("credentials", "me"),
        would_fail("quota", "8 vCPUs", "ask for more: aws service-quotas x --desired-value 64"),
        cant_tell("role", "not there", "make it"),
    ]
    text = table(rows, width=70)
    assert max(len(line) for line in text.splitlines()) <= 70
    assert "quota        would fail  8 vCPUs" in text
    assert "→ ask for more: aws" in text
    assert text.endswith("1 ok, 1 would fail, 1 can't tell")


def test_a_narrow_terminal_breaks_no_word() -> None:
    text = table([would_fail("quota", "", "aws-service-quotas-increase-of-much-more")], width=20)
    assert "aws-service-quotas-increase-of-much-more" in text


def test_only_what_would_fail_makes_the_command_fail() -> None:
    assert exit_code([ok("a"), cant_tell("b", "", "")]) == 0
    assert exit_code([ok("a"), would_fail("b", "", "")]) == 1


# Errors


def test_a_refused_call_names_the_permission_that_is_missing(aws: StubbedAws) -> None:
    aws.refuse("ec2", "describe_instance_type_offerings", "UnauthorizedOperation")
    wanted = plan(nodes=(nodes(),))
    (row,) = rows_of(aws, "types", lambda: offerings.check_types(wanted, aws))
    assert row.result is CANT_TELL
    assert "ec2:DescribeInstanceTypeOfferings" in row.todo


def test_the_permission_is_called_as_in_a_policy(aws: StubbedAws) -> None:
    aws.answer("ec2", "describe_instances", {"Reservations": []})
    aws.refuse("service-quotas", "get_service_quota", "AccessDeniedException")
    wanted = plan(nodes=(nodes(),))
    (row,) = rows_of(aws, "quotas", lambda: processors.check(wanted, aws, None))
    assert "the permission servicequotas:GetServiceQuota is missing" in row.found


def test_awss_own_word_for_the_permission_wins(aws: StubbedAws) -> None:
    message = f"User: {ARN} is not authorized to perform: eks:DescribeClusterVersions on resource"
    aws.refuse("eks", "describe_cluster_versions", "AccessDeniedException", message)
    (row,) = rows_of(aws, "version", lambda: version.check(plan(), aws))
    assert "eks:DescribeClusterVersions" in row.found


def test_what_was_found_before_an_error_is_kept(aws: StubbedAws) -> None:
    def half() -> object:
        yield ok("first")
        aws.client("ec2").describe_vpcs()

    aws.refuse("ec2", "describe_vpcs", "RequestLimitExceeded")
    first, second = rows_of(aws, "quotas", half)  # type: ignore[arg-type]
    assert first.result is OK
    assert second.todo == "run it again in a minute"


@pytest.mark.parametrize(
    ("error", "result", "todo"),
    [
        (NoCredentialsError(), WOULD_FAIL, "aws sso login"),
        (TokenRetrievalError(provider="sso", error_msg="expired"), WOULD_FAIL, "aws sso login"),
        (EndpointConnectionError(endpoint_url="https://ec2.nowhere"), CANT_TELL, "network, proxy"),
    ],
)
def test_errors_that_aws_never_saw_say_what_to_do(
    aws: StubbedAws, error: Exception, result: Result, todo: str
) -> None:
    row = explain(aws, "credentials", error)
    assert row.result is result
    assert todo in row.todo


def test_an_expired_login_would_fail(aws: StubbedAws) -> None:
    aws.refuse("sts", "get_caller_identity", "ExpiredToken", "The security token has expired")
    (row,) = rows_of(aws, "credentials", lambda: credentials.check(plan(), aws))
    assert row.result is WOULD_FAIL
    assert "ExpiredToken" in row.found


def test_an_error_that_nobody_foresaw_is_shown_as_it_is(aws: StubbedAws) -> None:
    aws.refuse("route53", "list_hosted_zones", "InternalFailure", "try later")
    wanted = plan(gateway_domain="llm.example.com")
    (row,) = rows_of(aws, "domain", lambda: domain.check(wanted, aws))
    assert row.result is CANT_TELL
    assert row.found == "ListHostedZones answered InternalFailure: try later"


# Credentials


def test_another_account_would_fail(aws: StubbedAws) -> None:
    caller(aws)
    (row,) = credentials.check(plan(account_id="999999999999"), aws)
    assert row.result is WOULD_FAIL
    assert ACCOUNT in row.found
    assert "999999999999" in row.found


def test_without_credentials_nothing_else_is_asked(
    aws: StubbedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "check", lambda: iter([ok("AWS CLI")]))
    aws.refuse("sts", "get_caller_identity", "InvalidClientTokenId")
    cli, who, rest = preflight.run(plan(), aws, lambda _: None)
    assert (cli.result, who.result, rest.result) == (OK, WOULD_FAIL, CANT_TELL)
    assert rest.todo == "mend the credentials first"


# The AWS CLI


def program(folder: Path, said: str) -> None:
    file = folder / "aws"
    file.write_text(f"#!/bin/sh\n{said}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("echo aws-cli/2.28.1 Python/3.13", OK),
        ("echo aws-cli/1.45.11 Python/3.11 >&2", OK),
        ("echo aws-cli/2.7.0 Python/3.9", WOULD_FAIL),
        ("echo aws-cli/1.22.34 Python/3.10", WOULD_FAIL),
        ("echo hello", CANT_TELL),
    ],
)
def test_the_cli_must_be_as_new_as_eks_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, result: Result
) -> None:
    program(tmp_path, said)
    monkeypatch.setenv("PATH", str(tmp_path))
    (row,) = tools.check()
    assert row.result is result


def test_without_the_cli_nobody_gets_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (row,) = tools.check()
    assert row.result is WOULD_FAIL
    assert "isn't on PATH" in row.found


# Progress


def test_a_long_check_says_that_it_still_runs() -> None:
    said, heard = threading.Event(), []

    def report(line: str) -> None:
        heard.append(line)
        said.set()

    with preflight.announced(report, "vCPU quotas", after=0):
        assert said.wait(30)
    assert heard == ["looking at vCPU quotas"]


def test_a_short_check_says_nothing() -> None:
    heard: list[str] = []
    with preflight.announced(heard.append, "vCPU quotas", after=3600):
        pass
    assert heard == []
