"""A prompt as token ids, through the model's chat template if it has one."""

from typing import Any

from sampler import Tokens

# Some templates write today's date into the prompt. p0 would change at midnight, and a chain would change its target.
_FIXED_DATE = "{% macro strftime_now(format) %}01 Jan 2025{% endmacro %}"


def prompt_ids(tokenizer: Any, system: str, prompt: str) -> Tokens:
    """Return the tokens that stand before the model's answer.

    Args:
        tokenizer: of `transformers`.
        system: the system message; none if empty. Without a chat template it stands before the prompt.

    Raises:
        ValueError: nothing is left of the prompt, so there is no token for the model to start from.
    """
    if getattr(tokenizer, "chat_template", None):
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        template = tokenizer.get_chat_template()
        if "strftime_now" in template:
            template = _FIXED_DATE + template
        ids = tokenizer.apply_chat_template(
            messages, chat_template=template, add_generation_prompt=True, tokenize=True, return_dict=False
        )
    else:
        ids = tokenizer(f"{system}\n\n{prompt}" if system else prompt)["input_ids"]
    if not ids:
        raise ValueError(f"prompt must give at least one token; {prompt!r} gives none")
    return tuple(int(token) for token in ids)
