"""Pictures of a small random pipeline built as SDXL-Turbo is: the same latent, the same pixels."""

import numpy as np
import pytest
import torch

diffusers = pytest.importorskip("diffusers", reason="needs the extra [gpu]")

from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer  # noqa: E402

from prefmh_web.endpoints.local.models import sdxl_turbo  # noqa: E402
from prefmh_web.endpoints.local.sdxl_turbo import SdxlTurbo, settle  # noqa: E402

# NumPy about PyTorch, in the making of a scheduler.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PROMPT = "a red mushroom"


def pipeline():
    """Return a pipeline of 4 × 8 × 8 latents and 16 × 16 pixels, its scheduler the ancestral one."""
    torch.manual_seed(1)
    unet = diffusers.UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 1),
        projection_class_embeddings_input_dim=64,
        cross_attention_dim=32,
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )
    shape = CLIPTextConfig(
        vocab_size=64,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        hidden_size=16,
        intermediate_size=20,
        num_attention_heads=2,
        num_hidden_layers=2,
        projection_dim=16,
        max_position_embeddings=24,
    )
    words = ["<|startoftext|>", "<|endoftext|>", *LETTERS, *(f"{letter}</w>" for letter in LETTERS)]
    tokenizer = CLIPTokenizer(vocab={word: place for place, word in enumerate(words)}, merges=[], model_max_length=24)
    scheduler = diffusers.EulerAncestralDiscreteScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", timestep_spacing="trailing"
    )
    whole = diffusers.StableDiffusionXLPipeline(
        vae, CLIPTextModel(shape), CLIPTextModelWithProjection(shape), tokenizer, tokenizer, unet, scheduler,
        add_watermarker=False,
    )  # fmt: skip
    whole.set_progress_bar_config(disable=True)
    return whole


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


def test_a_site_offers_the_pipeline_in_a_folder(settings, tmp_path):
    pipeline().save_pretrained(tmp_path / "turbo")
    settings.LOCAL_SDXL_TURBO, settings.LOCAL_DEVICE = str(tmp_path / "turbo"), "cpu"
    expected = SdxlTurbo(settle(pipeline()), PROMPT).pixels(latent(1))
    assert np.array_equal(sdxl_turbo(PROMPT).pixels(latent(1)), expected)
    settings.LOCAL_SDXL_TURBO = str(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="not downloaded"):
        sdxl_turbo(PROMPT)


def test_bad_input_is_refused():
    small = settle(pipeline())
    with pytest.raises(ValueError, match="shape"):
        SdxlTurbo(small, PROMPT).pixels(latent(1)[:-1])
    with pytest.raises(ValueError, match="prompt"):
        SdxlTurbo(small, " ")
    with pytest.raises(ValueError, match="steps"):
        SdxlTurbo(small, PROMPT, steps=5)
