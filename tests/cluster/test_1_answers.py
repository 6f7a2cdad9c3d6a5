"""What a client sees: answers, streams, and errors in OpenAI's shapes."""

from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from .conftest import Running

QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]


def test_the_model_answers(running: Running) -> None:
    reply = running.client().chat.completions.create(
        model="gemma", messages=QUESTION, max_tokens=40, temperature=0
    )
    assert "Paris" in (reply.choices[0].message.content or "")
    assert reply.usage is not None
    assert reply.usage.completion_tokens > 0


def test_it_streams_an_answer_to_its_finish(running: Running) -> None:
    stream = running.client().chat.completions.create(
        model="gemma", messages=QUESTION, max_tokens=40, temperature=0, stream=True
    )
    chunks = [chunk for chunk in stream if chunk.choices]
    assert "Paris" in "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason in {"stop", "length"}


def test_tokens_come_one_by_one(running: Running) -> None:
    chunks = list(running.long_stream(tokens=20))
    assert len([chunk for chunk in chunks if chunk.choices[0].text]) >= 15


def test_plain_completions_work(running: Running) -> None:
    reply = running.client().completions.create(
        model="gemma", prompt="One, two, three,", max_tokens=5, temperature=0
    )
    assert reply.choices[0].text.strip()


def test_the_models_are_those_that_the_key_may_call(running: Running) -> None:
    assert [model.id for model in running.client().models.list()] == ["gemma"]
    assert "gemma" in [model.id for model in running.client(running.admin_key).models.list()]


def test_a_wrong_key_is_refused(running: Running) -> None:
    with pytest.raises(openai.AuthenticationError) as refused:
        running.client("lp-nobody").models.list()
    assert refused.value.status_code == 401
    assert refused.value.code == "invalid_api_key"


def test_an_unknown_model_is_not_found(running: Running) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        running.client().chat.completions.create(model="nobody", messages=QUESTION)
    assert missing.value.code == "model_not_found"
    assert "nobody" in missing.value.message


def test_a_full_endpoint_says_when_to_come_back(running: Running) -> None:
    def ask(_: int) -> openai.RateLimitError | None:
        try:
            list(running.long_stream(tokens=60))
        except openai.RateLimitError as full:
            return full
        return None

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(ask, range(12)))
    # Four fit (max_concurrency); a fifth is refused only while four are being answered.
    refusals = [each for each in results if each is not None]
    assert len(results) - len(refusals) >= 4
    assert refusals
    for refusal in refusals:
        assert int(refusal.response.headers["retry-after"]) >= 1
        assert refusal.type
