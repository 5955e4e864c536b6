"""A real OpenAI-compatible server over a model that the tests write themselves.

`write_model` writes a llama of about 150,000 random weights with a byte-level tokenizer; `model_server` serves it with
llama.cpp's own server (the wheel `xllamacpp`) in a process of its own, on a free port. With a projector
(`vision_model.py`) it sees pictures.

The last layer of the model is random too, but for two things: after the token that opens the assistant's turn, A, B and
digits are likely; and everywhere, words, spaces and the end of the text are.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gguf
import httpx
import numpy as np

CONTEXT = 2048
WIDTH = 64
_HEADS = 2
_PAD, _START, _END = 0, 1, 2
_CONTROL = ("<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>")
_SPACE = "\u0120"
_WORDS = ("the", "cat", "sea", "and", "was", "old", "dark", "moon", "house", "red")
_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# What the server process runs: xllamacpp has no command line.
_SERVE = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames, parameters.port = ["127.0.0.1"], int(sys.argv[2])
parameters.n_ctx, parameters.n_parallel = 8 * int(sys.argv[3]), 8
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.warmup = False
if sys.argv[4]:
    parameters.mmproj.path, parameters.mmproj_use_gpu = sys.argv[4], False
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()  # ends when the tests end
"""


def write_model(path: Path, seed: int = 20261121, width: int = WIDTH, layers: int = 2) -> Path:
    """Write the model as a GGUF file and return its path.

    Args:
        width: of its embeddings; its hidden layers are twice as wide.
        layers: how many. A wider and deeper one is only slower.
    """
    rng = np.random.default_rng(seed)
    tokens, kinds, merges = _vocabulary()
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(2 * width)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // _HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(_START)
    writer.add_eos_token_id(_END)
    writer.add_pad_token_id(_PAD)
    writer.add_add_bos_token(True)
    writer.add_chat_template(_TEMPLATE)
    for name, tensor in _weights(rng, tokens, width, layers).items():
        writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@contextlib.contextmanager
def model_server(model: Path, port: int, projector: Path | None = None) -> Iterator[str]:
    """Serve the model; yield the base URL, which ends in /v1, once it answers.

    Args:
        projector: what lets it see pictures.

    Raises:
        RuntimeError: it did not start; the message holds what it printed.
    """
    log = model.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(model), str(port), str(CONTEXT), str(projector or "")],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        _wait_until_ready(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def _wait_until_ready(process: subprocess.Popen, url: str, log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, trust_env=False).status_code == httpx.codes.OK:
                return
        time.sleep(0.02)
    raise RuntimeError(f"the model server did not start: {log.read_text(errors='replace')[-2000:]}")


def _vocabulary() -> tuple[list[str], list[int], list[str]]:
    """Return tokens, their types and the merges: control tokens, one token a byte, and ten words, built by merges."""
    tokens = [*_CONTROL, *_byte_characters()]
    merges = []
    for word in _WORDS:
        for end in range(2, len(word) + 1):
            if word[:end] not in tokens:
                tokens.append(word[:end])
                merges.append(f"{word[: end - 1]} {word[end - 1]}")
    kinds = [gguf.TokenType.CONTROL if token in _CONTROL else gguf.TokenType.NORMAL for token in tokens]
    return tokens, kinds, merges


def _byte_characters() -> list[str]:
    """Return the character that stands for each byte in a byte-level tokenizer: itself where it can be printed."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(hidden)) for byte in range(256)]


def _weights(rng: np.random.Generator, tokens: list[str], width: int, layers: int) -> dict[str, np.ndarray]:
    def normal(*shape: int, scale: float = 0.12) -> np.ndarray:
        return scale * rng.standard_normal(shape)

    embedding = normal(len(tokens), width, scale=0.5)
    output = normal(len(tokens), width, scale=0.12)
    # The first coordinate is the same for every token, the second is large for one token only; what stands in the
    # output's first two columns lifts a token everywhere, or as the first of a reply.
    embedding[:, :2] = (2.0, 0.0)
    embedding[tokens.index("<|assistant|>"), 1] = 8.0
    output[:, :2] = 0.0
    everywhere = dict.fromkeys(_WORDS, 1.5) | {_SPACE: 2.0, ".": 1.0, "</s>": 1.0}
    first = {"A": 1.7, "B": 1.6} | {str(digit): 0.8 for digit in range(10)}
    for token, lift in everywhere.items():
        output[tokens.index(token), 0] = lift
    for token, lift in first.items():
        output[tokens.index(token), 1] = lift
    weights = {"token_embd.weight": embedding, "output_norm.weight": np.ones(width), "output.weight": output}
    for layer in range(layers):
        block = f"blk.{layer}"
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights[f"{block}.{name}.weight"] = normal(width, width)
        weights[f"{block}.ffn_gate.weight"] = normal(2 * width, width)
        weights[f"{block}.ffn_up.weight"] = normal(2 * width, width)
        weights[f"{block}.ffn_down.weight"] = normal(width, 2 * width)
        weights[f"{block}.attn_norm.weight"] = weights[f"{block}.ffn_norm.weight"] = np.ones(width)
    return weights
