"""A Metropolis-Hastings step, cut in two where the judges sit.

Theory of operation
-------------------
A chain stands at a `Position`: a state x and the number of steps decided so far. All there is to do with it:

    ask(plan, position)      ->  Comparison    propose x' ~ q(.|x), keep log r0, draw U. Nobody votes yet.
    tell(comparison, tally)  ->  Verdict       ACCEPT, REJECT or UNDECIDED, from the votes cast so far.
    advance(position, comparison, verdict)  ->  Position   the next one, once the verdict is settled.

Between `ask` and `tell` lies everything that takes time: people, models, sockets, databases. None of that is
known here. All values are immutable; an illegal call raises and nothing has changed.

What makes the chain exact is spread over these three in one place each:

* `ask` is a function of (seed, chain, step, x). Asking again after a crash gives the same comparison and the same
  U, so a step once opened is always finished under the same threshold.
* U is drawn before the first vote. The verdict is monotone in every tally, so votes may stop as soon as the
  bounds of `acceptance.verdict` agree, and judges may be asked in any order.
* The numbers of votes N_i come from the plan, never from a state.
* A proposal equal to the current state needs no vote: both outcomes leave x where it is. It counts as accepted.

Random streams are functions of (seed, chain, step, purpose). No generator's state is stored anywhere: a process that
restarts, or a reader with the exported record, draws the same numbers again. Kernels draw only with
`Generator.random()`, the top 53 bits of each raw 64-bit output of PCG64, which NumPy keeps stable between releases; so
a record can be redrawn years later.

`simulate` asks judges with hidden scores (equation 5 of the paper), who vote as people would.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from sampler import acceptance
from sampler.acceptance import Verdict

State = TypeVar("State", bound=Hashable)
Started_co = TypeVar("Started_co", bound=Hashable, covariant=True)


class Purpose(enum.IntEnum):
    """What a stream is for. The numbers are part of every record: add, never renumber."""

    START = 0
    PROPOSAL = 1
    UNIFORM = 2
    SIDES = 3
    JUDGES = 4
    PEOPLE_SIDES = 5
    CHECKS = 6
    """Its "chain" is a voter's number, its "step" the number of their votes: see `judges/presentation.py`."""
    EDITOR = 7
    """Of a learned proposal; its "chain" is 0, its "step" 0 for the first weights, then the step it learns after."""


def stream(seed: int, chain: int, step: int, purpose: Purpose) -> np.random.Generator:
    """Return the generator for one purpose at one step of one chain; independent of every other.

    Raises:
        ValueError: seed, chain or step is negative.
    """
    for name, value in (("seed", seed), ("chain", chain), ("step", step)):
        if value < 0:
            raise ValueError(f"{name} must not be negative, not {value}")
    sequence = np.random.SeedSequence(seed, spawn_key=(chain, step, int(purpose)))
    return np.random.Generator(np.random.PCG64(sequence))


@dataclass(frozen=True)
class Proposal(Generic[State]):
    """A draw x' ~ q(.|x) with the log base ratio of the move."""

    state: State
    log_r0: float


class Kernel(Protocol[State]):
    """A proposal distribution q(x'|x) that knows its own base ratio against p0.

    A kernel may have a method `propose_batch`, which draws for many chains at once; a method `walk`, which takes many
    steps at once (`after_steps`); and a property `is_fast` (`Plan.is_fast_at`).
    """

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        """Draw x' ~ q(.|state) and return it with log p0(x') q(x|x') / (p0(x) q(x'|x))."""
        ...


class StartingSpace(Protocol[Started_co]):
    """A space, as far as a step needs it: a distribution for the first state of a chain. All of it: `Space`."""

    def start(self, rng: np.random.Generator, chain: int) -> Started_co:
        """Draw x^(0) of chain number `chain`."""
        ...


Tokens = tuple[int, ...]
"""A text as a language model writes it."""


@runtime_checkable
class Space(Protocol[State]):
    """The objects X with their base distribution p0, as far as the record and the pages need them.

    A state is hashable and compares by value. The record keeps two texts of it: `encode`, from which `decode` makes
    the very same state again, and `content`, what a person reads or what names it. To add a space: copy one of the
    files in `sampler.spaces`, and follow the list there.
    """

    def start(self, rng: np.random.Generator, chain: int) -> State:
        """Draw x^(0) of chain number `chain`."""
        ...

    def encode(self, state: State) -> str:
        """Return the state as text that `decode` reads; equal states give equal texts."""
        ...

    def decode(self, code: str) -> State:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: the text is none that `encode` writes for this space.
        """
        ...

    def is_close(self, one: State, other: State) -> bool:
        """True when two states are the same but for what another machine may round otherwise."""
        ...

    def content(self, state: State) -> str:
        """Return what a person reads: the text, the SMILES; of an image, a name."""
        ...


class Refreshing(Protocol[State]):
    """A space that can draw from p0: what the kernel `independent` needs."""

    def refresh(self, rng: np.random.Generator, state: State) -> State:
        """Draw x' ~ p0 whatever `state` is, but for what never changes along a chain (a text's prompt)."""
        ...


@dataclass(frozen=True)
class FirstSteps(Generic[State]):
    """The kernel of every chain's first steps, where it is another than that of the rest."""

    steps: int
    kernel: Kernel[State]


