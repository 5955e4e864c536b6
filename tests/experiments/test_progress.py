"""What a run shows of how far it is, at times that are given."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from prefmh_web.experiments.progress import Display, Pace, Standing, described, duration

START = Standing("run", "pref-sep-s0", 2, 5, 0, 6_000, "steps", 0, 0.0, 0.0, 60_000.0)


class Screen:
    """What was written, and a clock that is set by hand."""

    def __init__(self, columns: int | None = None) -> None:
        self.written: list[str] = []
        self.now = 1_000.0
        self.display = Display(self.written.append, lambda: self.now, columns, self.foretell)

    def foretell(self, rate: float) -> Iterator[str]:
        yield f"at {rate:g} a second"

    def show(self, seconds: float, requests: int, **more: object) -> None:
        """Show where a run is so many seconds after the last time."""
        self.now += seconds
        self.display.show(lambda: replace(START, requests=requests, work=float(requests), **more))


def paced(*measured: tuple[float, int, float]) -> Pace:
    pace = Pace()
    for each in measured:
        pace.measure(*each)
    return pace


def test_a_line_says_stage_part_steps_requests_rate_cost_and_time_left():
    standing = replace(START, done=1_200, requests=12_000, cost=3.5, work=12_000.0)
    pace = paced((0.0, 10_000, 9_600.0), (40.0, 12_000, 12_000.0))
    assert described(standing, pace) == (
        "run, part 2 of 5 (pref-sep-s0): 1,200 of 6,000 steps, 12,000 requests (50.0/s), cost 3.50, about 13 min left"
    )


def test_nothing_is_claimed_that_is_not_known():
    standing = replace(START, requests=7, cost=None)
    start = "run, part 2 of 5 (pref-sep-s0): 0 of 6,000 steps, 7 requests"
    assert described(standing, Pace()) == start
    assert described(standing, paced((0.0, 0, 0.0))) == start
    # A rate over two seconds is none.
    assert described(standing, paced((0.0, 0, 0.0), (2.0, 7, 7.0))) == start
    # A rate of 0 is one, but leaves the time unknown.
    assert described(standing, paced((0.0, 7, 7.0), (60.0, 7, 7.0))) == start + " (0.0/s)"


def test_the_rate_is_that_of_the_last_two_minutes():
    quick = [(float(second), 10 * second, 10.0 * second) for second in range(600)]
    slow = [(600.0 + second, 6_000 + second, 6_000.0 + second) for second in range(121)]
    assert paced(*quick).requests_per_s == pytest.approx(10)
    assert paced(*quick, *slow).requests_per_s == pytest.approx(1)
    assert paced(*quick, *slow).left_s(6_180.0) == pytest.approx(60)
    assert paced(*quick, *slow).span_s == pytest.approx(120)


def test_work_that_early_stopping_saves_shortens_the_time_left():
    # Half the planned requests were needed.
    pace = paced((0.0, 0, 0.0), (10.0, 100, 200.0))
    assert pace.requests_per_s == pytest.approx(10)
    assert pace.left_s(400.0) == pytest.approx(10)


def test_without_a_terminal_there_is_a_line_now_and_then():
    screen = Screen()
    for second in range(91):
        screen.show(1.0, 2 * second)
    lines = [line for line in screen.written if line.startswith("run")]
    assert len(lines) == 4
    assert all(line.endswith("\n") and "\r" not in line for line in screen.written)
    assert "180 requests (2.0/s)" in lines[-1]


def test_in_a_terminal_there_is_one_line_and_others_stand_above_it():
    screen = Screen(columns=40)
    screen.show(0.0, 0)
    screen.show(1.0, 5)
    screen.display.say("pref-sep-s0: done")
    screen.display.end()
    first, second, cleared, said = screen.written
    assert first.startswith("\r\x1b[K")
    assert second.startswith("\r\x1b[Krun, part 2 of 5")
    assert len(second) - len("\r\x1b[K") == 39
    assert cleared == "\r\x1b[K"
    assert said == "pref-sep-s0: done\n"


def test_another_stage_has_a_rate_of_its_own():
    screen = Screen()
    for second in range(40):
        screen.show(1.0, 100 * second)
    screen.show(1.0, 4_000, stage="evaluate")
    assert "/s" not in screen.written[-1]
    for second in range(30):
        screen.show(1.0, 4_000 + second, stage="evaluate")
    assert "(1.0/s)" in screen.written[-1]


def test_a_minute_of_requests_makes_one_forecast():
    screen = Screen()
    for second in range(59):
        screen.show(1.0, 3 * second)
    assert "at 3 a second\n" not in screen.written
    for second in range(59, 300):
        screen.show(1.0, 3 * second)
    assert screen.written.count("at 3 a second\n") == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_599, "1 h"), (12_000, "3 h 20 min"), (150_000, "41 h")],
)
def test_a_duration_has_two_units_at_most(seconds, words):
    assert duration(seconds) == words
