"""What a GPU computes for this product, checked and measured: a run of a few minutes on a machine lent for as long.

    python -m tests.benchmarks.gpu --out FOLDER --archive gpu-packages.tar.xz       which `.ci/gpu_archive` packs
    python -m tests.benchmarks.gpu --out FOLDER --tiny --device cpu

Weights are random and made on the device, so nothing is carried along but packages. Each part is a process of its own
with a limit of its own, the most valuable ones first:

    versions   what is here; without CUDA nothing else is tried
    card       bytes copied and products in bfloat16 a second: what the floor of the speed is made of
    law        texts are drawn from the law that they are said to be drawn from: each row again, alone, without a cache,
               in float32; wrong models and a wrong temperature must be found
    batches    the same rows in batches of other sizes
    again      and in another process
    speed      tokens a second beside the floor: weights and cache are read once a step, or products take longer
    tests      `tests/gpu`

A part that fails or takes too long is recorded and the next one begun; so is what it had found. FOLDER gets one JSON
line for each finding at once, `gpu.json` with all of them at the end, and `profile.txt`. The last output is a table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import stats
from transformers import LlamaConfig, LlamaForCausalLM

from prefmh_web.endpoints.local import texts
from prefmh_web.endpoints.local.texts import TransformersModel, Weights
from tests.gpu.small_models import SamePosition, TopP, WithoutMask, moved, tokenizer_of

if TYPE_CHECKING:
    from sampler.spaces.texts import Writing

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = ("w1", "w5 w2 w9 w9 w30 w7 w8", "w3 w3 w4", "w2 w8 w6 w1 w7")
WORDS = tokenizer_of([f"w{number}" for number in range(1, 40)])
END, SEED = 0, 20261128
ENTROPY, ENDING, SOON = 3.0, 0.01, 0.05
"""Of the random models' laws: nats of a token, and the chance to end; a larger one where rows are drawn one by one."""
MISSED = 1e-4
"""The largest share of tokens that float32 may pick otherwise alone than in a batch."""
LEAST_P_VALUE, LEAST_SHARE = 1e-4, 0.4
TESTS_LIMIT = 80


@dataclass(frozen=True)
class Size:
    """How large a run is.

    Args:
        models: hidden size, layers, heads, key-value heads, inner size and vocabulary of each model whose speed is
            measured; the law of the first one is checked.
        rows: of the largest batch.
        new: tokens drawn for each row; `timed` of them where only time counts.
        compared: rows that are drawn in batches of every size.
        prefix: the longest prefix, in tokens.
        firsts: rows of one prompt whose first tokens are counted.
        batches: rows of a batch whose speed is measured; `beside`, whose tokens are compared.
        copied, product: numbers copied, and rows of the square matrices multiplied.
    """

    models: dict[str, tuple[int, int, int, int, int, int]]
    rows: int
    new: int
    timed: int
    compared: int
    prefix: int
    firsts: int
    batches: tuple[int, ...]
    beside: tuple[int, ...]
    copied: int
    product: int


REAL = Size(
    {"1.2 B": (2048, 16, 32, 8, 8192, 128_256), "8 B": (4096, 32, 32, 8, 14_336, 128_256)},
    rows=256, new=192, timed=64, compared=32, prefix=150, firsts=20_000, batches=(1, 16, 64, 256),
    beside=(1, 7, 64), copied=2**30, product=8192,
)  # fmt: skip
TINY = Size(
    {"tiny": (32, 2, 4, 2, 64, 400)},
    rows=24, new=12, timed=6, compared=6, prefix=9, firsts=2000, batches=(1, 24), beside=(1, 7),
    copied=2**20, product=128,
)  # fmt: skip