@dataclass(frozen=True)
class Plan(Generic[State]):
    """What the sampler needs of a config: where chains start, how they move, and each judge's N_i."""

    seed: int
    space: StartingSpace[State]
    kernel: Kernel[State]
    max_votes: tuple[int, ...]
    first: FirstSteps[State] | None = None

    def kernel_at(self, step: int) -> Kernel[State]:
        """Return the kernel that proposes in a step of every chain."""
        return self.first.kernel if self.first is not None and step <= self.first.steps else self.kernel

    def is_fast_at(self, step: int) -> bool:
        """True when `ask` takes less than a millisecond from every state, so that a caller may hold a lock meanwhile.

        The kernel says so; one that does not say is slow.
        """
        return bool(getattr(self.kernel_at(step), "is_fast", False))


@dataclass(frozen=True)
class Position(Generic[State]):
    """Where a chain stands: `step` steps are decided, the state is x^(step)."""

    chain: int
    step: int
    state: State


@dataclass(frozen=True)
class Comparison(Generic[State]):
    """The question step `step` asks of the judges: `proposal` against `current`."""

    chain: int
    step: int
    current: State
    proposal: State
    log_r0: float
    uniform: float
    max_votes: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """True when the kernel proposed the state the chain is in."""
        return self.current == self.proposal


@dataclass(frozen=True)
class Tally:
    """Votes counted so far, one entry per judge: n_i cast, K_i of them for the proposal."""

    votes_for: tuple[int, ...]
    votes_cast: tuple[int, ...]

    @classmethod
    def empty(cls, judges: int) -> Tally:
        """No vote yet from any of `judges` judges."""
        return cls((0,) * judges, (0,) * judges)

    def add(self, judge: int, for_proposal: bool) -> Tally:
        """Return the tally with one more vote.

        Raises:
            ValueError: there is no such judge.
        """
        if not 0 <= judge < len(self.votes_cast):
            raise ValueError(f"judge must be 0 to {len(self.votes_cast) - 1}, not {judge}")
        votes_for, votes_cast = list(self.votes_for), list(self.votes_cast)
        votes_cast[judge] += 1
        votes_for[judge] += bool(for_proposal)
        return Tally(tuple(votes_for), tuple(votes_cast))


def begin(plan: Plan[State], chain: int) -> Position[State]:
    """Return where chain number `chain` starts: x^(0), drawn from the space's start distribution."""
    return Position(chain, 0, plan.space.start(stream(plan.seed, chain, 0, Purpose.START), chain))


def begin_many(plan: Plan[State], chains: Sequence[int]) -> list[Position[State]]:
    """Return what `begin` returns for these chains, by one call of a space that can draw many at once."""
    batch: Callable[..., list[State]] | None = getattr(plan.space, "start_batch", None)
    if batch is None:
        return [begin(plan, chain) for chain in chains]
    states = batch([stream(plan.seed, chain, 0, Purpose.START) for chain in chains], chains)
    return [Position(chain, 0, state) for chain, state in zip(chains, states, strict=True)]


def ask(plan: Plan[State], position: Position[State]) -> Comparison[State]:
    """Return the comparison of the next step. The same call always returns the same comparison."""
    rng = stream(plan.seed, position.chain, position.step + 1, Purpose.PROPOSAL)
    return _compare(plan, position, plan.kernel_at(position.step + 1).propose(rng, position.state))


def _compare(plan: Plan[State], position: Position[State], proposal: Proposal[State]) -> Comparison[State]:
    step = position.step + 1
    uniform = float(stream(plan.seed, position.chain, step, Purpose.UNIFORM).random())
    return Comparison(position.chain, step, position.state, proposal.state, proposal.log_r0, uniform, plan.max_votes)


def given(plan: Plan[State], proposal: Proposal[State]) -> Plan[State]:
    """Return the plan with a kernel whose next draw has been made already."""
    return replace(plan, kernel=_Given(proposal), first=None)


@dataclass(frozen=True)
class _Given(Generic[State]):
    proposal: Proposal[State]

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        return self.proposal


