"""What is found in an exported campaign as one HTML page, for a co-author: pictures, and a table beside each.

It needs no other file and runs no script. Everything that comes from the record is set as text by ElementTree, which
escapes it, and the page's own policy lets it load nothing. It names no participant.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, tostring

import numpy as np

from sampler.diagnostics.chains import Column, by_target, figure, many, percent
from sampler.diagnostics.findings import Findings, QuestionResult
from sampler.diagnostics.scores import MIN_CLUSTERS, NoFit
from sampler.diagnostics.verdict import LEVEL, MAX_R_HAT, Share
from sampler.objects.molecules import draw_molecule
from sampler.record.record import RecordError

# These bounds keep a page below 10 MB, whatever the record holds.
_MAX_OBJECTS, _MAX_CHARACTERS, _LARGEST_DRAWING = 200, 1_000, 20_000
_MAX_PROPERTIES, _MAX_CHAINS, _MAX_POINTS = 50, 20, 150
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


def page(findings: Findings) -> bytes:
    """Return the page in UTF-8: at most 200 objects, and less than 10 MB.

    Raises:
        RecordError: an object of a campaign on molecules is none.
    """
    title = str(findings.record.config.get("name") or "What was found")
    head = _of("head", "", _of("meta", charset="utf-8"), _of("title", _cut(title)), _of("style", _STYLE))
    head.insert(1, _of("meta", http_equiv="Content-Security-Policy", content=_POLICY))
    parts = (_opening, _shares, _convergence, _traces, _biases, _agreement)
    body = _of("body", "", _of("h1", _cut(title)), *(each for part in parts for each in part(findings)))
    whole: bytes = tostring(_of("html", "", head, body, lang="en"), encoding="utf-8", method="html")
    return b"<!doctype html>\n" + whole


def _opening(findings: Findings) -> Iterator[Element]:
    found = findings.results
    verdict = found.verdict
    yield _of("p", f"{verdict.is_that[0].upper()}{verdict.is_that[1:]}.", class_="verdict")
    yield _of("p", f"{verdict.because} {verdict.advice}".rstrip())
    if found.extended:
        times = "once" if found.extended == 1 else f"{found.extended} times"
        yield _of("p", f"The length was changed {times} after the start; no interval here allows for that.")
    if distribution := findings.record.config.get("target"):
        yield _of("p", f"The chains sample from: {_cut(str(distribution))}")
    yield _of("p", f"{many(found.draws, 'step')} of the sampling phase, {many(len(findings.prompts), 'chain')}.")


def _shares(findings: Findings) -> Iterator[Element]:
    """Yield the objects of each target, the most visited first."""
    found = findings.results
    shown = found.targets[:_MAX_OBJECTS]
    draw = _drawing(findings)
    level = percent(LEVEL, 0)
    for target in shown:
        objects = found.of_target(target)
        kept = objects[: _MAX_OBJECTS // len(shown)]
        yield _of("h2", f"What was found: {_cut(target)}" if target else "What was found")
        yield _of(
            "p",
            f"{len(kept):,} of {many(len(objects), 'object')}, each with its share of the steps and a {level} "
            "interval. Votes for and against an object depend on its opponents.",
        )
        names = [_cut(found.names[each.object].partition("\n")[0], _LABEL) for each in kept]
        points = [_Point(name, each.share, each.low, each.high) for name, each in zip(names, kept, strict=True)]
        picture = _intervals(f"Shares of the steps, with {level} intervals", points, mark=0)
        asked = found.asked_of(target)
        header = ["Object", "Share", f"{level} interval", "Steps", *(_heading(each) for each in asked)]
        rows = [[draw(found.names[each.object]), *_figures(each, asked)] for each in kept]
        yield _beside(picture, header, rows)
        yield from (_of("p", f"{_cut(each.text)}: {each.why_not}") for each in asked if each.why_not)
    if left := len(found.targets) - len(shown):
        yield _of("p", f"In results.csv: {many(left, 'further prompt')}.")


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
        return _of(
            "span",
            "",
            _of("img", src=source, alt="", width=_MOLECULE[0], height=_MOLECULE[1]),
            _of("div", _cut(smiles)),
        )

    return draw


def _heading(question: QuestionResult) -> str:
    score = f", score with its {percent(LEVEL, 0)} interval" if question.scores else ""
    return f"{_cut(question.text)} ({question.source}): for, against{score}"


def _figures(share: Share, asked: Sequence[QuestionResult]) -> Iterator[str]:
    yield from (share.percent, share.interval, f"{share.steps:,}")
    for each in asked:
        votes = f"{each.won[share.object]:,}, {each.lost[share.object]:,}"
        score = each.scores.get(share.object)
        yield votes if score is None else f"{votes}, {score.estimate:+z.2f}{_interval(score.low, score.high)}"


def _convergence(findings: Findings) -> Iterator[Element]:
    yield _of("h2", "Convergence")
    points: list[_Point] = []
    rows: list[list[Cell]] = []
    for column in findings.properties.columns[:_MAX_PROPERTIES]:
        name = _cut(column.name)
        draws = ((findings.prompts[chain], along) for chain, along in column.draws.items())
        found = None if column.problem else by_target(draws)
        if found is None or not found.measured:
            rows.append([name, "", "", "", _cut(column.problem or "too few draws, or all are the same")])
            continue
        if found.r_hat is not None and math.isfinite(found.r_hat):
            points.append(_Point(_cut(column.name, _LABEL), found.r_hat))
        rows.append(
            [
                name,
                found.r_hat_text or "needs two chains",
                f"{found.bulk_ess:,.0f}",
                f"{found.tail_ess:,.0f}",
                found.basis,
            ]
        )
    if findings.properties.missing:
        yield _of("p", f"{findings.properties.missing}.")
    picture = _intervals(f"R-hat; the line is at {MAX_R_HAT}", points, mark=MAX_R_HAT)
    yield _beside(picture, ["Property", "R-hat", "Effective draws, bulk", "tails", "From"], rows)


def _traces(findings: Findings) -> Iterator[Element]:
    """Yield each property along some of the chains, chosen evenly."""
    for column in [each for each in findings.properties.columns if not each.problem][:_MAX_PROPERTIES]:
        every = list(column.draws)
        chains = [every[at] for at in _evenly(len(every), _MAX_CHAINS)]
        of = f"{len(chains):,} of {many(len(every), 'chain')}"
        yield _of("h2", f"Trace of {_cut(column.name)}")
        picture = _trace(f"{_cut(column.name)} along {of}", column, chains)
        rows: list[list[Cell]] = [
            [
                _of("span", chain, style=f"color: {_colour(number)}"),
                f"{len(column.draws[chain]):,}",
                *_moments(column.draws[chain]),
            ]
            for number, chain in enumerate(chains)
        ]
        yield _beside(picture, ["Chain", "Steps", "Mean", "Standard deviation"], rows)


def _moments(draws: Sequence[float]) -> tuple[str, str]:
    return figure(float(np.mean(draws))), figure(float(np.std(draws)), 3)


def _biases(findings: Findings) -> Iterator[Element]:
    yield _of("h2", "Position bias")
    yield _of("p", "The position bias to the object that stands first, in nats of log-odds; 0 is none.")
    points: list[_Point] = []
    rows: list[list[Cell]] = []
    for bias in findings.biases:
        told: list[Cell] = [bias.source, f"{bias.first:,} of {bias.votes:,}"]
        if isinstance(bias.found, NoFit):
            rows.append([*told, _cut(f"cannot be estimated: {bias.found}")])
            continue
        is_trusted = bias.found.clusters >= MIN_CLUSTERS
        low, high = (bias.found.low, bias.found.high) if is_trusted else (None, None)
        points.append(_Point(_cut(bias.source, _LABEL), bias.found.log_odds, low, high))
        interval = _interval(low, high, 3) or " (too few clusters for an interval)"
        rows.append([*told, f"{bias.found.log_odds:+z.3f}{interval}"])
    picture = _intervals("Position bias, with 95 % intervals", points, mark=0)
    yield _beside(picture, ["Who", "First chosen", "Bias"], rows)


def _agreement(findings: Findings) -> Iterator[Element]:
    yield _of("h2", "Agreement")
    yield _of("p", "Kappa is 1 where all agree, and 0 where no more agree than by chance.")
    points: list[_Point] = []
    rows: list[list[Cell]] = []
    for asked, found in zip(findings.populations, findings.agreement, strict=True):
        low, high = (None, None) if math.isnan(found.low) else (found.low, found.high)
        if not math.isnan(found.kappa):
            points.append(_Point(_cut(asked.question, _LABEL), found.kappa, low, high))
        shared, repeated = (f"{len(each):,}" for each in (found.shared, found.repeated))
        kappas = _number(found.kappa) + _interval(low, high), _number(found.repeated_kappa)
        rows.append([_cut(asked.question), asked.source, shared, kappas[0], repeated, kappas[1]])
    picture = _intervals("Fleiss' kappa of shared questions, with 95 % intervals", points, mark=0)
    header = ["Question", "Who", "Shared questions", "Fleiss' kappa", "Second answers", "Cohen's kappa of these"]
    yield _beside(picture, header, rows)


def _intervals(title: str, points: Sequence[_Point], mark: float) -> Element:
    """Return a row for each point, with its interval, and a line at `mark`."""
    if not points:
        return _of("p", f"{title}: none can be drawn.")
    ends = [mark, *(end for each in points for end in (each.value, each.low, each.high) if end is not None)]
    low, high = min(ends), max(ends)
    height = _ROW * len(points)

    def x(value: float) -> str:
        return f"{_LABELS + _PLOT * (value - low) / ((high - low) or 1):.1f}"

    drawn = [_of("line", x1=x(mark), x2=x(mark), y1=0, y2=height, stroke="#999", stroke_dasharray="4 3")]
    for row, each in enumerate(points):
        y = _ROW * (row + 0.5)
        drawn.append(_of("text", each.label, x=_LABELS - 12, y=y + 4, text_anchor="end"))
        if each.low is not None and each.high is not None:
            drawn.append(_of("line", x1=x(each.low), x2=x(each.high), y1=y, y2=y, stroke="#1f5fa8", stroke_width=2))
        drawn.append(_of("circle", cx=x(each.value), cy=y, r=4, fill="#1f5fa8"))
    for end, anchor in ((low, "start"), (high, "end")):
        drawn.append(_of("text", figure(end, 3), x=x(end), y=height + 16, text_anchor=anchor))
    return _figure(title, height, drawn)


def _trace(title: str, column: Column, chains: Sequence[str]) -> Element:
    drawn_draws = [column.draws[chain] for chain in chains]
    low, high = min(map(min, drawn_draws)), max(map(max, drawn_draws))
    longest = max(map(len, drawn_draws))
    drawn = []
    for number, draws in enumerate(drawn_draws):
        points = [
            f"{_LABELS + _PLOT * at / longest:.1f},{_TRACE - _TRACE * (draws[at] - low) / ((high - low) or 1):.1f}"
            for at in _evenly(len(draws), _MAX_POINTS)
        ]
        drawn.append(_of("polyline", points=" ".join(points), fill="none", stroke=_colour(number)))
    for end, y in ((high, 12), (low, _TRACE)):
        drawn.append(_of("text", figure(end), x=_LABELS - 12, y=y, text_anchor="end"))
    drawn.append(_of("text", many(longest, "step"), x=_LABELS + _PLOT, y=_TRACE + 16, text_anchor="end"))
    return _figure(title, _TRACE, drawn)


def _colour(number: int) -> str:
    """Return the colour of a line, and of the chain's number in the table beside it."""
    return f"hsl({137 * number % 360} 60% 40%)"


