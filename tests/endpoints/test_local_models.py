"""The site's own models as a process without PyTorch sees them: their names, their sizes, and what is missing."""

import json
from importlib.util import find_spec

import pytest

from prefmh_web.endpoints.local import (
    image_model_names,
    latent_dimension,
    local_decoder,
    local_model,
    model_names,
)

without_the_extra = pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is installed here")


def pipeline_folder(folder, **config):
    """Return a folder with as much of a pipeline as says how large its latents are."""
    (folder / "unet").mkdir(parents=True)
    (folder / "unet" / "config.json").write_text(json.dumps(config))
    return folder


def test_models_are_offered_by_their_settings(settings):
    settings.LOCAL_MODELS = {"writer": "/models/writer"}
    settings.LOCAL_IMAGE_MODELS = {"turbo": "/models/turbo", "tuned": "/m"}
    assert model_names() == ("writer",)
    assert image_model_names() == ("turbo", "tuned")
    with pytest.raises(ValueError, match=r"offers \(turbo, tuned\), not 'writer'"):
        local_decoder("writer", "a red mushroom")
    settings.LOCAL_IMAGE_MODELS = {}
    assert image_model_names() == ()
    with pytest.raises(ValueError, match="LOCAL_IMAGE_MODELS is not set"):
        local_decoder("turbo", "a red mushroom")


@without_the_extra
@pytest.mark.parametrize(
    "load",
    [lambda: local_decoder("turbo", "a red mushroom"), lambda: local_model("writer", limit=5)],
    ids=["images", "texts"],
)
def test_without_the_extra_a_model_says_what_to_install(settings, load):
    settings.LOCAL_MODELS, settings.LOCAL_IMAGE_MODELS = {"writer": "/models/writer"}, {"turbo": "/models/turbo"}
    with pytest.raises(ImportError, match=r"the extra \[gpu\] brings: uv sync .*--extra gpu"):
        load()


def test_a_models_folder_says_how_large_its_latents_are(settings, tmp_path):
    turbo = pipeline_folder(tmp_path / "turbo", in_channels=4, sample_size=64)
    settings.LOCAL_IMAGE_MODELS = {"turbo": turbo, "elsewhere": tmp_path / "elsewhere"}
    assert latent_dimension("turbo") == 16_384
    assert latent_dimension("elsewhere") is None


@pytest.mark.parametrize("config", ["", "[]", "{}", '{"in_channels": 4}', '{"in_channels": "4", "sample_size": "8"}'])
def test_a_folder_that_holds_something_else_is_refused(settings, tmp_path, config):
    folder = pipeline_folder(tmp_path / "turbo")
    (folder / "unet" / "config.json").write_text(config)
    settings.LOCAL_IMAGE_MODELS = {"turbo": folder}
    with pytest.raises(ValueError, match="turbo must be a pipeline of diffusers"):
        latent_dimension("turbo")
