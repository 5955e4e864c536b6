"""The part of the run for a machine with a GPU that is about pictures: SDXL-Turbo's shape with random weights.

As a program it draws one picture of a pipeline in a folder, and prints its hash:

    python -m tests.benchmarks.gpu_images FOLDER DEVICE STEPS
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import diffusers
import numpy as np
import torch
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

from prefmh_web.endpoints.local.images import SdxlTurbo, load_decoder
from sampler.kernels.crank_nicolson import CrankNicolson
from sampler.spaces.latents import Latent, standard_normals
from tests.benchmarks.gpu_run import ROOT, SEED, TINY, Run, fastest
from tests.gpu.small_pipeline import pipeline, words

PROMPT, STEPS, AGAIN = "a red mushroom", (1, 2, 4), 10
NO_STEP, STEP = 1e-15, 0.08
"""β; of the first, which no config takes, nothing is left on the grid of float32."""


def images(run: Run) -> None:
    """Save a pipeline, load it as a site does, and look at its pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "turbo"
        made = pipeline() if run.size is TINY else _pipeline(run.device)
        made.save_pretrained(folder)
        del made
        if run.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        _same_pixels(run, folder)
        decoder = load_decoder(folder, run.device, PROMPT, STEPS[0])
        _steps_of_the_kernel(run, decoder)
        for steps in STEPS:
            work = partial(load_decoder(folder, run.device, PROMPT, steps).pixels, latent(decoder).vector)
            run.found(f"{steps} steps: images a second", 1 / fastest(run, work))
        if run.device == "cuda":
            run.found("peak memory, GiB", torch.cuda.max_memory_allocated() / 2**30)
        _attention(run, folder)


def latent(decoder: SdxlTurbo, number: int = 0) -> Latent:
    """Return a latent on the grid that image models have."""
    return Latent.of(standard_normals(np.random.default_rng([SEED, number]), decoder.dimension), "<f4")


def _same_pixels(run: Run, folder: Path) -> None:
    for steps in STEPS:
        decoder = load_decoder(folder, run.device, PROMPT, steps)
        draw = partial(decoder.pixels, latent(decoder).vector)
        first = draw()
        run.found(f"{steps} steps: levels of a picture, standard deviation", float(first.std()))
        same = all(np.array_equal(draw(), first) for _ in range(AGAIN))
        run.found(f"{steps} steps: pixels of {AGAIN} draws", same, "the same", same)
        command = [sys.executable, "-m", "tests.benchmarks.gpu_images", str(folder), run.device, str(steps)]
        if steps == STEPS[0]:
            elsewhere = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
            same = elsewhere.stdout.strip() == hash_of(first)
            run.found(f"{steps} steps: pixels in another process", same, "the same", same)
            others = {hash_of(decoder.pixels(latent(decoder, each).vector)) for each in range(1, 1 + run.size.pictures)}
            same = np.array_equal(draw(), first)
            run.found(f"{steps} steps: pixels after {run.size.pictures} others", same, "the same", same)
            distinct = len(others | {hash_of(first)}) == 1 + run.size.pictures
            run.found(f"control: {run.size.pictures} others", distinct, "all distinct", distinct)


def _steps_of_the_kernel(run: Run, decoder: SdxlTurbo) -> None:
    begun = latent(decoder)
    first = decoder.pixels(begun.vector)
    for beta, changes in ((NO_STEP, False), (STEP, True)):
        moved = CrankNicolson(beta).propose(np.random.default_rng(SEED), begun).state
        differs = not np.array_equal(decoder.pixels(moved.vector), first)
        run.found(f"a step of beta {beta} changes pixels", differs, str(changes), differs == changes)


def _attention(run: Run, folder: Path) -> None:
    """Compare the plain attention that the product has with the fused one: speed, and difference of pixels."""
    decoder = load_decoder(folder, run.device, PROMPT, STEPS[0])
    draw: Callable[[], np.ndarray] = partial(decoder.pixels, latent(decoder).vector)
    plain, parts = draw(), (decoder._pipeline.unet, decoder._pipeline.vae)
    for name, kind in (("fused", AttnProcessor2_0), ("plain", AttnProcessor)):
        for part in parts:
            part.set_attn_processor(kind())
        run.found(f"{name} attention: images a second", 1 / fastest(run, draw))
        drawn = draw()
        run.found(f"{name} attention: levels apart, at most", int(np.abs(drawn.astype(int) - plain).max()))
        same = all(np.array_equal(draw(), drawn) for _ in range(AGAIN))
        run.found(f"{name} attention: pixels of {AGAIN} draws", "the same" if same else "not the same")


def hash_of(pixels: np.ndarray) -> str:
    """Return a hash of a picture."""
    return sha256(pixels.tobytes()).hexdigest()


def _pipeline(device: str) -> diffusers.StableDiffusionXLPipeline:
    """Return a pipeline of SDXL-Turbo's shape, made on the device: float16, the VAE in float32."""
    torch.manual_seed(SEED)
    tokenizer = words(context=77)
    shape = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1, "vocab_size": 49_408}
    large = {"hidden_size": 1280, "intermediate_size": 5120, "num_attention_heads": 20, "num_hidden_layers": 32}
    with torch.device(device):
        vae = diffusers.AutoencoderKL(
            block_out_channels=(128, 256, 512, 512), layers_per_block=2, sample_size=1024, scaling_factor=0.13025,
            down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        )  # fmt: skip
        torch.set_default_dtype(torch.float16)
        unet = diffusers.UNet2DConditionModel(
            sample_size=64, block_out_channels=(320, 640, 1280), layers_per_block=2,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=(5, 10, 20), transformer_layers_per_block=(1, 2, 10), cross_attention_dim=2048,
            use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=2816,
        )  # fmt: skip
        one = CLIPTextModel(CLIPTextConfig(**shape, hidden_size=768, intermediate_size=3072, num_attention_heads=12))
        other = CLIPTextModelWithProjection(CLIPTextConfig(**shape, **large, projection_dim=1280, hidden_act="gelu"))
        torch.set_default_dtype(torch.float32)
    scheduler = diffusers.EulerAncestralDiscreteScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", timestep_spacing="trailing"
    )
    return diffusers.StableDiffusionXLPipeline(
        vae, one, other, tokenizer, tokenizer, unet, scheduler, add_watermarker=False
    )


if __name__ == "__main__":
    drawn_by = load_decoder(Path(sys.argv[1]), sys.argv[2], PROMPT, int(sys.argv[3]))
    print(hash_of(drawn_by.pixels(latent(drawn_by).vector)))
