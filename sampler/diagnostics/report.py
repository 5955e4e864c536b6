"""The report on one exported campaign, the verdict first: line by line, and as an HTML page with pictures for a
co-author. What it says does not depend on how states are numbered.

The page needs no other file and runs no script. Everything that comes from the record is set as text by ElementTree,
which escapes it, and the page's own policy lets it load nothing. It names no participant.
"""

from __future__ import annotations

import base64
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, product
from typing import NamedTuple
from xml.etree.ElementTree import Element, tostring

import numpy as np

from sampler.diagnostics.chains import Acceptance, Column, by_target
from sampler.diagnostics.findings import Agreement, Asked, Findings, Lean, Population, Question
from sampler.diagnostics.scores import FEWEST_CLUSTERS, Choices, NoFit, Scores, SourceLean
from sampler.diagnostics.verdict import LEVEL, Share, Verdict
from sampler.diagnostics.votes import cohen_kappa, cycle_test
from sampler.objects.molecules import draw_molecule
from sampler.record.documents import EXTENDED, FINISHED_NOW, events_of
from sampler.record.record import Record, RecordError
from sampler.record.tables import Row

_SHOWN_ITEMS = 10
_SHOWN_PAIRS = 5
_SHOWN_CHARACTERS = 60
# With fewer questions in common, two people's kappa says nothing.
_FEWEST_SHARED = 10


def diagnose(findings: Findings, rng: np.random.Generator) -> Iterator[str]:
    """Yield the report: verdict, acceptance, convergence, lean by source, and for each question scores and agreement.

    Args:
        rng: of the tests for cycles.
    """
    yield _verdict(findings.answer.verdict)
    yield from _chains(findings.record)
    yield from _extensions(findings.record)
    yield findings.samples
    yield from _convergence(findings)
    yield from _means(findings)
    yield from _leans(findings)
    for population, agreement in zip(findings.voters.populations, findings.voters.agreement, strict=True):
        yield ""
        yield _heading(population)
        of_people = _pairs_of_people(agreement.shared)
        lines = (*_asked_of(population, findings, rng), *_agreement(agreement), *of_people)
        yield from (f"  {line}" for line in lines)


def _leans(findings: Findings) -> Iterator[str]:
    voters = findings.voters
    if not voters.populations:
        yield "Lean to the first object: there is no vote"
    for lean in voters.leans:
        yield f"Lean to the first object ({lean.source}): {_lean(lean, f'{voters.clusters}s')}"


def _verdict(verdict: Verdict) -> str:
    said = f"{verdict.is_that[0].upper()}{verdict.is_that[1:]}: {verdict.because}"
    return f"{said} {verdict.advice}".rstrip()


def _extensions(record: Record) -> Iterator[str]:
    """Yield how the length was changed after the start: whoever reads averages should know."""
    for row, said in events_of(record["events"], EXTENDED, FINISHED_NOW):
        if row["kind"] == EXTENDED:
            what = f"Extended from {said['steps_before']} to {_many(int(said['steps_after']), 'step')} a chain"
        else:
            what = "Finished before the last step"
        verdict = f" (the verdict was then: {said['verdict']})" if "verdict" in said else ""
        yield (
            f"{what} on {row['at'][:10]}{verdict}; if that was decided by what had been sampled, averages are biased, "
            "and the intervals do not allow for it"
        )


def _chains(record: Record) -> Iterator[str]:
    steps, votes = record["steps"], record["votes"]
    decided, counted = [row for row in steps if row["verdict"]], sum(bool(row["number"]) for row in votes)
    chains = {row["chain_index"] for row in record["samples"]}
    yield (
        f"{_many(len(chains), 'chain')}, {_many(len(decided), 'decided step')}, "
        f"{len(steps) - len(decided)} open; {_many(counted, 'counted vote')}, {len(votes) - counted} late"
    )
    if not decided:
        return
    by_chain: dict[str, list[Row]] = defaultdict(list)
    for row in decided:
        by_chain[row["chain_index"]].append(row)
    moving = [found for rows in by_chain.values() if (found := _acceptance(rows)).differed]
    shares = sorted(moving, key=lambda each: each.share or 0.0)
    told = f"; by chain {shares[0].percent} to {shares[-1].percent}" if len(shares) > 1 else ""
    yield f"Accepted among the proposals that differed: {_acceptance(decided)}{told}"


def _acceptance(decided: Sequence[Row]) -> Acceptance:
    differed = [row["verdict"] == "accept" for row in decided if row["current_state"] != row["proposal_state"]]
    return Acceptance(sum(differed), len(differed))


