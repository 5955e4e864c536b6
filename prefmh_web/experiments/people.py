"""`manage.py experiment compare … --people`: records of any campaigns against each other, with people voting blind.

The votes are those of an ordinary campaign on a fixed list of pairs (`sampler/spaces/pairs.py`): a chain for each
match, a step for each answer, one vote a step, the order drawn for each answer. Nobody answers two steps of one chain
(`StartedCampaign.asks_once`), so N answers are those of N people. Invitations, pages, leases and the export are those
of any campaign. The objects stand in its recipe, pictures by what they hold; no name of a file or a record does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Campaign, Side, Vote
from prefmh_web.experiments import evaluation, folder
from prefmh_web.experiments.campaigns import Blocked
from prefmh_web.experiments.folder import Row
from prefmh_web.experiments.given_pictures import GivenPictures, given_pictures
from prefmh_web.experiments.models import ExperimentCampaign
from prefmh_web.experiments.progress import Display

PEOPLE = "people"
DEFAULT_ANSWERS = 2
_SEED = 0
outputs = sampler.outputs


@dataclass(frozen=True)
class PeopleComparing:
    """One comparison of records by people.

    Args:
        records: what meets.
        question: which they answer about each pair.
        answers: N, how many each pair gets.
        owner: of the campaign.
        out: the folder.
        commit: of this project.
    """

    records: sampler.ComparedRecords
    question: str
    answers: int
    owner: User
    out: Path
    commit: str = ""

    @cached_property
    def document(self) -> dict[str, Any]:
        """What settings.json holds."""
        made = sampler.comparison_document(self.records, self.question, {}, PEOPLE, self.commit)
        return made | {"answers": self.answers}

    @cached_property
    def matches(self) -> list[sampler.TournamentMatch]:
        """What meets, in the order of the campaign's chains."""
        return self.records.met()

    def run(self, display: Display) -> None:
        """Make and start the campaign if there is none, say how far it is, and write all files.

        Raises:
            OptionError: an option has a value that it may not have, or there are too many pairs.
            RecordError: the records have no pictures that people can be shown.
            OtherSettings: the folder holds something else.
            Blocked: the campaign could not be started.
        """
        self._check()
        found = self._found()
        campaign = self._started() if found is None or found.is_draft else found
        folder.settle(self.out, self.document)
        folder.write_table(self.out, outputs.PAIRS, evaluation.match_rows(self.matches))
        folder.write_table(self.out, outputs.VOTES, self._votes(campaign))
        for path in sampler.write_report(self.out):
            display.say(str(path))
        for line in self._standing(campaign):
            display.say(line)

    def recipe(self, pictures: GivenPictures) -> dict[str, Any]:
        """Return the campaign's recipe."""
        records = dict(zip(self.records.ids, self.records.records, strict=True))

        def shown(record: str, state: sampler.KeptState) -> str:
            found = records[record].objects[state]
            return pictures.names.get((record, found.state), found.content)

        pairs = [[shown(match.one, match.one_state), shown(match.other, match.other_state)] for match in self.matches]
        return {
            "version": 1,
            "space": {"kind": "pairs", "objects": self.records.kind, "pairs": pairs},
            "kernel": {"kind": "neighbours"},
            "judges": [{"question": self.question, "budget": 1}],
            "chains": len(pairs),
            "steps": self.answers,
            "seed": _SEED,
        }

    def _check(self) -> None:
        if self.answers < 1:
            raise sampler.OptionError("--answers", f"must be 1 at least, not {self.answers}")
        if len(self.matches) > sampler.MAX_PAIRS:
            raise sampler.OptionError(
                "--matches", f"must be fewer: there are {len(self.matches):,} pairs, and {sampler.MAX_PAIRS:,} at most"
            )

    @property
    def _key(self) -> dict[str, Any]:
        hashed = sampler.settings_hash(self.document)
        return {"owner": self.owner, "settings": hashed, "method": PEOPLE, "direction": "", "seed": _SEED}

    def _found(self) -> Campaign | None:
        found = ExperimentCampaign.objects.filter(**self._key).select_related("campaign").first()
        return None if found is None else found.campaign

    def _started(self) -> Campaign:
        """Return the campaign of these settings, made and started, with its pictures."""
        with given_pictures(self.records) as pictures:
            recipe = sampler.parse_recipe(self.recipe(pictures)).model_dump(mode="json")
            folder.settle(self.out, self.document)
            campaign = self._made(recipe)
            pictures.store(campaign)
        if campaign.is_draft:
            try:
                lifecycle.start(campaign)
            except lifecycle.NotPossible as reason:
                raise Blocked(f"{campaign.name} could not be started: {reason}") from reason
            campaign.refresh_from_db()
        return campaign

    def _made(self, recipe: dict[str, Any]) -> Campaign:
        """Return the campaign; two commands at once make one."""
        with transaction.atomic():
            # Whoever makes one holds its owner's row.
            User.objects.select_for_update().get(pk=self.owner.pk)
            campaign = self._found()
            if campaign is None:
                campaign = drafts.create(owner=self.owner, name="Records compared", recipe=recipe, is_seed_typed=True)
                ExperimentCampaign.objects.create(**self._key, experiment=sampler.COMPARE, campaign=campaign)
        return campaign

    def _votes(self, campaign: Campaign) -> Iterator[Row]:
        """Yield the rows of votes.csv, pair after pair."""
        people = campaign.annotators.order_by("pk").values_list("pk", flat=True)
        numbers = {pk: str(number) for number, pk in enumerate(people, start=1)}
        about = self.records.schedule()[0].about
        counted: Counter[tuple[str, bool]] = Counter()
        cast = Vote.objects.filter(comparison__chain__campaign=campaign, number__isnull=False)
        found = cast.order_by("comparison__chain__place", "comparison__step").select_related(
            "comparison__chain", "comparison__proposal"
        )
        for vote in found:
            match = self.matches[vote.comparison.chain.place]
            # Even places are the first objects of pairs.
            is_one = int(vote.comparison.proposal.code) % 2 == 0
            one_first = is_one == (vote.proposal_side == Side.LEFT)
            yield outputs.VOTES.row(
                pair=match.key,
                property=about,
                one_first=one_first,
                number=counted[match.key, one_first],
                chose_one=is_one == (vote.chosen_side == vote.proposal_side),
                voter=numbers[vote.annotator_id or 0],
                asks=1,
            )
            counted[match.key, one_first] += 1

    def _standing(self, campaign: Campaign) -> Iterator[str]:
        cast = Vote.objects.filter(comparison__chain__campaign=campaign, number__isnull=False)
        people = cast.values("annotator").distinct().count()
        yield f"{cast.count():,} of {len(self.matches) * self.answers:,} answers, of {people:,} people"
        if campaign.status != Campaign.Status.FINISHED:
            link = campaign.invitations.earliest("pk").get_absolute_url()
            yield f"Invite people with {getattr(settings, 'SITE_URL', None) or ''}{link}"
            yield f"Nobody is asked twice about a pair: its {self.answers} answers take {self.answers} people."
            yield "Run the same command again to have the table of the answers so far."
