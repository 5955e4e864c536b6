"""Every vote as a line of preferences.jsonl, in the form that libraries for preference tuning read.

One line a vote, in the order of votes.csv, late votes included: `prompt`, `chosen` and `rejected`, and the keys of the
vote. Checks, gold pairs and repeats are no votes, and in no line; no line says who voted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import cells, pictures
from prefmh_web.campaigns.record.rows import votes_of
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler.judges import Context, ContextLine, shared_context

# Two texts a vote, which may be long.
_ROWS_AT_ONCE = 100
_KEYS = ("chain_index", "step", "number", "judge_index", "lease", "slot")
_COLUMNS = (
    "comparison__chain__place", "comparison__step", "number", "judge__place", cells.LEASE, "slot",
    cells.FOR_PROPOSAL, "judge__question",
    "comparison__current__place", "comparison__current__content", "comparison__current__media_type",
    "comparison__proposal__place", "comparison__proposal__content", "comparison__proposal__media_type",
)  # fmt: skip
_CONTEXTS = ("comparison__current__columns", "comparison__proposal__columns")


def are_in(campaign: Campaign) -> bool:
    """True where votes decide: no other rule asks anybody which of two objects they prefer."""
    return campaign.config.rule.evidence == "votes"


def lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield a JSON object for each vote, with the end of its line.

    `prompt` is the judge's question below what the shown columns of a list have in common for the two objects;
    `chosen_context` and `rejected_context` hold what stood with one of the two only. Of a text
    `chosen` and `rejected` are the text, of a molecule the SMILES, of a picture or a recording the name of its file.
    """
    shown, has_files, space = snapshot.config.context, pictures.are_in(snapshot), snapshot.config.space
    columns = (*_COLUMNS, *(_CONTEXTS if shown else ()))
    for row in votes_of(snapshot).values_list(*columns).iterator(_ROWS_AT_ONCE):
        keys, (for_proposal, question, *objects) = row[: len(_KEYS)], row[len(_KEYS) :]
        if not snapshot.has_vote(*keys[:3]):
            continue
        pair = [
            pictures.name_of(space, state, media_type) if has_files else content
            for state, content, media_type in (objects[:3], objects[3:6])
        ]
        chosen, rejected = reversed(pair) if for_proposal == "1" else pair
        line: dict[str, Any] = {"prompt": question, "chosen": chosen, "rejected": rejected}
        line |= {"chosen_context": "", "rejected_context": ""}
        if shown:
            of_pair = [
                tuple(ContextLine(each.label, held.get(each.column, "")) for each in shown) for held in objects[6:]
            ]
            context = shared_context(*(reversed(of_pair) if for_proposal == "1" else of_pair))
            of_chosen, of_rejected = map(_written, context.own)
            line |= {
                "prompt": "\n\n".join(filter(None, (_written(context.shared), question))),
                "chosen_context": of_chosen,
                "rejected_context": of_rejected,
            }
        line |= zip(_KEYS, keys, strict=True)
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _written(context: Context) -> str:
    return "\n".join(f"{line.label}: {line.text}" for line in context)
