"""The kinds of servers: what each has to be told, and where it puts its answer; a file for each.

    server.py             what all of them say for themselves; the OpenAI protocol as far as servers share it
    token_ids.py          those whose models can write texts

Every field that shapes the sampling is sent every time: servers fill in what is missing from the model's own
`generation_config.json`, or from defaults that truncate. Each file names the documentation that it was written from.
"""

from django.db import models

from prefmh_web.endpoints.dialects.anthropic import Anthropic
from prefmh_web.endpoints.dialects.azure import Azure, AzureReasoning
from prefmh_web.endpoints.dialects.gemini import Gemini
from prefmh_web.endpoints.dialects.llama_cpp import LlamaCpp
from prefmh_web.endpoints.dialects.ollama import Ollama
from prefmh_web.endpoints.dialects.openai import OpenAI
from prefmh_web.endpoints.dialects.openai_reasoning import OpenAIReasoning
from prefmh_web.endpoints.dialects.openrouter import OpenRouter
from prefmh_web.endpoints.dialects.server import Body, Path, Question, Server
from prefmh_web.endpoints.dialects.sglang import SGLang
from prefmh_web.endpoints.dialects.tgi import Tgi
from prefmh_web.endpoints.dialects.token_ids import WithTokenIds
from prefmh_web.endpoints.dialects.vllm import Vllm

__all__ = ["Body", "Dialect", "Path", "Question", "Server", "WithTokenIds", "dialect_of_host"]


class Dialect(models.TextChoices):
    """The kind of server."""

    OPENAI = "openai", "OpenAI or alike"
    VLLM = "vllm", "vLLM"
    LLAMA_CPP = "llama.cpp", "llama.cpp"
    SGLANG = "sglang", "SGLang"
    OLLAMA = "ollama", "Ollama"
    TGI = "tgi", "Text Generation Inference"
    OPENAI_REASONING = "openai-reasoning", "OpenAI, models that reason"
    AZURE = "azure", "Azure OpenAI"
    AZURE_REASONING = "azure-reasoning", "Azure OpenAI, models that reason"
    OPENROUTER = "openrouter", "OpenRouter"
    ANTHROPIC = "anthropic", "Anthropic"
    GEMINI = "gemini", "Gemini"

    @property
    def server(self) -> Server:
        """How such a server is spoken to."""
        return _SERVERS[self]

    @property
    def has_token_ids(self) -> bool:
        """Whether token ids can go in and come out."""
        return self.server.has_token_ids

    @property
    def has_confinement(self) -> bool:
        """Whether a reply can be confined to some texts."""
        return self.server.has_confinement


def dialect_of_host(host: str) -> Dialect | None:
    """Return the kind of server that is known to answer under a host's name; None where none is."""
    for dialect, server in _SERVERS.items():
        if any(host == name or (name.startswith(".") and host.endswith(name)) for name in server.hosts):
            return dialect
    return None


_SERVERS: dict[Dialect, Server] = {
    Dialect.OPENAI: OpenAI(),
    Dialect.VLLM: Vllm(),
    Dialect.LLAMA_CPP: LlamaCpp(),
    Dialect.SGLANG: SGLang(),
    Dialect.OLLAMA: Ollama(),
    Dialect.TGI: Tgi(),
    Dialect.OPENAI_REASONING: OpenAIReasoning(),
    Dialect.AZURE: Azure(),
    Dialect.AZURE_REASONING: AzureReasoning(),
    Dialect.OPENROUTER: OpenRouter(),
    Dialect.ANTHROPIC: Anthropic(),
    Dialect.GEMINI: Gemini(),
}
