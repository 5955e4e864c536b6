"""The words in which a model is asked, where its researcher writes them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from pydantic import ValidationError as InvalidTemplate

import sampler
from sampler import judges as model_judges

_PLACES = (
    "Write {{question}} for the question, {{first}} and {{second}} for the two objects ({{object}} where one is rated) "
    "and {{context}} for the columns that are shown. Objects are put between quotation marks."
)


class PromptFields(forms.Form):
    """A system message and a user template; both empty for this program's own words."""

    prompt_preset = forms.ChoiceField(
        choices=[
            ("", "Choose words to begin with"),
            *((name, each.title) for name, each in model_judges.PRESETS.items()),
        ],
        required=False,
        label="Preset",
        help_text="Fills in the fields below, and the question where the preset has one. You can change everything.",
    )
    prompt_system = forms.CharField(
        required=False,
        strip=False,
        max_length=model_judges.LONGEST_TEMPLATE,
        widget=forms.Textarea(attrs={"rows": 4, "class": "template"}),
        label="System message",
    )
    prompt_user = forms.CharField(
        required=False,
        strip=False,
        max_length=model_judges.LONGEST_TEMPLATE,
        widget=forms.Textarea(attrs={"rows": 10, "class": "template"}),
        label="User template",
        help_text=_PLACES,
    )
    prompt_completion = forms.BooleanField(
        required=False,
        label="Complete the prompt: for base models",
        help_text="The server gets the user template as it is, without a chat template, and the model goes on from its "
        "end. For vLLM, llama.cpp, SGLang and TGI.",
    )

    @property
    def has_own_prompt(self) -> bool:
        """True where there is something in the fields of the prompt, or wrong with them."""
        names = ("prompt_system", "prompt_user", "prompt_completion")
        return any(self[name].value() or self[name].errors for name in names)

    def clean(self):
        """Refuse words without a user template."""
        super().clean()
        data = self.cleaned_data
        if (data.get("prompt_system") or data.get("prompt_completion")) and not data.get("prompt_user"):
            message = "Write the user template, too, or leave all fields of the prompt empty."
            self.add_error("prompt_user", ValidationError(message))
        elif data.get("prompt_user"):
            try:
                self.template()
            except InvalidTemplate as error:
                for each in error.errors():
                    self.add_error(f"prompt_{each['loc'][0]}", each["msg"].removeprefix("Value error, "))
        return data

    def template(self) -> model_judges.PromptTemplate | None:
        """Return the researcher's words; None where there are none."""
        data = self.cleaned_data
        if not data.get("prompt_user"):
            return None
        return model_judges.PromptTemplate(
            system=data.get("prompt_system", ""),
            user=data["prompt_user"],
            completion=data.get("prompt_completion", False),
        )

    def own_words(self) -> dict[str, Any]:
        """Return them as a field of the config's source, which is absent where there are none."""
        template = self.template()
        return {} if template is None else {"prompt": template.model_dump(mode="json")}

    def show_problem(self, field: str, message: str) -> None:
        """Show once what is wrong with the prompt.

        Args:
            field: of the template.
        """
        name = f"prompt_{field}" if f"prompt_{field}" in self.fields else "prompt_user"
        if message not in self.errors.get(name, ()):
            self.add_error(name, message)


def prompt_fields_of(source: sampler.ModelSource) -> dict[str, Any]:
    """Return the fields' values that make the words of a source."""
    if source.prompt is None:
        return {}
    return {f"prompt_{name}": getattr(source.prompt, name) for name in ("system", "user", "completion")}