def _convergence(findings: Findings) -> Iterator[str]:
    for column in findings.properties.columns:
        yield f"Convergence of {column.name}: {_converged(column, findings.prompts)}"
    if findings.properties.missing:
        yield f"Convergence: {findings.properties.missing}"


def _means(findings: Findings) -> Iterator[str]:
    """Yield averages over chains that open while people vote: each chain of a prompt counts alike, however far it has
    come.
    """
    if findings.record.config.get("max_chains") is None:
        return
    prompts = findings.prompts
    several = len(set(prompts.values())) > 1
    for column, prompt in product(findings.properties.columns, dict.fromkeys(prompts.values())):
        of_chains = [float(np.mean(draws)) for each, draws in column.draws.items() if prompts[each] == prompt]
        if not column.problem and len(of_chains) > 1:
            error = np.std(of_chains, ddof=1) / math.sqrt(len(of_chains))
            chains = f"{len(of_chains)} chains, weighed equally"
            of = f"{column.name}, “{prompt[:_SHOWN_CHARACTERS]}”" if several else column.name
            yield f"Mean of {of}: {np.mean(of_chains):.4g}, standard error {error:.2g}, over {chains}"


def _converged(column: Column, prompts: dict[str, str]) -> str:
    """Compare chains that answer one prompt: those of different prompts sample different laws."""
    if column.problem:
        return f"not measured; {column.problem}"
    found = by_target((prompts[each], draws) for each, draws in column.draws.items())
    if not found.measured:
        return f"cannot be measured; {found.targets[0].problem}"
    several = " of one prompt" if len(found.targets) > 1 else ""
    r_hat = f"needs two chains{several}" if found.r_hat is None else f"{found.r_hat:.3f}"
    sizes = f"effective sample size {found.bulk_ess:.0f} (bulk), {found.tail_ess:.0f} (tail)"
    return f"R-hat {r_hat}, {sizes}, from {found.basis}"


def _asked_of(population: Population, findings: Findings, rng: np.random.Generator) -> Iterator[str]:
    """Yield a population's scores, and its own lean where its source answers other questions too."""
    voters, clusters = findings.voters, f"{findings.voters.clusters}s"
    if sum(each.source == population.source for each in voters.populations) > 1:
        yield f"Lean to the first object on this question: {_lean(voters.lean([population]), clusters)}"
    choices, scores = population.choices(voters.clusters, apart=True), voters.scores_of(population)
    if isinstance(scores, NoFit):
        yield f"Bradley-Terry scores cannot be fitted: {scores}"
    else:
        yield from _scores(scores, choices.votes, clusters)
        yield _cycles(choices, rng)


def _lean(lean: Lean, clusters: str) -> str:
    shares = f"first chosen in {lean.first:,} of {_many(lean.votes, 'vote')}"
    if isinstance(lean.found, NoFit):
        return f"cannot be estimated; {lean.found}; {shares}"
    interval = _interval_of(lean.found, clusters)
    return f"log-odds {lean.found.log_odds:+.3f}, {interval}; {_basis(lean.found)}; {shares}"


def _interval_of(lean: SourceLean, clusters: str) -> str:
    if lean.clusters < FEWEST_CLUSTERS:
        return _too_few(lean.clusters, clusters)
    return f"95 % interval {lean.low:+.3f} to {lean.high:+.3f} ({lean.clusters:,} clusters: {clusters})"


def _basis(lean: SourceLean) -> str:
    if lean.method == "joint fit":
        return f"fitted with the scores to {_many(lean.votes, 'vote')}"
    return f"from {_many(lean.votes, 'vote')} on pairs that were asked about more than once"


def _too_few(count: int, clusters: str) -> str:
    found = _many(count, "cluster")
    return f"no interval: one from {found} ({clusters}) is not to be trusted, it takes {FEWEST_CLUSTERS}"


def _heading(population: Population) -> str:
    numbers = [str(number) for number in population.judges]
    judges = f"Judge {numbers[0]}" if len(numbers) == 1 else f"Judges {', '.join(numbers[:-1])} and {numbers[-1]}"
    source = "" if population.source == "people" else f" ({population.source})"
    return f"{judges}{source}: {population.question}"


