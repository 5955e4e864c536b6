"""How long a run will take at a measured rate: by hand, from the sums of docs/experiments.md."""

import sampler
from prefmh_web.experiments import forecast


def options(experiment: str, **named: object) -> sampler.ExperimentOptions:
    return sampler.ExperimentOptions.of(experiment, **named)


def test_what_log_probabilities_save():
    assert forecast.saved_by_probabilities(options("molecules")) == 1_000_000 * (8 - 2)
    assert forecast.saved_by_probabilities(options("stories", votes="log-probabilities")) == 0
    assert forecast.saved_by_probabilities(options("molecules", methods=["pointwise"])) == 0


def test_what_half_the_votes_save():
    # N = 4 in place of 8. Ratings are left alone: fewer of them sample another law.
    assert forecast.saved_by_half_the_votes(options("molecules")) == 1_000_000 * 4
    assert forecast.saved_by_half_the_votes(options("molecules", methods=["pointwise"])) == 0
    assert forecast.saved_by_half_the_votes(options("stories", votes="log-probabilities")) == 0


def test_the_lines_of_a_run():
    # 15,000 proposals, three judges and one: asked twice in place of three times, and once.
    assert list(forecast.lines(options("stories"), 10.0)) == [
        "at 10.0 planned requests a second, as measured, the whole run's 382,700 take about 10 h 38 min",
        "  --votes log-probabilities: 60,000 requests and about 1 h 40 min less",
        "  half the votes of each judge (N = 1 in place of 3): 120,000 requests and about 3 h 20 min less",
    ]
    assert len(list(forecast.lines(options("translation", methods=["pointwise"]), 10.0))) == 1
    assert not list(forecast.lines(options("molecules", methods=["mars-plain"]), 10.0))
