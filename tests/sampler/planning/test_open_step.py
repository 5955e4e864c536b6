"""A step of one judge, kept as two counts, is the step that `sampler.acceptance` tells of."""

import numpy as np
import pytest

from sampler.planning.open_step import OneJudgeStep, OpenStep


@pytest.mark.parametrize("budget", [1, 2, 3, 7])
def test_two_counts_say_what_the_rule_says(budget):
    rng = np.random.default_rng(budget)
    for _ in range(200):
        log_r0, uniform = float(rng.normal(0, 2)), float(rng.random())
        steps = OpenStep(log_r0, uniform, (budget,)), OneJudgeStep(log_r0, uniform, (budget,))
        promised = 0
        while True:
            general, short = steps
            assert general.accepted == short.accepted
            assert tuple(general.room()) == tuple(short.room())
            if general.accepted is not None and not promised:
                break
            # Ask, hear, or lose somebody, whatever is possible.
            deed = rng.random()
            if general.room()[0] and deed < 0.5:
                promised += 1
                for step in steps:
                    step.promise(0)
            elif promised:
                promised -= 1
                answer = bool(rng.random() < 0.5)
                for step in steps:
                    step.give_back(0) if deed > 0.9 else step.answer(0, answer)
