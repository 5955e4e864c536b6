"""The part of the GPU run that is about texts: their distribution, batches of other sizes, speed."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import stats
from transformers import LlamaConfig, LlamaForCausalLM

from prefmh_web.endpoints.local import texts
from prefmh_web.endpoints.local.texts import TransformersModel, Weights
from tests.benchmarks.gpu_run import SEED, Run, Size, fastest
from tests.gpu.repeated_steps import repeated_steps
from tests.gpu.small_models import SamePosition, TopP, WithoutMask, moved, tokenizer_of

if TYPE_CHECKING:
    from sampler.spaces.texts import Writing

PROMPTS = ("w1", "w5 w2 w9 w9 w30 w7 w8", "w3 w3 w4", "w2 w8 w6 w1 w7")
WORDS = tokenizer_of([f"w{number}" for number in range(1, 40)])
END = 0
ENTROPY, ENDING, SOON = 3.0, 0.01, 0.05
"""Of the random models: nats of a token, and the chance to end; a larger one where rows are drawn one by one."""
MISSED = 1e-4
"""The largest share of tokens that float32 may pick otherwise alone than in a batch."""
MIN_P_VALUE, MIN_SHARE = 1e-4, 0.4


def distribution(run: Run) -> None:
    """Draw texts in batches and draw each again alone, by the recorded numbers, in float32 and without a cache."""
    module = random_llama(run, torch.float32)
    again, limit = Again(module), run.size.prefix + run.size.new
    model = _product(module, limit)
    drawn = _drawn(model, run.size, run.size.rows)
    few = drawn[: run.size.compared]
    run.at_most("float32: tokens that the row alone picks otherwise", again.missed(drawn), MISSED)
    off = [abs(again.log_p(row) - model.score(row.prompt, row.tokens)) / len(row.tokens) for row in few]
    run.at_most("float32: score beside the sum of log-probabilities, a token", max(off), 1e-4)
    _first_tokens(run, module, again)
    run.above("control: temperature off by 2 %", again.missed(few, temperature=1.02), MISSED)
    for wrong in (WithoutMask, SamePosition, TopP):
        wrongly = _drawn(_product(wrong(module), limit), run.size, run.size.compared)
        run.above(f"control: {wrong.__name__}", again.missed(wrongly), MISSED)
    half = random_llama(run, torch.bfloat16)
    with _own_sums() as differing:
        rounded = _drawn(_product(half, limit), run.size, run.size.rows)
    run.at_most("bfloat16: tokens that its own logits do not give", differing[0], 0)
    run.found("bfloat16: tokens that float32 picks otherwise", again.missed(rounded))
    apart = Again(half).distances(again, rounded[: run.size.compared])
    run.found("bfloat16: total variation to float32, mean", float(apart.mean()))
    run.found("bfloat16: total variation to float32, largest", float(apart.max()))
    _base_ratios(run, model, few, again)


def batches(run: Run) -> None:
    """Draw the same rows beside others, in batches of several sizes."""
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        module = random_llama(run, dtype, ending=SOON)
        whole, once_more = (_tokens(run, module, run.size.rows) for _ in range(2))
        same = once_more == whole
        run.found(f"{name}: the same batch again", same, "the same", same)
        run.found(f"{name}: rows drawn", _hash(whole))
        for batch in run.size.beside:
            alike = [one == other for one, other in zip(whole, _tokens(run, module, batch), strict=True)]
            run.found(f"{name}: rows alike in batches of {batch}", sum(alike) / len(alike))


def again(run: Run) -> None:
    """Draw the rows of `batches` in another process."""
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        rows = _tokens(run, random_llama(run, dtype, ending=SOON), run.size.rows)
        same = _hash(rows) == run.earlier(f"{name}: rows drawn")
        run.found(f"{name}: the same batch in another process", same, "the same", same)


def speed(run: Run) -> None:
    """Measure tokens a second of each model in bfloat16, and profile a batch of the first one."""
    copied, multiplied = float(run.earlier("bytes a second")), float(run.earlier("operations a second"))
    for shape in run.size.models:
        module = random_llama(run, torch.bfloat16, ending=0.0, shape=shape)
        model = _product(module, run.size.timed)
        # Of the table of tokens only a few rows are read.
        read = sum(each.nbytes for each in module.parameters()) - module.get_input_embeddings().weight.nbytes
        hidden, layers, heads, kept, *_ = run.size.models[shape]
        a_token = 2 * layers * kept * (hidden // heads) * 2
        for batch in run.size.batches:
            work = partial(_begun, model, batch)
            took = fastest(run, work, times=2)
            cache = (batch * a_token * length for length in range(1, run.size.timed + 1))
            # Two operations for each weight, which has two bytes.
            floor = sum(max((read + held) / copied, read * batch / multiplied) for held in cache)
            run.found(f"{shape}, {batch} rows: tokens a second", batch * run.size.timed / took)
            run.found(f"{shape}, {batch} rows: share of the floor", floor / took)
        # Of the largest batch, once the product's way, and once by steps that are repeated as they were recorded.
        usual = work()
        with repeated_steps():
            same = work() == usual
            run.found(f"{shape}: tokens of repeated steps", same, "the same", same)
            share = floor / fastest(run, work, times=2)
        if run.device == "cuda":
            run.above(f"{shape}: share of the floor, the largest batch, repeated steps", share, MIN_SHARE)
            run.found(f"{shape}: peak memory, GiB", torch.cuda.max_memory_allocated() / 2**30)
        if shape == next(iter(run.size.models)):
            with torch.profiler.profile() as profile:
                work()
            table = profile.key_averages().table(sort_by=f"self_{run.device}_time_total", row_limit=20)
            (run.folder / "profile.txt").write_text(table, encoding="utf-8")


@dataclass(frozen=True)
class Row:
    """A text, and the numbers that its tokens after the prefix were drawn by."""

    prompt: str
    prefix: tuple[int, ...]
    tokens: tuple[int, ...]
    uniforms: np.ndarray | None = None


class Again:
    """Distributions of a model's texts by one pass over each text alone, without a cache and without what draws."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def distributions(self, row: Row, temperature: float = 1.0) -> torch.Tensor:
        """Return the distribution of each token of a text, shape (tokens, vocabulary), float64."""
        ids = [*WORDS(row.prompt)["input_ids"], *row.tokens[:-1]]
        with torch.inference_mode():
            logits = self._module(torch.tensor([ids], device=self._module.device), use_cache=False).logits
        return (logits[0, -len(row.tokens) :].double() / temperature).softmax(-1)

    def missed(self, rows: Sequence[Row], temperature: float = 1.0) -> float:
        """Return the share of drawn tokens that the recorded numbers do not pick from these distributions."""
        differ = drawn = 0
        for row in rows:
            distributions = self.distributions(row, temperature)[len(row.prefix) :]
            picked = _picks(distributions, distributions.new_tensor(row.uniforms))
            differ += int((picked != picked.new_tensor(row.tokens[len(row.prefix) :])).sum())
            drawn += len(row.uniforms)
        return differ / drawn

    def log_p(self, row: Row) -> float:
        """Return the log-probability of a text, in nats."""
        return math.fsum(self.log_chances(row))

    def log_chances(self, row: Row) -> list[float]:
        """Return the log-probability of each token, in nats."""
        distributions = self.distributions(row)
        return distributions[range(len(row.tokens)), row.tokens].log().tolist()

    def distances(self, other: Again, rows: Sequence[Row]) -> torch.Tensor:
        """Return the total variation between two models' distributions of each token, shape (tokens,)."""
        return torch.cat([0.5 * (self.distributions(row) - other.distributions(row)).abs().sum(-1) for row in rows])