class Run:
    """One part's findings, each written down as soon as it is there."""

    def __init__(self, part: str, arguments: argparse.Namespace) -> None:
        self.part, self.folder, self.device = part, arguments.out, arguments.device
        self.size = TINY if arguments.tiny else REAL

    def found(self, name: str, value: object, wanted: str = "", good: bool | None = None) -> None:
        """Write a finding down.

        Args:
            name: what was looked at.
            value: what JSON can hold.
            wanted: in words; empty for what is only reported.
            good: whether the value is as wanted; None likewise.
        """
        line = {"part": self.part, "name": name, "value": value, "wanted": wanted, "good": good}
        with (self.folder / "findings.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"  {name}: {_shown(value)}", flush=True)

    def at_most(self, name: str, value: float, bound: float) -> None:
        """Write a finding down that is good up to a bound."""
        self.found(name, value, f"<= {bound}", value <= bound)

    def above(self, name: str, value: float, bound: float) -> None:
        """Write a finding down that is good above a bound."""
        self.found(name, value, f"> {bound}", value > bound)

    def earlier(self, name: str) -> object:
        """Return what was found under a name, by any part; raises KeyError where nothing was."""
        return {line["name"]: line["value"] for line in findings(self.folder)}[name]


def findings(folder: Path) -> list[dict]:
    """Return all findings so far."""
    return [json.loads(line) for line in (folder / "findings.jsonl").read_text(encoding="utf-8").splitlines()]


def versions(run: Run) -> None:
    """Say what is here.

    Raises:
        RuntimeError: CUDA is wanted and not there.
    """
    run.found("python", platform.python_version())
    for name in ("torch", "transformers", "numpy"):
        run.found(name, metadata.version(name))
    if run.device == "cuda":
        if not torch.cuda.is_available():
            raise RuntimeError("there is no CUDA here")
        card = torch.cuda.get_device_properties(0)
        run.found("card", f"{card.name}, {card.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}")


def card(run: Run) -> None:
    """Measure how fast bytes are copied and matrices multiplied."""
    source = torch.zeros(run.size.copied, dtype=torch.bfloat16, device=run.device)
    target, width = torch.empty_like(source), run.size.product
    one, other = (torch.randn(width, width, device=run.device, dtype=torch.bfloat16) for _ in range(2))
    # Each byte is read and written.
    run.found("bytes a second", 2 * source.nbytes / _fastest(run, lambda: target.copy_(source)))
    run.found("operations a second", 2 * width**3 / _fastest(run, lambda: one @ other))


def law(run: Run) -> None:
    """Draw texts in batches and draw each again alone, by the recorded numbers, from float32 laws without a cache."""
    module = _made(run, torch.float32)
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
    half = _made(run, torch.bfloat16)
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
        module = _made(run, dtype, ending=SOON)
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
        rows = _tokens(run, _made(run, dtype, ending=SOON), run.size.rows)
        same = _hash(rows) == run.earlier(f"{name}: rows drawn")
        run.found(f"{name}: the same batch in another process", same, "the same", same)


def speed(run: Run) -> None:
    """Measure tokens a second of each model in bfloat16, and profile a batch of the first one."""
    copied, multiplied = float(run.earlier("bytes a second")), float(run.earlier("operations a second"))
    for shape in run.size.models:
        module = _made(run, torch.bfloat16, ending=0.0, shape=shape)
        model = _product(module, run.size.timed)
        # Of the table of tokens only a few rows are read.
        read = sum(each.nbytes for each in module.parameters()) - module.get_input_embeddings().weight.nbytes
        hidden, layers, heads, kept, *_ = run.size.models[shape]
        a_token = 2 * layers * kept * (hidden // heads) * 2
        for batch in run.size.batches:
            work = partial(model.continue_batch, _generators(batch), [PROMPTS[0]] * batch, [()] * batch)
            took = _fastest(run, work, times=2)
            cache = (batch * a_token * length for length in range(1, run.size.timed + 1))
            # Two operations for each weight, which has two bytes.
            floor = sum(max((read + held) / copied, read * batch / multiplied) for held in cache)
            run.found(f"{shape}, {batch} rows: tokens a second", batch * run.size.timed / took)
            run.found(f"{shape}, {batch} rows: share of the floor", floor / took)
        if run.device == "cuda":
            run.above(f"{shape}: share of the floor, the largest batch", floor / took, LEAST_SHARE)
            run.found(f"{shape}: peak memory, GiB", torch.cuda.max_memory_allocated() / 2**30)
        if shape == next(iter(run.size.models)):
            with torch.profiler.profile() as profile:
                work()
            table = profile.key_averages().table(sort_by=f"self_{run.device}_time_total", row_limit=20)
            (run.folder / "profile.txt").write_text(table, encoding="utf-8")


def tests(run: Run) -> None:
    """Run the tests of the models but for the one that starts a tiny run; that one, only the quickest."""
    names = ["tests/gpu/test_choice.py"] if run.size is TINY else ["tests/gpu", "--ignore=tests/gpu/test_gpu_run.py"]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-W", "default", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TESTS_LIMIT)
    (run.folder / "tests.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    run.found("tests/gpu", (done.stdout.strip().splitlines() or ["no output"])[-1], "all pass", done.returncode == 0)


PARTS: dict[str, tuple[Callable[[Run], None], int]] = {
    "versions": (versions, 20),
    "card": (card, 20),
    "law": (law, 110),
    "batches": (batches, 70),
    "again": (again, 30),
    "speed": (speed, 80),
    "tests": (tests, TESTS_LIMIT + 10),
}
"""The parts in order, and the seconds that each may take on a GPU: 7 minutes in all."""


@dataclass(frozen=True)
class Row:
    """A text, and the numbers that its tokens after the prefix were drawn by."""

    prompt: str
    prefix: tuple[int, ...]
    tokens: tuple[int, ...]
    uniforms: np.ndarray | None = None


class Again:
    """Laws of a model's texts by one pass over each text alone, without a cache and without what draws."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def laws(self, row: Row, temperature: float = 1.0) -> torch.Tensor:
        """Return the law of each token of a text, shape (tokens, vocabulary), float64."""
        ids = [*WORDS(row.prompt)["input_ids"], *row.tokens[:-1]]
        with torch.inference_mode():
            logits = self._module(torch.tensor([ids], device=self._module.device), use_cache=False).logits
        return (logits[0, -len(row.tokens) :].double() / temperature).softmax(-1)

    def missed(self, rows: Sequence[Row], temperature: float = 1.0) -> float:
        """Return the share of drawn tokens that the recorded numbers do not pick from these laws."""
        differ = drawn = 0
        for row in rows:
            laws = self.laws(row, temperature)[len(row.prefix) :]
            picked = _picks(laws, laws.new_tensor(row.uniforms))
            differ += int((picked != picked.new_tensor(row.tokens[len(row.prefix) :])).sum())
            drawn += len(row.uniforms)
        return differ / drawn

    def log_p(self, row: Row) -> float:
        """Return the log-probability of a text, in nats."""
        return math.fsum(self.log_chances(row))

    def log_chances(self, row: Row) -> list[float]:
        """Return the log-probability of each token, in nats."""
        laws = self.laws(row)
        return laws[range(len(row.tokens)), row.tokens].log().tolist()

    def distances(self, other: Again, rows: Sequence[Row]) -> torch.Tensor:
        """Return the total variation between two models' laws of each token, shape (tokens,)."""
        return torch.cat([0.5 * (self.laws(row) - other.laws(row)).abs().sum(-1) for row in rows])


def _made(run: Run, dtype: torch.dtype, *, ending: float = ENDING, shape: str | None = None) -> torch.nn.Module:
    """Return a Llama of random weights, its output scaled to laws of the wanted entropy and chance to end."""
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
    """Multiply the output until a token's law has the wanted entropy, in the mean over some contexts."""
    ids = torch.arange(256, device=module.device).reshape(8, 32) % module.config.vocab_size
    with torch.inference_mode():
        logits = module(ids).logits.flatten(0, 1).double()
    low, high = 1e-3, 1e3
    for _ in range(40):
        middle = math.sqrt(low * high)
        laws = torch.distributions.Categorical(logits=logits * middle)
        low, high = (middle, high) if float(laws.entropy().mean()) > ENTROPY else (low, middle)
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
    prefixes = [tuple(1 + (length + place) % 39 for place in range(length)) for length in lengths]
    rngs, written = _generators(rows), []
    for first in range(0, rows, batch or rows):
        some = slice(first, first + (batch or rows))
        written += model.continue_batch(rngs[some], prompts[some], prefixes[some])
    # The numbers again: one for each token drawn.
    counts = [len(tokens) - length for tokens, length in zip(written, lengths, strict=True)]
    uniforms = [rng.random(count) for rng, count in zip(_generators(rows), counts, strict=True)]
    return [Row(*row) for row in zip(prompts, prefixes, written, uniforms, strict=True)]


def _tokens(run: Run, module: torch.nn.Module, batch: int) -> list[tuple[int, ...]]:
    """Return the first rows' tokens, drawn in batches of so many."""
    model = _product(module, run.size.prefix + run.size.new)
    drawn = _drawn(model, run.size, max(batch, run.size.compared), batch)
    return [row.tokens for row in drawn[: run.size.compared]]


def _hash(rows: Sequence[tuple[int, ...]]) -> str:
    return sha256(json.dumps(rows).encode()).hexdigest()


def _picks(laws: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Return how many sums of a law, from its first token on, are at most the number: the token it picks."""
    sums = laws.cumsum(-1)
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
    """Compare the first tokens of many rows of one prompt with their law, by chi-square."""
    count = run.size.firsts
    written = _product(module, limit=1).continue_batch(_generators(count), [PROMPTS[0]] * count, [()] * count)
    expected = count * again.laws(Row(PROMPTS[0], (), (END,)))[0].cpu().numpy()
    seen = np.bincount([tokens[0] for tokens in written], minlength=len(expected))
    often = expected >= 10
    groups = [np.append(each[often], each[~often].sum()) for each in (seen, expected)]
    run.above("float32: first tokens beside their law, p-value", float(stats.chisquare(*groups).pvalue), LEAST_P_VALUE)


def _base_ratios(run: Run, model: TransformersModel, rows: Sequence[Row], again: Again) -> None:
    """Compare the suffix kernel's base ratios with p0 and q of both ways, from laws that were worked out anew."""
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
    shared = next((place for place, (one, other) in enumerate(pairs) if one != other), len(pairs))
    log_ends = [math.fsum(written[kept:]) for kept in range(min(shared + 1, len(state.tokens)))]
    log_q = float(np.logaddexp.reduce(log_ends)) - math.log(limit if cut == "limit" else len(state.tokens))
    return math.fsum(begun) + log_q


def _fastest(run: Run, work: Callable[[], object], times: int = 5) -> float:
    """Return the seconds of the fastest of some calls, after one that is not timed."""
    wait = torch.cuda.synchronize if run.device == "cuda" else lambda: None
    taken = []
    for _ in range(times + 1):
        begun = time.perf_counter()
        work()
        wait()
        taken.append(time.perf_counter() - begun)
    return min(taken[1:])


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _run_part(part: str, arguments: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Run a part in a process of its own, and record how it failed if it did."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--part", part, "--device", arguments.device]
    command += ["--out", str(arguments.out), *(["--tiny"] if arguments.tiny else [])]
    print(part, flush=True)
    run, begun = Run(part, arguments), time.monotonic()
    # Elsewhere nobody waits for the machine, and it may be busy.
    limit = PARTS[part][1] * (1 if arguments.device == "cuda" else 10)
    try:
        subprocess.run(command, cwd=ROOT, check=True, timeout=limit, env=environment, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        run.found(f"{part}: out of time", limit, "seconds are enough", good=False)
    except subprocess.CalledProcessError as error:
        print(error.stderr, file=sys.stderr)
        run.found(f"{part}: failed", (error.stderr.splitlines() or [str(error)])[-1], "no error", good=False)
    run.found(f"{part}: seconds", time.monotonic() - begun)


def _table(lines: Sequence[dict]) -> str:
    marks = {True: "good", False: "BAD", None: ""}
    return "\n".join(
        f"{line['part']:9} {marks[line['good']]:4} {line['name']}: {_shown(line['value'])}"
        + (f" (wanted: {line['wanted']})" if line["wanted"] else "")
        for line in lines
    )


def main() -> int:
    """Run all parts, or one in this process; 1 where something is not as wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for what is found; it need not exist")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--tiny", action="store_true", help="small shapes, for a look at the script itself")
    parser.add_argument("--archive", type=Path, help="packages, as .ci/gpu_archive packs them")
    parser.add_argument("--part", choices=PARTS, help="only this one, in this process")
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.part:
        PARTS[arguments.part][0](Run(arguments.part, arguments))
        return 0
    (arguments.out / "findings.jsonl").write_text("", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="prefmh-gpu-") as packages:
        if arguments.archive:
            with tarfile.open(arguments.archive) as archive:
                archive.extractall(packages, filter="data")
        path = os.pathsep.join([packages, os.environ.get("PYTHONPATH", "")])
        for part in PARTS:
            _run_part(part, arguments, os.environ | {"PYTHONPATH": path})
            if part == "versions" and any(line["good"] is False for line in findings(arguments.out)):
                break
    lines = findings(arguments.out)
    (arguments.out / "gpu.json").write_text(json.dumps(lines, indent=1), encoding="utf-8")
    print(_table(lines))
    return int(any(line["good"] is False for line in lines))


if __name__ == "__main__":
    sys.exit(main())
