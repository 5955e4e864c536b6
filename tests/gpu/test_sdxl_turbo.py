"""Pictures of a small random pipeline built as SDXL-Turbo is: the same latent, the same pixels."""

import numpy as np
import pytest
import torch

pytest.importorskip("diffusers", reason="needs the extra [gpu]")

from prefmh_web.endpoints.local.models import latent_dimension, local_decoder
from prefmh_web.endpoints.local.sdxl_turbo import SdxlTurbo, settle
from tests.gpu.small_pipeline import pipeline

# NumPy about PyTorch, in the making of a scheduler.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
PROMPT = "a red mushroom"


def latent(seed):
    return np.random.default_rng(seed).standard_normal(256)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_same_latent_gives_the_same_pixels_and_another_one_others(steps):
    decoder = SdxlTurbo(settle(pipeline()), PROMPT, steps=steps)
    first = decoder.pixels(latent(1))
    assert decoder.dimension == 256
    assert (first.shape, first.dtype) == ((16, 16, 3), np.uint8)
    assert np.abs(first.astype(int) - decoder.pixels(latent(2))).mean() > 10
    torch.manual_seed(99)
    assert np.array_equal(decoder.pixels(latent(1)), first)
    assert not np.array_equal(SdxlTurbo(settle(pipeline()), "a wet stone", steps=steps).pixels(latent(1)), first)


def test_the_published_scheduler_adds_noise_of_its_own_after_the_first_step():
    published = SdxlTurbo(pipeline(), PROMPT, steps=4)
    pictures = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        pictures.append(published.pixels(latent(1)))
    assert not np.array_equal(*pictures)


def test_with_one_step_the_picture_is_the_published_schedulers():
    one, other = (SdxlTurbo(each, PROMPT).pixels(latent(1)) for each in (settle(pipeline()), pipeline()))
    assert np.abs(one.astype(int) - other).max() <= 1


@pytest.fixture
def folder(settings, tmp_path):
    """The folder of a pipeline that the site offers as “turbo”."""
    pipeline().save_pretrained(tmp_path / "turbo")
    settings.LOCAL_IMAGE_MODELS, settings.LOCAL_DEVICE = f"turbo={tmp_path / 'turbo'}", "cpu"
    return tmp_path / "turbo"


def test_a_site_offers_the_pipeline_in_a_folder(folder):
    expected = SdxlTurbo(settle(pipeline()), PROMPT).pixels(latent(1))
    assert np.array_equal(local_decoder("turbo", PROMPT).pixels(latent(1)), expected)
    assert latent_dimension("turbo") == 256


def test_what_is_no_pipeline_of_its_kind_is_refused(settings, folder):
    index = folder / "model_index.json"
    index.write_text(index.read_text().replace("StableDiffusionXLPipeline", "FluxPipeline"))
    with pytest.raises(ValueError, match="must hold a Stable Diffusion XL pipeline such as SDXL-Turbo, not a Flux"):
        local_decoder("turbo", PROMPT)
    index.unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        local_decoder("turbo", PROMPT)
    for weights in folder.glob("unet/*.safetensors"):
        weights.unlink()
    with pytest.raises(FileNotFoundError, match="must hold unet"):
        local_decoder("turbo", PROMPT)
    settings.LOCAL_IMAGE_MODELS = f"turbo={folder / 'absent'}"
    with pytest.raises(FileNotFoundError, match="not downloaded"):
        local_decoder("turbo", PROMPT)
    assert latent_dimension("turbo") is None
    with pytest.raises(ValueError, match=r"offers \(turbo\), not 'other'"):
        local_decoder("other", PROMPT)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_device_that_is_not_there_is_refused_by_its_setting(settings, folder):
    settings.LOCAL_DEVICE = "cuda"
    with pytest.raises(ValueError, match="LOCAL_DEVICE must name a device that is there, not 'cuda'"):
        local_decoder("turbo", PROMPT)


def test_bad_input_is_refused():
    small = settle(pipeline())
    with pytest.raises(ValueError, match="shape"):
        SdxlTurbo(small, PROMPT).pixels(latent(1)[:-1])
    with pytest.raises(ValueError, match="prompt"):
        SdxlTurbo(small, " ")
    with pytest.raises(ValueError, match="steps"):
        SdxlTurbo(small, PROMPT, steps=5)
