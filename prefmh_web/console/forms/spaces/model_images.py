"""Pictures that one of the site's image models makes of a latent vector."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.choices import offer
from prefmh_web.console.forms.spaces.images import ImagesForm, moves_line
from prefmh_web.console.unstored import OF_NOISE
from prefmh_web.endpoints.local.models import image_model_names, latent_dimension


class ModelImagesForm(ImagesForm):
    """Which model, what its pictures show, and how the latent is moved."""

    kind = "model-images"
    title = "Images from a diffusion model"
    about = "A model on this site makes images of what you describe, beginning with noise."
    samples = (OF_NOISE,)
    main = ("model", "prompt")
    field_of: ClassVar = {
        "space.model": "model",
        "space.prompt": "prompt",
        "space.steps": "model_steps",
        "space.dimension": "model",
        "kernel": "small_share",
    }
    field_order = ("model", "prompt", "model_steps")

    model = forms.ChoiceField(help_text="Runs on this site.")
    prompt = forms.CharField(
        max_length=1_000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What every image shows. The model reads only the first 75 tokens, about 50 words.",
    )
    model_steps = forms.IntegerField(
        min_value=1,
        max_value=4,
        initial=1,
        label="Sampling steps",
        help_text="1 to 4. More steps take longer and give finer detail.",
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        offer(self, "model", [(name, name) for name in image_model_names()])

    @classmethod
    def is_offered(cls) -> bool:
        return bool(image_model_names())

    def clean_model(self) -> str:
        try:
            self._dimension = latent_dimension(self.cleaned_data["model"])
        except ValueError as error:
            raise ValidationError(f"{error}.") from error
        return self.cleaned_data["model"]

    def space(self) -> dict:
        data = self.cleaned_data
        described = {"kind": self.kind, "model": data["model"], "prompt": data["prompt"], "steps": data["model_steps"]}
        return described if self._dimension is None else described | {"dimension": self._dimension}

    @classmethod
    def initial_of(cls, config: sampler.ChainConfig) -> dict:
        space: Any = config.space
        fields = {"model": space.model, "prompt": space.prompt, "model_steps": space.steps}
        return super().initial_of(config) | fields

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        config = campaign.config
        space: Any = config.space
        steps = "1 step" if space.steps == 1 else f"{space.steps} steps"
        return [
            ("Objects", f"images from {space.model}, {steps}, latents of {space.dimension} numbers"),
            ("Prompt", space.prompt),
            ("Proposals", moves_line(config)),
        ]
