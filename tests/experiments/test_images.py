"""`manage.py experiment images`, asked by a model that answers from pixels: stopped, and run to its end."""

from collections.abc import Iterator

import pytest

import sampler
from tests.support.installations import Site
from tests.support.models import Script, is_there, pictures, scripted_server, sees, words

# NumPy about PyTorch, in the making of a scheduler.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
METHODS = ("base", "pointwise", "pref")
OBJECTS = ("salamander", "butterfly", "mushroom")
STEPS = 4
LAPTOP = ("images", "--scale", "laptop", "--steps", str(STEPS))
MODELS = {"judge": "judge", "detector": "detector"}


@pytest.fixture
def server() -> Iterator[Script]:
    with scripted_server(sees) as script:
        yield script


def about_objects(script: Script) -> list[dict]:
    """Return the requests that are no test of an endpoint, and no trial of a judge, whose seed is 1."""
    shown = [body for body in list(script.requests) if pictures(body) and body["seed"] != 1]
    return [body for body in shown if any(name in words(body) for name in OBJECTS)]


def kind(body: dict) -> str:
    if "yes or no" in words(body):
        return "detection"
    return "vote" if len(pictures(body)) == 2 else "rating"


def test_a_run_that_is_stopped_and_resumed_is_whole(server, tmp_path):
    site = Site(tmp_path, LAPTOP, server.url, MODELS | {"writer": "patterns"})
    stopped = site.experiment("--max-requests", "16")
    assert stopped.returncode == 3, stopped.stderr
    assert sum(int(row["requests"]) for row in site.rows("calls.csv")) <= 16
    ended = site.experiment()
    assert ended.returncode == 0, ended.stderr
    assert_whole(site)
    assert_pictures_follow_from_the_record(site)
    assert_detected(site, server)


def assert_whole(site: Site) -> None:
    for method in METHODS:
        names = sorted(path.name for path in (site.out / "images" / f"{method}-s0").iterdir())
        assert names == [f"step-{step:06}.png" for step in range(1, STEPS + 1)]
    scores = site.rows("evaluation/scores.csv")
    assert len(scores) == len(METHODS) * STEPS * len(OBJECTS)
    cells = {(row["method"], row["column"]): row for row in site.rows("table.csv")}
    for method in METHODS:
        every = [_answers(scores, method, step) for step in range(1, STEPS + 1)]
        assert float(cells[method, "all_three"]["ours"]) == sum(map(all, every)) / STEPS
        # Neither size nor models are the paper's.
        assert cells[method, "all_three"]["paper"] == ""
        # There is no scorer.
        assert cells[method, "aesthetic"]["ours"] == ""
    with (site.out / "figures" / "trajectories.csv").open() as file:
        assert len(file.readlines()) == 1 + len(METHODS) * STEPS


def _answers(scores: list[dict[str, str]], method: str, step: int) -> list[bool]:
    return [float(row["value"]) == 1 for row in scores if (row["method"], row["step"]) == (method, str(step))]


def assert_pictures_follow_from_the_record(site: Site) -> None:
    for method in METHODS:
        record = sampler.read_record(site.out / "records" / f"{method}-s0.zip")
        space = sampler.ImagesConfig.model_validate(record.config["space"]).build()
        codes = {row["state_index"]: row["code"] for row in record["states"]}
        for row in record["samples"]:
            if int(row["step"]):
                file = site.out / "images" / f"{method}-s0" / f"step-{int(row['step']):06}.png"
                assert file.read_bytes() == sampler.png(space.pixels(space.decode(codes[row["state_index"]])))


def assert_detected(site: Site, server: Script) -> None:
    """Compare each stored answer with the picture in the folder, and see that all was asked at temperature 0."""
    every = about_objects(server)
    detections = [body for body in every if kind(body) == "detection"]
    assert {body["temperature"] for body in detections} == {0}
    assert {body["model"] for body in detections} == {"detector"}
    shown = {pictures(body)[0] for body in detections}
    # Seed 1 is the test of the model before the start.
    others = [body for body in every if kind(body) != "detection" and body["seed"] != 1]
    assert {body["temperature"] for body in others} == {0.3}
    for row in site.rows("evaluation/scores.csv"):
        file = site.out / "images" / f"{row['method']}-s{row['seed']}" / f"step-{int(row['step']):06}.png"
        picture = file.read_bytes()
        assert picture in shown
        assert float(row["value"]) == is_there(picture, row["name"])