def _figure(title: str, height: float, drawn: Sequence[Element]) -> Element:
    box = f"0 -4 {_LABELS + _PLOT + _EDGE} {height + _EDGE + 4}"
    width = _LABELS + _PLOT + _EDGE
    picture = _of("svg", "", *drawn, role="img", aria_label=title, viewBox=box, width=width, height=height + _EDGE + 4)
    return _of("figure", "", _of("figcaption", title), picture)


def _beside(picture: Element, header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Element:
    """Return a picture and the table with its numbers."""
    head = _of("tr", "", *(_of("th", each, scope="col") for each in header))
    body = [_of("tr", "", *map(_cell, row)) for row in rows]
    table = _of("div", "", _of("table", "", head, *body), class_="wide")
    return _of("div", "", picture, table, class_="both")


def _cell(content: Cell) -> Element:
    # Texts may run from right to left, and one says nothing about the next.
    cell = _of("td", content) if isinstance(content, str) else _of("td", "", content)
    cell.attrib |= {"class": "object", "dir": "auto"}
    return cell


def _of(tag: str, text: str = "", *children: Element, **attributes: object) -> Element:
    """Return an element; an attribute's underscores stand for hyphens, and one at its end for nothing."""
    made = Element(tag, {name.strip("_").replace("_", "-"): str(value) for name, value in attributes.items()})
    made.text = text
    made.extend(children)
    return made


def _evenly(count: int, most: int) -> list[int]:
    """Return up to so many indices of a list, its first and its last among them."""
    return [round(at) for at in np.linspace(0, count - 1, min(count, most)).tolist()]


def _cut(text: str, most: int = _MAX_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:z.2f}"


def _interval(low: float | None, high: float | None, decimals: int = 2) -> str:
    return "" if low is None or high is None else f" ({low:z.{decimals}f} to {high:z.{decimals}f})"
