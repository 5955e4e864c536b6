"""Answers of a model that sees: votes, ratings and detections follow from the pixels that it is sent."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from tests.support.scripted_server import anything_else, chat_reply

# What a picture is to a model that sees, at any size.
TOKENS = 64
_GAIN = 20.0
# By the words of the question: the channel in which it looks.
_CHANNELS = {"salamander": 0, "mushroom": 0, "butterfly": 2}


def pictures(body: dict) -> list[bytes]:
    """Return the files of the pictures in a request."""
    parts = [part for message in body.get("messages", ()) if isinstance(message["content"], list)
             for part in message["content"]]  # fmt: skip
    return [base64.b64decode(part["image_url"]["url"].partition(",")[2]) for part in parts
            if part["type"] == "image_url"]  # fmt: skip


def words(body: dict) -> str:
    """Return what a request says beside its pictures."""
    said = []
    for message in body.get("messages", ()):
        content = message["content"]
        said += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(said)


def brightness(file: bytes, said: str) -> float:
    """Return how bright a picture is in the channel that a question names, 0 to 1."""
    [channel] = {channel for name, channel in _CHANNELS.items() if name in said} or {0}
    with Image.open(io.BytesIO(file)) as opened:
        return float(np.asarray(opened.convert("RGB"))[..., channel].mean()) / 255


def is_there(file: bytes, said: str) -> bool:
    """Say what a detector answers."""
    return brightness(file, said) > 0.5


def sees(body: dict) -> dict:
    """Answer from the pixels; what the test of an endpoint asks as a model of fifty words does."""
    shown, said = pictures(body), words(body)
    reply = _said(body, shown, said) if shown and any(name in said for name in _CHANNELS) else anything_else(body)
    if "usage" in reply:
        reply["usage"]["prompt_tokens"] += TOKENS * len(shown)
    return reply


def _said(body: dict, shown: list[bytes], said: str) -> dict:
    rng = np.random.default_rng(body["seed"])
    if len(shown) == 2:
        first, second = (brightness(each, said) for each in shown)
        chance = 1 / (1 + np.exp(-_GAIN * (first - second) / body["temperature"]))
        return chat_reply("A" if rng.random() < chance else "B")
    if "yes or no" in said:
        return chat_reply("Yes." if is_there(shown[0], said) else "No.")
    return chat_reply(str(round(10 * brightness(shown[0], said))))
