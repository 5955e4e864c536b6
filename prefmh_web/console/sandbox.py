"""A draft as a participant would meet it: its stages, some pairs with their keys, the end. Nothing of it is stored but
where the researcher stands, in the session.

The chains are walked as the campaign would walk them, except that other people's votes are drawn by lot, so that the
next pair need not wait for them. Answers about the person are looked at and forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

import sampler
from prefmh_web.campaigns.models import Campaign, Side
from prefmh_web.config import Outcome, Protocol
from prefmh_web.console.unstored import NOISE, NotComputable, Rehearsal, Seen, pair_of
from prefmh_web.objects import ObjectKind
from prefmh_web.participants import attention
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.options import Option, options_of
from prefmh_web.participants.stages import next_stage
from sampler.judges import ContextLine, shared_context

PAIRS = 6
# Chains that are walked; so many heads lie in the session.
_MOST_CHAINS = 4
# After so many pairs comes an attention check, where the protocol has such.
_CHECK_AFTER = 2


class Standing(TypedDict):
    """Where the researcher stands.

    Args:
        at: the stage.
        number: of the pair to practise on.
        chosen: its side that was chosen; empty before that.
        tries: how often the questions about the instructions were answered.
        asked: pairs, skipped ones and checks included.
        votes: given.
        heads: for each chain that has moved, how many steps it has made, and its state.
        outcome: how the part has ended; empty before that.
    """

    at: str
    number: int
    chosen: str
    tries: int
    asked: int
    votes: int
    heads: dict[str, list[Any]]
    outcome: str


def begin() -> Standing:
    """Return where everybody begins."""
    return Standing(at=Stage.ARRIVAL, number=0, chosen="", tries=0, asked=0, votes=0, heads={}, outcome="")


@dataclass(frozen=True)
class SandboxPair:
    """A pair on the screen.

    Args:
        note: why these are samples; empty where they are the campaign's own.
        drawn: the comparison; None for a check and for samples.
        told: the side that an attention check tells; None for every other pair.
    """

    question: str
    first: Seen
    second: Seen
    judge: int
    proposal: Side
    note: str = ""
    drawn: sampler.Comparison[Any] | None = None
    told: Side | None = None


class Sandbox:
    """One researcher's way through one draft.

    Args:
        campaign: a readable draft in which people are asked.
        standing: where they stand; it is changed.
    """

    def __init__(self, campaign: Campaign, standing: Standing):
        self.campaign, self.standing = campaign, standing
        self.config = campaign.config
        self.study = campaign.config.study
        knows_people = self.study.platform.knows_people
        self.protocol = self.study.protocol if knows_people else Protocol()
        self.consent = self.study.consent if knows_people else ""
        self.part = Participation(campaign=campaign, tries=standing["tries"])
        self._judges = [place for place, judge in enumerate(self.config.judges) if judge.source.kind in _OF_PEOPLE]

    @property
    def stage(self) -> Stage:
        """Where they are."""
        return Stage(self.standing["at"])

    def go_on(self) -> None:
        """Leave a stage for the next one."""
        self.standing["at"] = next_stage(self.stage, self.protocol)
        if self.stage == Stage.END:
            self.standing["outcome"] = Outcome.COMPLETED

    def end(self, outcome: Outcome) -> None:
        """End the part."""
        self.standing["at"], self.standing["outcome"] = Stage.END, outcome

    def practise(self, posted: Mapping[str, str]) -> None:
        """Take an answer to a pair of practice, or go on from what was said about it."""
        if not self.standing["chosen"]:
            choice = posted.get("answer-choice", "")
            self.standing["chosen"] = choice if choice in Side.values else ""
            return
        self.standing["chosen"], self.standing["number"] = "", self.standing["number"] + 1
        if self.standing["number"] >= len(self.protocol.practice):
            self.go_on()

    def vote(self, choice: str) -> None:
        """Take a vote, or a skip, and go on to the next pair or past the last one."""
        pair = self.pair()
        if choice not in ("first", "second") and (choice != "skip" or pair.told):
            return
        self.standing["asked"] += 1
        if choice == "skip" or pair.told:
            return
        self.standing["votes"] += 1
        if pair.drawn is not None:
            self._decide(pair.drawn, pair.judge, choice == pair.proposal)
        if self.standing["votes"] >= min(PAIRS, self.study.votes_each or PAIRS):
            self.go_on()

    def pair(self) -> SandboxPair:
        """Return the pair on the screen: the same until it is answered."""
        asked = self.standing["asked"]
        rng = np.random.default_rng([self.campaign.seed, asked])
        proposal = (Side.FIRST, Side.SECOND)[int(rng.integers(2))]
        judge = self._judges[asked % len(self._judges)]
        told = proposal if asked == _CHECK_AFTER and self.protocol.check_share else None
        question = str(attention.TOLD[told]) if told else self.config.judges[judge].question
        try:
            rehearsal = Rehearsal(self.campaign)
            drawn = rehearsal.next_pair(self._position(rehearsal, asked))
            current, proposed = drawn.current, drawn.proposal
            seen, note = (rehearsal.seen(current, proposed), rehearsal.seen(proposed, current)), ""
        except NotComputable as reason:
            drawn, note = None, str(reason)
            seen = self._samples()
        first, second = seen if proposal == Side.SECOND else seen[::-1]
        return SandboxPair(question, first, second, judge, proposal, note, None if told else drawn, told)

    def _samples(self) -> tuple[Seen, Seen]:
        kind = NOISE if self.config.space.kind == "model-images" else self.config.space.objects
        first, second = (Seen(each.content, each.address) for each in pair_of(kind))
        return first, second

    def _position(self, rehearsal: Rehearsal, asked: int) -> sampler.Position[Any]:
        chain = asked % min(self.config.chains, _MOST_CHAINS)
        step, code = self.standing["heads"].get(str(chain), (0, ""))
        return rehearsal.position(chain, step, code)

    def _decide(self, drawn: sampler.Comparison[Any], judge: int, is_for_it: bool) -> None:
        """Settle a step by this vote, and by lot for everybody else."""
        rng = np.random.default_rng([self.campaign.seed, self.standing["asked"], 1])
        tally = sampler.Tally.empty(len(drawn.budgets)).add(judge, is_for_it)
        while (verdict := sampler.tell(drawn, tally)) is sampler.Verdict.UNDECIDED:
            missing = [place for place, budget in enumerate(drawn.budgets) if tally.votes_cast[place] < budget]
            tally = tally.add(int(rng.choice(missing)), bool(rng.integers(2)))
        before = sampler.Position(drawn.chain, drawn.step - 1, drawn.current)
        now = sampler.advance(before, drawn, verdict)
        code = Rehearsal(self.campaign).code_of(now.state)
        self.standing["heads"][str(drawn.chain)] = [now.step, code]


@dataclass(frozen=True)
class ShownPair:
    """A pair as the voting page has it.

    Args:
        note: why these are samples; empty where they are the campaign's own.
    """

    question: str
    options: tuple[Option, Option]
    context: tuple[ContextLine, ...]
    note: str


def shown(pair: SandboxPair, kind: ObjectKind) -> ShownPair:
    """Return a pair of the sandbox as the voting page has it."""
    sides = {Side.FIRST: pair.first, Side.SECOND: pair.second}
    around = shared_context(pair.first.context, pair.second.context)
    options = options_of(kind, pair.first.content, pair.second.content, lambda side: sides[side].address, around)
    return ShownPair(pair.question, options, tuple(around.shared), pair.note)


def first_pair_of(campaign: Campaign) -> ShownPair | None:
    """Return the first pair of a draft as voters will see it; None where no people are asked."""
    if not asks_people(campaign):
        return None
    return shown(Sandbox(campaign, begin()).pair(), campaign.object_kind)


_OF_PEOPLE = ("people", "panelist")


def asks_people(campaign: Campaign) -> bool:
    """Whether people answer some of the questions of a campaign."""
    config = campaign.config
    return config.rule.asks_judges and any(judge.source.kind in _OF_PEOPLE for judge in config.judges)
