"""What of a study with people is fixed once it has started, and why; and what only goes upwards."""

from __future__ import annotations

from prefmh_web.campaigns.lifecycle.fixed import CROWD, JUDGED_BY, Fixed

_TRIALS = "the record declares beforehand how often trials come, and their answers are compared with each other"

RECRUITMENT = {
    "recruiter": Fixed("Where do people come from?", CROWD),
    "parameter": Fixed("Parameter with the person's id", CROWD),
    "checks_ids": Fixed("Check the form of ids", CROWD),
    "votes_each": Fixed("Votes per person", CROWD),
    "most_minutes": Fixed("The platform's maximum time, in minutes", CROWD),
    "most_active_minutes": Fixed("Active minutes per person", CROWD),
    "absent_minutes": Fixed("Minutes until an absent person loses their place", CROWD),
    "most_a_minute": Fixed("Most votes a minute", "the record flags everybody by the same number"),
    "excluded": Fixed("Do not take people who took part in", CROWD),
}
"""Of the page “Participants”."""

PROTOCOL = {
    "questions": Fixed("Questions about the person", CROWD),
    "instructions": Fixed("Instructions", JUDGED_BY),
    "practice": Fixed("Practice", JUDGED_BY),
    "comprehension": Fixed("Check that people understood", CROWD),
    "tries": Fixed("Tries", CROWD),
    "check_share": Fixed("Attention checks, per 100 votes", _TRIALS),
    "gold": Fixed("Gold pairs", _TRIALS),
    "gold_share": Fixed("Gold checks, per 100 votes", _TRIALS),
    "repeat_share": Fixed("Repeats, per 100 votes", _TRIALS),
    "wait_minutes": Fixed("Longest wait, in minutes", CROWD),
    "wait_is_paid": Fixed("The time that people wait is paid", CROWD),
    "checks_may_fail": Fixed("So many may fail", CROWD),
    "checks_end": Fixed("One more ends the part", CROWD),
}
"""Of the page “Protocol”: all but the debriefing, which people read when they have voted."""

BUDGET = Fixed("Budget, in answers", "votes of all steps are set aside from it, so it can only be raised")
"""Until the last step; a campaign without one keeps none."""
