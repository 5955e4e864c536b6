"""A Stable Diffusion XL pipeline of a few thousand random weights, built as SDXL-Turbo is."""

import pytest
import torch

diffusers = pytest.importorskip("diffusers", reason="needs the extra [gpu]")

from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def words(context):
    """Return a tokeniser of letters, whose texts have so many tokens."""
    known = ["<|startoftext|>", "<|endoftext|>", *LETTERS, *(f"{letter}</w>" for letter in LETTERS)]
    return CLIPTokenizer(vocab={word: index for index, word in enumerate(known)}, merges=[], model_max_length=context)


def pipeline(device="cpu"):
    """Return a pipeline of 4 × 8 × 8 latents and 16 × 16 pixels, its scheduler the ancestral one.

    On a GPU it has the precision that a site's has there: float16, but for the VAE.
    """
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
    tokenizer = words(context=24)
    scheduler = diffusers.EulerAncestralDiscreteScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", timestep_spacing="trailing"
    )
    whole = diffusers.StableDiffusionXLPipeline(
        vae, CLIPTextModel(shape), CLIPTextModelWithProjection(shape), tokenizer, tokenizer, unet, scheduler,
        add_watermarker=False,
    )  # fmt: skip
    whole.set_progress_bar_config(disable=True)
    if device != "cpu":
        whole.to(device, torch.float16)
        whole.vae.to(torch.float32)
    return whole
