"""SDXL-Turbo as a decoder: the latent noise is the state, and the picture is a function of it (the paper, app. E).

    z, 4 × 64 × 64 numbers  →  1 to 4 steps of the UNet under a fixed prompt  →  the VAE  →  512 × 512 pixels

The published scheduler is an ancestral one, which adds noise between steps: with more than one step the picture would
not be a function of z. Euler's method on the same noise levels (`EulerDiscreteScheduler`) adds none; with one step the
two are the same. No guidance, as SDXL-Turbo was distilled (Sauer et al. 2024). One picture at a time, plain attention
and deterministic convolutions, so that the same z gives the same pixels on the same machine. Another GPU may round
otherwise, by a level or so.
"""

import json
import threading
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prefmh_web.endpoints.local import device_of, needs, reading

torch = needs("torch")

_MAX_STEPS = 4
_PARTS = ("unet", "vae", "text_encoder", "text_encoder_2")
# Of a pipeline, since its scheduler keeps the step it is at.
_lock = threading.Lock()


class SdxlTurbo:
    """The pictures of one prompt.

    Args:
        pipeline: a `StableDiffusionXLPipeline`, as `settle` returns it.
        prompt: what every picture shows.
        steps: of the UNet, 1 to 4.

    Raises:
        ValueError: the prompt is empty or `steps` is out of range.
    """

    def __init__(self, pipeline: Any, prompt: str, *, steps: int = 1) -> None:
        if not prompt.strip():
            raise ValueError("prompt must say what the pictures show; it is empty")
        if not 1 <= steps <= _MAX_STEPS:
            raise ValueError(f"steps must be 1 to {_MAX_STEPS}, not {steps}")
        self._pipeline, self._steps = pipeline, steps
        latent = pipeline.unet.config
        self._shape = (1, latent.in_channels, latent.sample_size, latent.sample_size)
        self.dimension = int(np.prod(self._shape))
        """How many numbers a latent has: 16384 for SDXL-Turbo."""
        with _lock, torch.inference_mode():
            embeds, _, pooled, _ = pipeline.encode_prompt(prompt, do_classifier_free_guidance=False)
        self._prompt = {"prompt_embeds": embeds, "pooled_prompt_embeds": pooled}

    def pixels(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
        """Return the picture of a vector of shape (dimension,): sRGB, shape (512, 512, 3) for SDXL-Turbo.

        Raises:
            ValueError: the vector has another shape.
            ArithmeticError: the model gave numbers that are not finite.
        """
        if vector.shape != (self.dimension,):
            raise ValueError(f"vector must have the shape ({self.dimension},), not {vector.shape}")
        noise = torch.tensor(vector, dtype=torch.float32).reshape(self._shape)
        unet, vae = self._pipeline.unet, self._pipeline.vae
        exact = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
        with _lock, torch.inference_mode(), exact:
            clean = self._pipeline(
                **self._prompt,
                latents=noise.to(unet.device, unet.dtype),
                num_inference_steps=self._steps,
                guidance_scale=0.0,
                output_type="latent",
            ).images
            picture = vae.decode(clean.to(vae.dtype) / vae.config.scaling_factor).sample[0].float().cpu()
        if not torch.isfinite(picture).all():
            raise ArithmeticError("the decoder gave numbers that are not finite")
        levels = ((picture / 2 + 0.5).clamp(0, 1) * 255).round().to(torch.uint8)
        shown: npt.NDArray[np.uint8] = levels.permute(1, 2, 0).contiguous().numpy()
        return shown


@lru_cache(maxsize=16)
def load_decoder(folder: Path, device: str | None, prompt: str, steps: int) -> SdxlTurbo:
    """Return a decoder of the pipeline in a folder; its prompt goes through the model's text encoders once.

    Args:
        folder: as the model is published for `diffusers`: model_index.json and a folder for each part, with its plain
            weights or one variant of them, such as fp16.
        device: of PyTorch; CUDA if there is any, else the CPU.

    Raises:
        ImportError: the extra is missing.
        FileNotFoundError: the folder, or safetensors of one of its parts, are missing.
        ValueError: what lies in it is no pipeline of Stable Diffusion XL, or not a whole one; the device is not there;
            or as `SdxlTurbo` does.
    """
    return SdxlTurbo(_pipeline(folder, device), prompt, steps=steps)


@cache
def _pipeline(folder: Path, device: str | None) -> Any:
    """Return the pipeline in a folder, loaded once: float16 on a GPU but for the VAE, float32 on the CPU."""
    diffusers, place = needs("diffusers"), device_of(device)
    with reading("LOCAL_IMAGE_MODELS", folder, _PARTS) as variant:
        _check_kind(folder)
        pipeline = diffusers.StableDiffusionXLPipeline.from_pretrained(
            folder,
            # SDXL's VAE overflows in float16.
            dtype={"default": torch.float32 if place.type == "cpu" else torch.float16, "vae": torch.float32},
            variant=variant,
            use_safetensors=True,
            local_files_only=True,
            add_watermarker=False,
        )
    return settle(pipeline.to(place))


def _check_kind(folder: Path) -> None:
    try:
        kind = json.loads((folder / "model_index.json").read_text(encoding="utf-8"))["_class_name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"model_index.json cannot be read, so {folder} is no pipeline of diffusers") from error
    if not str(kind).startswith("StableDiffusionXL"):
        raise ValueError(f"{folder} must hold a Stable Diffusion XL pipeline such as SDXL-Turbo, not a {kind}")


def settle(pipeline: Any) -> Any:
    """Take out of a pipeline what makes a picture depend on anything but the latent, and return it."""
    diffusers = needs("diffusers")
    attention = needs("diffusers.models.attention_processor")
    pipeline.scheduler = diffusers.EulerDiscreteScheduler.from_config(
        pipeline.scheduler.config, timestep_spacing="trailing"
    )
    for part in (pipeline.unet, pipeline.vae):
        part.set_attn_processor(attention.AttnProcessor())
    pipeline.set_progress_bar_config(disable=True)
    return pipeline
