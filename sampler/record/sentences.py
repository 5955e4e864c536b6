"""What a verification says: what is proven of a record, and what it only claims."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sampler.record import schema
from sampler.record.replay import Replay

_UNCHECKED = (
    schema.EVENTS.file,
    schema.LEASES.file,
    schema.ANNOTATORS.file,
    schema.CONSENTS.file,
    schema.CONSENT_TEXTS.file,
    schema.PROBLEMS.file,
    schema.CALLS.file,
    schema.REASONS.file,
    "campaign.yaml",
    "preferences.jsonl",
    schema.CODEBOOK.file,
)
"""Files of which nothing else in a record says what they should hold."""


def proven(replay: Replay | None) -> tuple[str, ...]:
    """Return what holds of a record whose files are those of its manifest, and whose content agrees with itself.

    Args:
        replay: what was recomputed.
    """
    kept = "Every file has the SHA-256 that manifest.json says."
    return (kept,) if replay is None else (kept, _verdicts(replay), *_draws(replay))


def _verdicts(replay: Replay) -> str:
    evidence = f"{replay.ratings} ratings" if replay.ratings else f"{replay.votes} votes"
    evidence = f"{replay.scores} scores" if replay.scores else evidence
    return (
        f"All {replay.verdicts} verdicts, the chains' paths and the samples follow from the {evidence} in their order, "
        "the base ratios and the uniforms, by the rule in campaign.json."
    )


def _draws(replay: Replay) -> Iterator[str]:
    commitment = replay.commitment
    if replay.waits_for_seed and commitment is not None:
        yield (
            f"The seed is not told yet; its hash is {commitment.digest}. Starts, proposals, base ratios and uniforms "
            "are taken as recorded: whether they were drawn from the seed shows once the campaign has ended."
        )
        return
    drawn = "Starts, proposals, base ratios and uniforms"
    if replay.recorded_draws:
        drawn = "Uniforms, and which move each step made,"
    yield f"{drawn} are those that the seed gives: drawn again, all agree."
    if commitment is not None:
        yield (
            f"The seed is the one of the hash {commitment.digest}. Whoever noted this hash before the first vote knows "
            "that the seed was fixed by then."
        )


def claimed(about: Mapping[str, Any], names: Collection[str], replay: Replay | None) -> Iterator[str]:
    """Yield what a record says, or leaves open, and nothing in it can show.

    Args:
        about: the manifest, without the hashes.
        names: of the record's files.
        replay: what was recomputed, if it could be.
    """
    if about:
        yield f"That it is of campaign {about.get('campaign')} of {about.get('site') or 'a site without an address'}."
        yield f"That it was written at {about.get('written_at')}."
    yield "That nobody has changed a file and its hash: the content alone can tell, and it cannot tell everything."
    yield "That the people who voted are real, are different people, and answered for themselves."
    yield "That votes were recorded as they were given. A vote whose answer decides nothing can be another one."
    yield "That no vote and no chain was left out together with all that follows from it."
    yield "That no other campaign was run and dropped, and this one kept because of what came out."
    yield "All times, and how long answers took."
    yield "That nobody who voted knew the uniforms or which object was the proposal; and people's sides at random."
    if replay is not None and replay.commitment is not None:
        yield "That the hash of the seed was told when the campaign started, and that the site kept the seed."
        drawn = "somebody typed it." if replay.commitment.was_typed else "the site says that the start drew it."
        yield f"That the seed was not chosen for what it gives: {drawn}"
    if schema.EXTENSIONS.file in names:
        yield (
            "Steps were added. If that was after the campaign had ended, its seed was told by then, and who voted "
            f"later could know the uniforms: {schema.EVENTS.file} says when (kind seed-told)."
        )
    if replay is not None and replay.recorded_draws:
        yield "That the texts are those that the model wrote, and that the model's server drew them as it should."
    if unchecked := [name for name in _UNCHECKED if name in names]:
        yield f"What these files say, as nothing else in the record does: {', '.join(unchecked)}."
    if any(name.startswith("pictures/") for name in names):
        yield "That the pictures are those that people saw."
    if any(name.startswith("recordings/") for name in names):
        yield "That the recordings are those that people heard."
