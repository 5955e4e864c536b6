"""A real server of a tiny model, for the flows of a file."""

from collections.abc import Iterator

import pytest

from tests.support.models import model_server, port_from, write_model


@pytest.fixture(scope="module")
def llama_url(tmp_path_factory) -> Iterator[str]:
    with model_server(write_model(tmp_path_factory.mktemp("model") / "tiny.gguf"), port_from(23_000)) as url:
        yield url
