"""Pictures of a small random pipeline built as SDXL-Turbo is: the same latent, the same pixels."""

import shutil

import numpy as np
import pytest
import torch

pytest.importorskip("diffusers", reason="needs the extra [gpu]")

from prefmh_web.endpoints.local import latent_dimension, local_decoder
from prefmh_web.endpoints.local.images import SdxlTurbo, settle
from tests.gpu.small_pipeline import pipeline

# NumPy about PyTorch, in the making of a scheduler.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
PROMPT = "a red mushroom"


def latent(seed):
    return np.random.default_rng(seed).standard_normal(256)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_same_latent_gives_the_same_pixels_and_another_one_others(steps, device):
    decoder = SdxlTurbo(settle(pipeline(device)), PROMPT, steps=steps)
    first = decoder.pixels(latent(1))
    assert decoder.dimension == 256
    assert (first.shape, first.dtype) == ((16, 16, 3), np.uint8)
    assert np.abs(first.astype(int) - decoder.pixels(latent(2))).mean() > 10
    torch.manual_seed(99)
    assert np.array_equal(decoder.pixels(latent(1)), first)
    assert not np.array_equal(SdxlTurbo(settle(pipeline(device)), "a wet stone", steps=steps).pixels(latent(1)), first)


def test_the_published_scheduler_adds_noise_of_its_own_after_the_first_step(device):
    published = SdxlTurbo(pipeline(device), PROMPT, steps=4)
    pictures = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        pictures.append(published.pixels(latent(1)))
    assert not np.array_equal(*pictures)


def test_with_one_step_the_picture_is_the_published_schedulers(device):
    both = (settle(pipeline(device)), pipeline(device))
    one, other = (SdxlTurbo(each, PROMPT).pixels(latent(1)) for each in both)
    assert np.abs(one.astype(int) - other).max() <= 1


@pytest.fixture
def folder(settings, tmp_path):
    """The folder of a pipeline that the site offers as “turbo”."""
    pipeline().save_pretrained(tmp_path / "turbo")
    settings.LOCAL_IMAGE_MODELS, settings.LOCAL_DEVICE = {"turbo": tmp_path / "turbo"}, "cpu"
    return tmp_path / "turbo"


def test_a_site_offers_the_pipeline_in_a_folder(settings, folder, device):
    settings.LOCAL_DEVICE = device
    expected = SdxlTurbo(settle(pipeline(device)), PROMPT).pixels(latent(1))
    assert np.array_equal(local_decoder("turbo", PROMPT).pixels(latent(1)), expected)
    assert latent_dimension("turbo") == 256


def halved(folder):
    """Make a folder what one gets who downloads the fp16 variant alone, and return it."""
    shutil.rmtree(folder)
    pipeline().save_pretrained(folder, variant="fp16")
    assert not list(folder.glob("*/*model.safetensors"))
    return folder


def test_a_folder_of_one_variant_is_loaded_as_that(folder):
    expected = SdxlTurbo(settle(pipeline()), PROMPT).pixels(latent(1))
    halved(folder)
    try:
        decoder = local_decoder("turbo", PROMPT)
    except OSError as error:
        pytest.fail(f"a whole folder of the variant fp16 is refused: {error}")
    assert np.array_equal(decoder.pixels(latent(1)), expected)


def test_plain_weights_in_one_part_and_a_variant_in_the_others_are_loaded(folder):
    expected = SdxlTurbo(settle(pipeline()), PROMPT).pixels(latent(1))
    halved(folder)
    (folder / "vae" / "diffusion_pytorch_model.fp16.safetensors").rename(
        folder / "vae" / "diffusion_pytorch_model.safetensors"
    )
    assert np.array_equal(local_decoder("turbo", PROMPT).pixels(latent(1)), expected)


def test_a_folder_that_is_not_whole_is_refused_with_its_setting_and_what_to_do(folder):
    halved(folder)
    weights = folder / "text_encoder" / "model.fp16.safetensors"
    weights.rename(weights.with_name("model.other.safetensors"))
    with pytest.raises(ValueError, match=r"LOCAL_IMAGE_MODELS names .*it holds fp16 or other\. Download"):
        local_decoder("turbo", PROMPT)
    weights.with_name("model.other.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"must hold text_encoder/\*.safetensors"):
        local_decoder("turbo", PROMPT)


def test_a_file_that_only_points_to_the_weights_is_refused_with_its_setting_and_what_to_do(folder):
    # What a clone without Git LFS holds.
    (folder / "unet" / "diffusion_pytorch_model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match=r"LOCAL_IMAGE_MODELS names .*cannot be loaded: .*Download the model again"):
        local_decoder("turbo", PROMPT)


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
    settings.LOCAL_IMAGE_MODELS = {"turbo": folder / "absent"}
    with pytest.raises(FileNotFoundError, match="not downloaded"):
        local_decoder("turbo", PROMPT)
    assert latent_dimension("turbo") is None
    with pytest.raises(ValueError, match=r"offers \(turbo\), not 'other'"):
        local_decoder("other", PROMPT)


def test_a_device_that_is_not_there_is_refused_by_its_setting(settings, folder):
    settings.LOCAL_DEVICE = absent = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(ValueError, match=f"LOCAL_DEVICE must name a device that is there, not '{absent}'"):
        local_decoder("turbo", PROMPT)


def test_bad_input_is_refused():
    small = settle(pipeline())
    with pytest.raises(ValueError, match="shape"):
        SdxlTurbo(small, PROMPT).pixels(latent(1)[:-1])
    with pytest.raises(ValueError, match="prompt"):
        SdxlTurbo(small, " ")
    with pytest.raises(ValueError, match="steps"):
        SdxlTurbo(small, PROMPT, steps=5)
