"""Azure OpenAI: the models of OpenAI behind deployments, each with its own path.

https://learn.microsoft.com/en-us/azure/ai-services/openai/reference (as of 2026-11-23): the key goes into `api-key`,
the deployment stands in the path and the version in the query, and the latest stable version is 2024-10-21. Reasoning
models need a preview: https://learn.microsoft.com/en-us/azure/ai-services/openai/how-to/reasoning (as of 2026-11-23).
A filtered prompt is a 400 with the code `content_filter`, a filtered answer has that as its `finish_reason`:
https://learn.microsoft.com/en-us/azure/ai-services/openai/concepts/content-filter (as of 2026-11-23).
"""

from urllib.parse import quote

from prefmh_web.endpoints.dialects.openai import OpenAI
from prefmh_web.endpoints.dialects.openai_reasoning import OpenAIReasoning
from prefmh_web.endpoints.dialects.server import Path

_VERSION, _REASONING_VERSION = "2024-10-21", "2025-04-01-preview"


class Azure(OpenAI):
    """Chat models of OpenAI on Azure; the model's name is that of the deployment."""

    hosts = (".openai.azure.com", ".cognitiveservices.azure.com")
    key_header = "api-key"
    key_prefix = ""

    def path(self, model: str) -> Path:
        """Return the path of a deployment."""
        return _deployment(model, _VERSION)


class AzureReasoning(OpenAIReasoning):
    """Models of OpenAI on Azure that think before they answer."""

    key_header = "api-key"
    key_prefix = ""

    def path(self, model: str) -> Path:
        """Return the path of a deployment."""
        return _deployment(model, _REASONING_VERSION)


def _deployment(name: str, version: str) -> Path:
    return Path(f"/openai/deployments/{quote(name, safe='')}/chat/completions?api-version={version}", is_beside=True)