def random_llama(run: Run, dtype: torch.dtype, *, ending: float = ENDING, shape: str | None = None) -> torch.nn.Module:
    """Return a Llama of random weights, its output scaled to distributions of the wanted entropy and chance to end."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
    *sizes, vocabulary = run.size.models[shape or next(iter(run.size.models))]
    config = LlamaConfig(
        **dict(zip(names, sizes, strict=True)), vocab_size=vocabulary, max_position_embeddings=2048,
        bos_token_id=None, eos_token_id=END, initializer_range=sizes[0] ** -0.5, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(SEED)
    with torch.device(run.device):
        module = LlamaForCausalLM(config).eval().requires_grad_(False)
    _scale(module)
    moved(module, run.device, dtype).lm_head.register_forward_hook(partial(_with_end, ending))
    return module


def _product(module: torch.nn.Module, limit: int) -> TransformersModel:
    """Return what the product draws with."""
    return TransformersModel(Weights(module, WORDS), limit=limit, prompts=PROMPTS)


def _scale(module: torch.nn.Module) -> None:
    """Multiply the output until a token's distribution has the wanted entropy, in the mean over some contexts."""
    ids = torch.arange(256, device=module.device).reshape(8, 32) % module.config.vocab_size
    with torch.inference_mode():
        logits = module(ids).logits.flatten(0, 1).double()
    low, high = 1e-3, 1e3
    for _ in range(40):
        middle = math.sqrt(low * high)
        distributions = torch.distributions.Categorical(logits=logits * middle)
        low, high = (middle, high) if float(distributions.entropy().mean()) > ENTROPY else (low, middle)
    module.lm_head.weight.data *= low


def _with_end(ending: float, _module: object, _given: object, logits: torch.Tensor) -> torch.Tensor:
    """Give the end token its chance, whatever the others say."""
    logits[..., END] = -math.inf
    if ending:
        logits[..., END] = logits.logsumexp(-1) + math.log(ending / (1 - ending))
    return logits


def _generators(rows: int) -> list[np.random.Generator]:
    return [np.random.default_rng([SEED, row]) for row in range(rows)]


