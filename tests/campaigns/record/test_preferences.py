"""preferences.jsonl says what votes.csv and states.csv say together, and nothing of who voted."""

import json
import zipfile

import pytest

from prefmh_web.campaigns.models import Lease
from sampler import tables
from tests.support.campaigns import export_to, make_campaign, make_config, table, voted_to_the_end

LIST = "text,source,note\n" + "".join(f"Text {place},The house,Note {place % 2}\n" for place in range(6))
SHOWN = [{"column": "source", "label": "Source"}, {"column": "note", "label": "Note"}]


def lines_of(path) -> list[dict]:
    with zipfile.ZipFile(path) as archive:
        return [json.loads(line) for line in archive.read("preferences.jsonl").decode().splitlines()]


def test_each_vote_is_a_line_with_the_two_texts(researcher, idle_tasks, tmp_path):
    campaign = voted_to_the_end(make_campaign(researcher, file=LIST, config=make_config(chains=2, steps=4)))
    path = export_to(campaign, tmp_path)
    content = {row["state_index"]: row["content"] for row in table(path, "states.csv")}
    lines, votes = lines_of(path), table(path, "votes.csv")
    assert len(lines) == len(votes) > 0
    for line, vote in zip(lines, votes, strict=True):
        shown = {vote["first_state"], vote["second_state"]}
        assert line["prompt"] == vote["question"]
        assert line["chosen"] == content[vote["chosen_state"]]
        assert line["rejected"] == content[(shown - {vote["chosen_state"]}).pop()]
        keys = ("chain_index", "step", "number", "judge_index", "lease")
        assert [str(line[key]) for key in keys] == [vote[key] for key in keys]
        assert line.keys() == {*map(str, tables.PREFERENCES.header)}
    leases = Lease.objects.filter(annotator__campaign=campaign, ending=Lease.Ending.VOTED)
    assert {line["lease"] for line in lines} == {str(lease.key) for lease in leases}


def test_the_prompt_holds_what_both_objects_were_shown_with(researcher, idle_tasks, tmp_path):
    config = make_config(chains=2, steps=4)
    config["space"]["context"] = SHOWN
    campaign = voted_to_the_end(make_campaign(researcher, file=LIST, config=config))
    lines = lines_of(export_to(campaign, tmp_path))
    differing = 0
    for line in lines:
        notes = [f"Note: Note {int(line[of].removeprefix('Text ')) % 2}" for of in ("chosen", "rejected")]
        head, _, question = line["prompt"].rpartition("\n\n")
        assert "\n" not in question
        if notes[0] == notes[1]:
            assert (head, line["chosen_context"], line["rejected_context"]) == (
                f"Source: The house\n{notes[0]}",
                "",
                "",
            )
        else:
            differing += 1
            assert (head, line["chosen_context"], line["rejected_context"]) == ("Source: The house", *notes)
    assert 0 < differing < len(lines)


def test_an_open_campaign_has_a_file_without_lines(campaign, tmp_path):
    assert lines_of(export_to(campaign, tmp_path)) == []


@pytest.mark.parametrize("name", ["preferences.jsonl", "codebook.csv"])
def test_a_campaign_that_asks_nobody_has_no_preferences(researcher, idle_tasks, tmp_path, name):
    config = make_config(chains=1, steps=2, judges=[], rule={"kind": "base"}, kernel={"kind": "independent"})
    with zipfile.ZipFile(export_to(make_campaign(researcher, config=config), tmp_path)) as archive:
        assert (name in archive.namelist()) is (name == "codebook.csv")
