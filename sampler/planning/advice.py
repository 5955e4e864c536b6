"""What to change about a study, by what is foreseen of it: sentences for the researcher, the most pressing first."""

from __future__ import annotations

from collections.abc import Iterator

from sampler.planning.forecast import StudyForecast
from sampler.planning.study import PlannedStudy

# From here on waits, burn-in and idle people are worth a word.
_WAITS, _BURNED, _SURE = 0.05, 0.5, 0.9
_FEW_SAMPLES = 10


def changes(study: PlannedStudy, foreseen: StudyForecast, most_money: float | None = None) -> list[str]:
    """Return what to change; nothing where all is well.

    Args:
        study: what is planned.
        foreseen: what it will take.
        most_money: that there is; None where it is not said.
    """
    return [
        *_too_few_people(study),
        *_burn_in(study, foreseen),
        *_waits(study, foreseen),
        *_money(study, foreseen, most_money),
        *_length(study, foreseen),
        *_samples(foreseen),
    ]


def _too_few_people(study: PlannedStudy) -> Iterator[str]:
    asked = [n for n, is_asked in zip(study.budgets, study.asks, strict=True) if is_asked]
    if study.is_panel or not asked or (most := max(asked)) < study.people:
        return
    if most > study.people:
        yield (
            f"A step can need {most} votes, each of another person, and {study.people} come. Chains will stand still "
            "for good. Ask for fewer votes a step, or more people."
        )
    else:
        yield (
            f"A step can need the votes of all {study.people} people. When the first one leaves, chains will stand "
            "still. Ask for fewer votes a step, or more people."
        )


def _burn_in(study: PlannedStudy, foreseen: StudyForecast) -> Iterator[str]:
    each = foreseen.steps.middle / max(1.0, foreseen.chains.middle)
    if study.burn_in and each <= study.burn_in:
        yield (
            f"Chains will come to about {_whole(each)} steps each, and the burn-in is {study.burn_in}: nothing would "
            "be left. Take fewer chains, a shorter burn-in or more votes."
        )
    elif study.burn_in and foreseen.kept_share < _BURNED:
        yield (
            f"{100 - 100 * foreseen.kept_share:.0f} % of the steps would be burn-in. Take fewer chains, a shorter "
            "burn-in or more votes."
        )


def _waits(study: PlannedStudy, foreseen: StudyForecast) -> Iterator[str]:
    if study.is_panel or foreseen.waiting.middle < _WAITS:
        return
    told = f"People would wait for {100 * foreseen.waiting.middle:.0f} % of their time"
    told += (
        f", and about {_whole(foreseen.gave_up)} of them would leave because of it. " if foreseen.gave_up >= 1 else ". "
    )
    if any(study.instant):
        yield f"{told}Begin with more chains, about {study.people}, or let fewer people come at the same time."
    else:
        most = max(2 * study.people, 2 * study.most)
        yield f"{told}Let chains open for people who would wait, up to {most}, or let fewer come at the same time."


def _money(study: PlannedStudy, foreseen: StudyForecast, most_money: float | None) -> Iterator[str]:
    if most_money is None or foreseen.money is None or foreseen.money.high <= most_money:
        return
    people = int(study.people * most_money / foreseen.money.high)
    yield (
        f"This can cost {foreseen.money.high:,.2f}, which is more than {most_money:,.2f}. "
        + (f"It should not with {people} people." if people else "Ask for fewer votes each, or pay less an hour.")
    )


def _length(study: PlannedStudy, foreseen: StudyForecast) -> Iterator[str]:
    each = foreseen.steps.middle / max(1.0, foreseen.chains.middle)
    if foreseen.finished >= _SURE:
        yield (
            "The chains will probably be at their end before all people have given what you ask of them. Who comes "
            "later finds nothing to do. Set more steps, or let fewer people come."
        )
    elif foreseen.finished < 1 - _SURE and study.most_chains is None and foreseen.waiting.middle < _WAITS:
        yield (
            f"The votes will not do for {study.steps} steps of each chain: about {_whole(each)} are to be expected. "
            "Take fewer chains, or more people or votes, if you need the whole length."
        )


def _samples(foreseen: StudyForecast) -> Iterator[str]:
    if foreseen.effective_samples.high < _FEW_SAMPLES:
        yield (
            f"Fewer than {_FEW_SAMPLES} effective samples are to be expected, which is too few to say much about a "
            "mean. Get more votes, or bolder proposals."
        )


def _whole(number: float) -> str:
    return f"{number:,.0f}"