def ask_many(plan: Plan[State], positions: Sequence[Position[State]]) -> list[Comparison[State]]:
    """Return what `ask` returns for each position, by one call of each kernel that can draw for many at once."""
    proposals: dict[int, Proposal[State]] = {}
    kernels = {id(kernel): kernel for kernel in map(partial(_kernel_after, plan), positions)}
    for kernel in kernels.values():
        mine = [index for index, each in enumerate(positions) if _kernel_after(plan, each) is kernel]
        asked = [positions[index] for index in mine]
        rngs = [stream(plan.seed, each.chain, each.step + 1, Purpose.PROPOSAL) for each in asked]
        proposals |= dict(zip(mine, propose_many(kernel, rngs, [each.state for each in asked]), strict=True))
    return [_compare(plan, position, proposals[index]) for index, position in enumerate(positions)]


def _kernel_after(plan: Plan[State], position: Position[State]) -> Kernel[State]:
    return plan.kernel_at(position.step + 1)


def propose_many(
    kernel: Kernel[State], rngs: Sequence[np.random.Generator], states: Sequence[State]
) -> Sequence[Proposal[State]]:
    """Return a draw for each state, by one call of a kernel that can draw for many at once."""
    batch: Callable[..., Sequence[Proposal[State]]] | None = getattr(kernel, "propose_batch", None)
    if batch is not None and states:
        return batch(rngs, states)
    return [kernel.propose(rng, state) for rng, state in zip(rngs, states, strict=True)]


def after_steps(kernel: Kernel[State], rng: np.random.Generator, state: State, steps: int) -> State:
    """Return the state after `steps` steps of the kernel's chain without judges, which is reversible for p0.

    It accepts with min(1, r0). A kernel's own `walk(rng, state, steps)` does the same in one go: its distribution must
    be that of the steps taken one by one; the random numbers may differ.
    """
    at_once: Callable[[np.random.Generator, State, int], State] | None = getattr(kernel, "walk", None)
    if at_once is not None:
        return at_once(rng, state, steps)
    for _ in range(steps):
        proposal = kernel.propose(rng, state)
        if proposal.log_r0 >= 0 or rng.random() < math.exp(proposal.log_r0):
            state = proposal.state
    return state


def tell(comparison: Comparison[State], tally: Tally) -> Verdict:
    """Return the verdict the tally settles, or UNDECIDED.

    Raises:
        ValueError: the tally does not fit the comparison's max_votes; see `acceptance.verdict`.
    """
    settled = acceptance.verdict(
        comparison.log_r0, comparison.uniform, tally.votes_for, tally.votes_cast, comparison.max_votes
    )
    return Verdict.ACCEPT if comparison.is_identity else settled


def advance(position: Position[State], comparison: Comparison[State], verdict: Verdict) -> Position[State]:
    """Return the position after a settled step.

    Raises:
        ValueError: the verdict is UNDECIDED, or the comparison is not this position's next step.
    """
    if verdict is Verdict.UNDECIDED:
        raise ValueError("verdict must be settled before a chain can advance")
    asked_of = (comparison.chain, comparison.step, comparison.current)
    if asked_of != (position.chain, position.step + 1, position.state):
        raise ValueError("comparison must be the next step of this position")
    state = comparison.proposal if verdict is Verdict.ACCEPT else position.state
    return Position(position.chain, comparison.step, state)


@dataclass(frozen=True)
class BradleyTerry(Generic[State]):
    """Prefers y to x with probability sigma(s(y) - s(x)).

    Args:
        score: s, in nats of log-odds.
    """

    score: Callable[[State], float]

    def preference(self, current: State, proposal: State) -> float:
        """Return the probability that this judge prefers `proposal` to `current`."""
        # Whoever has real judges need not load it.
        from scipy.special import expit

        return float(expit(self.score(proposal) - self.score(current)))

    def vote(self, rng: np.random.Generator, current: State, proposal: State) -> bool:
        """Draw one vote: True for the proposal."""
        return bool(rng.random() < self.preference(current, proposal))


def simulate(
    plan: Plan[State], judges: Sequence[BradleyTerry[State]], steps: int, chain: int = 0
) -> Iterator[Position[State]]:
    """Yield the positions 0..steps of one chain, asking judge after judge and stopping as early as allowed.

    Raises:
        ValueError: the plan has another number of judges.
    """
    if len(judges) != len(plan.max_votes):
        raise ValueError(f"judges must be {len(plan.max_votes)}, one for each of max_votes, not {len(judges)}")
    position = begin(plan, chain)
    yield position
    for _ in range(steps):
        comparison = ask(plan, position)
        rng = stream(plan.seed, chain, comparison.step, Purpose.JUDGES)
        tally = Tally.empty(len(judges))
        while (verdict := tell(comparison, tally)) is Verdict.UNDECIDED:
            judge = next(i for i, limit in enumerate(plan.max_votes) if tally.votes_cast[i] < limit)
            tally = tally.add(judge, judges[judge].vote(rng, comparison.current, comparison.proposal))
        position = advance(position, comparison, verdict)
        yield position
