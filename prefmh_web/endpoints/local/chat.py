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
        ValueError: nothing is left of the prompt, so there is no token for the model to start from; or a part of a
            chat holds a special token, which the model would not read as a part of it.
    """
    if getattr(tokenizer, "chat_template", None):
        _check_plain(tokenizer, prompt=prompt, system=system)
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


def _check_plain(tokenizer: Any, **parts: str) -> None:
    """Raise ValueError where a part of a chat holds a token that ends a turn, or has another meaning of its own.

    The template is applied before the chat is made into tokens, so such a token would work as if the template had
    written it.
    """
    special = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
    for name, text in parts.items():
        if held := [token for token in special if token in text]:
            raise ValueError(
                f"{name} must not hold {held[0]!r}: the model does not read it as words. Take it out, or put a space "
                "into it"
            )