def _drawn(model: TransformersModel, size: Size, rows: int, batch: int | None = None) -> list[Row]:
    """Draw rows of several prompts, with prefixes of 0 tokens to the longest, in batches of so many."""
    prompts = [PROMPTS[row % len(PROMPTS)] for row in range(rows)]
    lengths = [row * 5 % (size.prefix + 1) for row in range(rows)]
    prefixes = [tuple(1 + (length + index) % 39 for index in range(length)) for length in lengths]
    rngs, written = _generators(rows), []
    for first in range(0, rows, batch or rows):
        some = slice(first, first + (batch or rows))
        written += model.continue_batch(rngs[some], prompts[some], prefixes[some])
    # The numbers again: one for each token drawn.
    counts = [len(tokens) - length for tokens, length in zip(written, lengths, strict=True)]
    uniforms = [rng.random(count) for rng, count in zip(_generators(rows), counts, strict=True)]
    return [Row(*row) for row in zip(prompts, prefixes, written, uniforms, strict=True)]


def _begun(model: TransformersModel, rows: int) -> list[tuple[int, ...]]:
    """Draw whole rows of one prompt."""
    return model.continue_batch(_generators(rows), [PROMPTS[0]] * rows, [()] * rows)


def _tokens(run: Run, module: torch.nn.Module, batch: int) -> list[tuple[int, ...]]:
    """Return the first rows' tokens, drawn in batches of so many."""
    model = _product(module, run.size.prefix + run.size.new)
    drawn = _drawn(model, run.size, max(batch, run.size.compared), batch)
    return [row.tokens for row in drawn[: run.size.compared]]


def _hash(rows: Sequence[tuple[int, ...]]) -> str:
    return sha256(json.dumps(rows).encode()).hexdigest()


def _picks(distributions: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Return how many sums of a distribution, from its first token on, are at most the number: the token it picks."""
    sums = distributions.cumsum(-1)
    return (sums <= (uniforms.to(sums.device) * sums[:, -1])[:, None]).sum(-1)


@contextlib.contextmanager
def _own_sums() -> Iterator[list[int]]:
    """Count the drawn tokens that are not those which sums over the same logits give."""
    product, differing = texts.choose, [0]

    def compared(logits: torch.Tensor, temperature: float, uniforms: torch.Tensor) -> torch.Tensor:
        tokens = product(logits, temperature, uniforms)
        differing[0] += int((_picks((logits.double() / temperature).softmax(-1), uniforms) != tokens).sum())
        return tokens

    texts.choose = compared
    try:
        yield differing
    finally:
        texts.choose = product


def _first_tokens(run: Run, module: torch.nn.Module, again: Again) -> None:
    """Compare the first tokens of many rows of one prompt with their distribution, by chi-square."""
    count = run.size.firsts
    written = _begun(_product(module, limit=1), count)
    expected = count * again.distributions(Row(PROMPTS[0], (), (END,)))[0].cpu().numpy()
    seen = np.bincount([tokens[0] for tokens in written], minlength=len(expected))
    often = expected >= 10
    groups = [np.append(each[often], each[~often].sum()) for each in (seen, expected)]
    run.above(
        "float32: first tokens beside their distribution, p-value",
        float(stats.chisquare(*groups).pvalue),
        MIN_P_VALUE,
    )


def _base_ratios(run: Run, model: TransformersModel, rows: Sequence[Row], again: Again) -> None:
    """Compare the suffix kernel's base ratios with p0 and q of both ways, which are worked out anew."""
    # Kernels need RDKit, which nothing else here does: without the archive this is recorded as a failure, at the end.
    from sampler.kernels.suffix import Suffix
    from sampler.spaces.texts import Writing, WrittenTexts

    states = [Writing(row.prompt, row.tokens, "") for row in rows]
    for cut in ("limit", "length"):
        off, log_move = [], partial(_log_move, again, model.limit, cut)
        moves = Suffix(WrittenTexts(model), cut).propose_batch(_generators(len(states)), states)
        for state, move in zip(states, moves, strict=True):
            log_ratio = log_move(move.state, state) - log_move(state, move.state)
            off.append(abs(log_ratio - move.log_r0) / max(len(state.tokens), len(move.state.tokens)))
        run.at_most(f"float32: base ratio of cuts by {cut}, off by, a token", max(off), 1e-3)


def _log_move(again: Again, limit: int, cut: str, state: Writing, proposal: Writing) -> float:
    """Return log p0(x) + log q(x'|x): the cut falls where both still agree, and the rest is written anew."""
    begun, written = (again.log_chances(Row(each.prompt, (), each.tokens)) for each in (state, proposal))
    pairs = list(zip(state.tokens, proposal.tokens, strict=False))
    shared = next((index for index, (one, other) in enumerate(pairs) if one != other), len(pairs))
    log_ends = [math.fsum(written[kept:]) for kept in range(min(shared + 1, len(state.tokens)))]
    log_q = float(np.logaddexp.reduce(log_ends)) - math.log(limit if cut == "limit" else len(state.tokens))
    return math.fsum(begun) + log_q