def _scores(scores: Scores, votes: int, clusters: str) -> Iterator[str]:
    about = f"Bradley-Terry scores of {len(scores.items)} objects from {_many(votes, 'vote')}, fitted with the lean"
    trusted = scores.clusters >= FEWEST_CLUSTERS
    if trusted:
        yield f"{about}, with 95 % intervals ({scores.clusters:,} clusters: {clusters})"
    else:
        yield f"{about}; {_too_few(scores.clusters, clusters)}"
    order = np.argsort(-scores.estimate, kind="stable")
    shown = order if len(order) <= 2 * _SHOWN_ITEMS else [*order[:_SHOWN_ITEMS], *order[-_SHOWN_ITEMS:]]
    for place, i in enumerate(shown):
        if len(shown) < len(order) and place == _SHOWN_ITEMS:
            yield f"  … {len(order) - len(shown)} more"
        interval = f"  ({scores.low[i]:+.2f} to {scores.high[i]:+.2f})" if trusted else ""
        yield f"  {scores.estimate[i]:+.2f}{interval}  {scores.items[i]}"


def _cycles(choices: Choices, rng: np.random.Generator) -> str:
    try:
        test = cycle_test(choices, rng)
    except ValueError as reason:
        return f"Cycles: {reason}"
    return f"Cycles: X² = {test.statistic:.1f} on {_many(test.cycles, 'independent cycle')}, p = {test.p_value:.2g}"


def _agreement(found: Agreement) -> Iterator[str]:
    if found.shared:
        interval = (
            ""
            if math.isnan(found.low)
            else f", 95 % interval {found.low:.2f} to {found.high:.2f}; biased where voting stopped early"
        )
        yield f"Fleiss' kappa of {_many(len(found.shared), 'shared question')}: {_kappa(found.kappa)}{interval}"
    else:
        yield "Shared questions: no question was answered by two people"
    if found.repeated:
        answers = _many(len(found.repeated), "second answer")
        yield f"Repeated questions: {answers}, Cohen's kappa {_kappa(found.repeated_kappa)}"


def _pairs_of_people(shared: dict[Asked, dict[str, bool]]) -> Iterator[str]:
    both: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for given in shared.values():
        for one, other in combinations(sorted(given), 2):
            both[one, other].append((given[one], given[other]))
    enough = sorted((item for item in both.items() if len(item[1]) >= _FEWEST_SHARED), key=lambda item: -len(item[1]))
    for (one, other), chosen in enough[:_SHOWN_PAIRS]:
        kappa = cohen_kappa([a for a, _ in chosen], [b for _, b in chosen])
        yield f"  Cohen's kappa of voters {one} and {other}: {_kappa(kappa)} on {len(chosen)} questions"
    if len(enough) > _SHOWN_PAIRS:
        yield f"  … {len(enough) - _SHOWN_PAIRS} more pairs of voters"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _kappa(value: float) -> str:
    return "undefined (one answer only)" if math.isnan(value) else f"{value:.2f}"


# These bounds keep a page below 10 MB, whatever the record holds.
_MOST_OBJECTS, _MOST_CHARACTERS, _LARGEST_DRAWING = 200, 1_000, 20_000
_MOST_PROPERTIES, _MOST_CHAINS, _MOST_POINTS = 50, 20, 150
_LABEL = 34

