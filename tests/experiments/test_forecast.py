"""How long a run will take at a measured rate: by hand, from the sums of docs/experiments.md."""

import sampler
from prefmh_web.experiments import forecast


def options(experiment: str, **named: object) -> sampler.ExperimentOptions:
    return sampler.ExperimentOptions.of(experiment, **named)


def test_the_lines_of_a_run():
    # 15,000 proposals, three judges and one: asked twice in place of three times, and once.
    assert list(forecast.lines(options("stories"), 10.0)) == [
        "at 10.0 planned requests a second, as measured, the whole run's 382,700 take about 10 h 38 min",
        "  --votes log-probabilities: 60,000 requests and about 1 h 40 min less",
        "  half the votes of each judge (N = 1 in place of 3): 120,000 requests and about 3 h 20 min less",
    ]
    assert len(list(forecast.lines(options("translation", methods=["pointwise"]), 10.0))) == 1
    assert not list(forecast.lines(options("molecules", methods=["mars-plain"]), 10.0))
