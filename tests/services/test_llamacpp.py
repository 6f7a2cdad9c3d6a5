import asyncio
from pathlib import Path

import pytest
from service_harness import Service

from services.runtimes.errors import NoModel
from services.runtimes.llamacpp import find_model


def test_the_one_model_is_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    model = tmp_path / "sub" / "m.gguf"
    model.touch()
    (tmp_path / "READY").touch()
    assert find_model(tmp_path) == model


@pytest.mark.parametrize("names", [[], ["a.gguf", "b.gguf"]])
def test_no_model_or_two_are_told_by_name(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(NoModel) as caught:
        find_model(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert all(name in str(caught.value) for name in names)


def test_the_process_ends_with_an_error_when_it_cannot_start(tmp_path: Path) -> None:
    async def run() -> Service:
        env = {"WEIGHTS_DIR": str(tmp_path), "MODEL_ALIAS": "m"}
        service = await Service("services.runtimes.llamacpp", env).start()
        assert await service.wait() == 1
        return service

    service = asyncio.run(run())
    assert "no .gguf file" in service.said("the engine can't start")[0]["error"]
    assert "Traceback" not in service.raw