# Of pictures, in pixels: the part for labels, the plot, one row, and the height of a trace.
_LABELS, _PLOT, _ROW, _TRACE, _EDGE = 280, 400, 22, 160, 24
_MOLECULE = 220, 150

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light }
body { font: 16px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1b1b1b }
.both { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: start }
figure { margin: 0 0 1rem } svg { font-size: 13px; display: block; max-width: 100%; height: auto }
table { border-collapse: collapse } .wide { overflow-x: auto; max-width: 100% }
th, td { text-align: start; vertical-align: top; padding: .25rem .7rem; border-bottom: 1px solid #ddd }
td.object { white-space: pre-wrap; overflow-wrap: anywhere; max-width: 34rem }
.verdict { font-size: 1.3rem; border-inline-start: .4rem solid #1f5fa8; padding: .5rem 1rem; background: #eef3f9 }
"""

Cell = str | Element


class _Point(NamedTuple):
    """A row of a picture: a number, and its interval where there is one."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


def page(findings: Findings, rng: np.random.Generator) -> bytes:
    """Return the page in UTF-8: at most 200 objects, and less than 10 MB.

    Args:
        rng: as in `diagnose`.

    Raises:
        RecordError: an object of a campaign on molecules is none.
    """
    title = str(findings.record.config.get("name") or "What was found")
    head = _element(
        "head", "", _element("meta", charset="utf-8"), _element("title", _cut(title)), _element("style", _STYLE)
    )
    head.insert(1, _element("meta", http_equiv="Content-Security-Policy", content=_POLICY))
    parts = (_opening(findings), _shares(findings), _traces(findings), _in_words(findings, rng))
    body = _element("body", "", _element("h1", _cut(title)), *chain.from_iterable(parts))
    whole: bytes = tostring(_element("html", "", head, body, lang="en"), encoding="utf-8", method="html")
    return b"<!doctype html>\n" + whole


def _opening(findings: Findings) -> Iterator[Element]:
    found = findings.answer
    verdict = found.verdict
    yield _element("p", f"{verdict.is_that[0].upper()}{verdict.is_that[1:]}.", class_="verdict")
    yield _element("p", f"{verdict.because} {verdict.advice}".rstrip())
    if found.extended:
        times = "once" if found.extended == 1 else f"{found.extended} times"
        yield _element("p", f"The length was changed {times} after the start; no interval here allows for that.")
    if law := findings.record.config.get("target"):
        yield _element("p", f"The chains sample from: {_cut(str(law))}")
    yield _element("p", f"{found.draws:,} steps of the sampling phase, {len(findings.prompts):,} chains.")


def _shares(findings: Findings) -> Iterator[Element]:
    """Yield the objects of each target, the most visited first."""
    found = findings.answer
    shown = found.targets[:_MOST_OBJECTS]
    draw = _drawing(findings)
    for target in shown:
        objects = found.of_target(target)
        kept = objects[: _MOST_OBJECTS // len(shown)]
        yield _element("h2", f"What was found: {_cut(target)}" if target else "What was found")
        yield _element(
            "p",
            f"{len(kept):,} of {len(objects):,} objects, each with its share of the steps and a {LEVEL:.0%} interval. "
            "Votes for and against an object depend on its opponents.",
        )
        names = [_cut(found.names[each.object].partition("\n")[0], _LABEL) for each in kept]
        points = [_Point(name, each.share, each.low, each.high) for name, each in zip(names, kept, strict=True)]
        picture = _intervals(f"Shares of the steps, with {LEVEL:.0%} intervals", points, mark=0)
        asked = found.asked_of(target)
        header = ["Object", "Share", f"{LEVEL:.0%} interval", "Steps", *map(_column_of, asked)]
        rows = [[draw(found.names[each.object]), *_figures(each, asked)] for each in kept]
        yield _beside(picture, header, rows)
        yield from (_element("p", f"{_cut(each.text)}: {each.why_not}") for each in asked if each.why_not)
    if left := len(found.targets) - len(shown):
        yield _element("p", f"{left:,} further prompts are in results.csv.")


def _drawing(findings: Findings) -> Callable[[str], Cell]:
    """Return what shows an object: a molecule drawn, all else as text."""
    space = findings.record.config["space"]
    if "molecules" not in (space["kind"], space.get("objects")):
        return _cut

    def draw(smiles: str) -> Cell:
        try:
            drawn = draw_molecule(smiles, *_MOLECULE)
        except ValueError as error:
            raise RecordError(f"the record cannot be read: {error}") from error
        if len(drawn) > _LARGEST_DRAWING:
            return _cut(smiles)
        source = f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"
        return _element(
            "span",
            "",
            _element("img", src=source, alt="", width=_MOLECULE[0], height=_MOLECULE[1]),
            _element("div", _cut(smiles)),
        )

    return draw


def _column_of(question: Question) -> str:
    score = ", score" if question.scores else ""
    return f"{_cut(question.text)} ({question.source}): for, against{score}"


def _figures(share: Share, asked: Sequence[Question]) -> Iterator[str]:
    yield from (f"{share.share:.1%}", f"{share.low:.1%} to {share.high:.1%}", f"{share.steps:,}")
    for each in asked:
        votes = f"{each.won[share.object]:,}, {each.lost[share.object]:,}"
        score = each.scores.get(share.object)
        yield votes if score is None else f"{votes}, {score.estimate:+.2f}{_interval(score.low, score.high)}"


def _traces(findings: Findings) -> Iterator[Element]:
    """Yield each property along some of the chains, chosen evenly."""
    for column in [each for each in findings.properties.columns if not each.problem][:_MOST_PROPERTIES]:
        every = list(column.draws)
        chains = [every[at] for at in _evenly(len(every), _MOST_CHAINS)]
        of = f"{len(chains):,} of {len(every):,} chains"
        yield _element("h2", f"Trace of {_cut(column.name)}")
        picture = _trace(f"{_cut(column.name)} along {of}", column, chains)
        rows = [[chain, f"{len(column.draws[chain]):,}", *_moments(column.draws[chain])] for chain in chains]
        yield _beside(picture, ["Chain", "Steps", "Mean", "Standard deviation"], rows)


def _moments(draws: Sequence[float]) -> tuple[str, str]:
    return f"{np.mean(draws):.4g}", f"{np.std(draws):.3g}"


def _in_words(findings: Findings, rng: np.random.Generator) -> Iterator[Element]:
    """Yield what the report says of convergence and of the votes, but for single people."""
    told = {
        "Convergence": [*_convergence(findings), *_means(findings)],
        "Position bias": [*_leans(findings)],
    }
    for population, agreement in zip(findings.voters.populations, findings.voters.agreement, strict=True):
        told[_heading(population)] = [*_asked_of(population, findings, rng), *_agreement(agreement)]
    for heading, lines in told.items():
        yield _element("h2", _cut(heading))
        yield from (_element("p", _cut(line)) for line in lines)


def _intervals(title: str, points: Sequence[_Point], mark: float) -> Element:
    """Return a row for each point, with its interval, and a line at `mark`."""
    if not points:
        return _element("p", f"{title}: none can be drawn.")
    ends = [mark, *(end for each in points for end in (each.value, each.low, each.high) if end is not None)]
    low, high = min(ends), max(ends)
    height = _ROW * len(points)

    def x(value: float) -> str:
        return f"{_LABELS + _PLOT * (value - low) / ((high - low) or 1):.1f}"

    drawn = [_element("line", x1=x(mark), x2=x(mark), y1=0, y2=height, stroke="#999", stroke_dasharray="4 3")]
    for row, each in enumerate(points):
        y = _ROW * (row + 0.5)
        drawn.append(_element("text", each.label, x=_LABELS - 12, y=y + 4, text_anchor="end"))
        if each.low is not None and each.high is not None:
            drawn.append(
                _element("line", x1=x(each.low), x2=x(each.high), y1=y, y2=y, stroke="#1f5fa8", stroke_width=2)
            )
        drawn.append(_element("circle", cx=x(each.value), cy=y, r=4, fill="#1f5fa8"))
    for end, anchor in ((low, "start"), (high, "end")):
        drawn.append(_element("text", f"{end:.3g}", x=x(end), y=height + 16, text_anchor=anchor))
    return _figure(title, height, drawn)


def _trace(title: str, column: Column, chains: Sequence[str]) -> Element:
    drawn_draws = [column.draws[chain] for chain in chains]
    low, high = min(map(min, drawn_draws)), max(map(max, drawn_draws))
    longest = max(map(len, drawn_draws))
    drawn = []
    for number, draws in enumerate(drawn_draws):
        places = [
            f"{_LABELS + _PLOT * at / longest:.1f},{_TRACE - _TRACE * (draws[at] - low) / ((high - low) or 1):.1f}"
            for at in _evenly(len(draws), _MOST_POINTS)
        ]
        colour = f"hsl({137 * number % 360} 60% 40%)"
        drawn.append(_element("polyline", points=" ".join(places), fill="none", stroke=colour))
    for end, y in ((high, 12), (low, _TRACE)):
        drawn.append(_element("text", f"{end:.4g}", x=_LABELS - 12, y=y, text_anchor="end"))
    drawn.append(_element("text", f"{longest:,} steps", x=_LABELS + _PLOT, y=_TRACE + 16, text_anchor="end"))
    return _figure(title, _TRACE, drawn)


def _figure(title: str, height: float, drawn: Sequence[Element]) -> Element:
    box = f"0 -4 {_LABELS + _PLOT + _EDGE} {height + _EDGE + 4}"
    width = _LABELS + _PLOT + _EDGE
    picture = _element(
        "svg", "", *drawn, role="img", aria_label=title, viewBox=box, width=width, height=height + _EDGE + 4
    )
    return _element("figure", "", _element("figcaption", title), picture)


def _beside(picture: Element, header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Element:
    """Return a picture and the table with its numbers."""
    head = _element("tr", "", *(_element("th", each, scope="col") for each in header))
    body = [_element("tr", "", *map(_cell, row)) for row in rows]
    table = _element("div", "", _element("table", "", head, *body), class_="wide")
    return _element("div", "", picture, table, class_="both")


def _cell(content: Cell) -> Element:
    # Texts may run from right to left, and one says nothing about the next.
    cell = _element("td", content) if isinstance(content, str) else _element("td", "", content)
    cell.attrib |= {"class": "object", "dir": "auto"}
    return cell


def _element(tag: str, text: str = "", *children: Element, **attributes: object) -> Element:
    """Return an element; an attribute's underscores stand for hyphens, and one at its end for nothing."""
    made = Element(tag, {name.strip("_").replace("_", "-"): str(value) for name, value in attributes.items()})
    made.text = text
    made.extend(children)
    return made


def _evenly(count: int, most: int) -> list[int]:
    """Return up to so many places of a list, its first and its last among them."""
    return [round(at) for at in np.linspace(0, count - 1, min(count, most)).tolist()]


def _cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
