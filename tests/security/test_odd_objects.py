"""Objects that few measures can be taken of: pages and tables show what is known of them, and leave the rest empty."""

import csv
import io

import numpy as np
import pytest
from PIL import Image

from prefmh_web.campaigns.record import export, rows
from prefmh_web.campaigns.record.rows import Snapshot
from tests.security.world import browser_of
from tests.support import campaigns
from tests.support.campaigns import make_campaign, make_config, wait_until_idle

RNG = np.random.default_rng(20261122)


def noise(width: int, height: int, kind: str = "PNG", **saving) -> bytes:
    pixels = RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return campaigns.saved(Image.fromarray(pixels), kind, **saving)


def animated(kind: str) -> bytes:
    frames = [Image.fromarray(RNG.integers(0, 256, (1, 5, 3), dtype=np.uint8)) for _ in range(3)]
    return campaigns.saved(frames[0], kind, save_all=True, append_images=frames[1:])


PICTURES = {
    "one pixel.png": noise(1, 1), "a row.jpg": noise(7, 1, "JPEG"), "a column.webp": noise(1, 7, "WEBP"),
    "a long row.png": noise(9000, 2), "a long column.gif": noise(1, 3000, "GIF"),
    "clear.png": campaigns.saved(Image.new("RGBA", (6, 1), (10, 20, 30, 9))),
    "bits.png": campaigns.saved(Image.fromarray(RNG.integers(0, 2, (1, 9)).astype(bool))),
    "palette.png": campaigns.saved(Image.fromarray(RNG.integers(0, 256, (1, 9, 3), dtype=np.uint8)).quantize(5)),
    "deep.png": campaigns.saved(Image.fromarray(RNG.integers(0, 2**16, (1, 9), dtype=np.uint16))),
    "inks.jpg": campaigns.saved(Image.new("CMYK", (1, 9), (3, 100, 2, 0)), "JPEG"), "moving.gif": animated("GIF"),
    "moving.png": animated("PNG"), "moving.webp": animated("WEBP"),
    "flat.bmp": campaigns.picture("red", (1, 4), "BMP"), "square.png": noise(8, 8),
}  # fmt: skip
MOLECULES = ["[Na+].[Cl-]", "C.C", "[CH3]", "C[CH2]", "[Cu+2]", "CC*", "[2H]O[2H]", "[Si]", "[U]", "CCO"]


def properties_of(campaign) -> dict[str, dict[str, str]]:
    text = "".join(export.as_csv(rows.properties(Snapshot.now(campaign))))
    assert "nan" not in text.lower()
    return {row["content"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def page_for(owner, path: str):
    """Return what a browser would be shown; a failure is a page with status 500."""
    browser = browser_of(owner)
    browser.raise_request_exception = False
    return browser.get(path)


def odd_campaign(owner, kind: str, content: bytes, count: int):
    config = make_config(space={"kind": "catalog", "objects": kind, "neighbours": 2}, chains=100)
    campaign = make_campaign(owner, file=content, filename=f"odd.{kind}", config=config)
    wait_until_idle()
    assert [source for source, _ in campaign.catalog.refusals if not source.startswith("moving")] == []
    assert campaign.states.count() == count
    return campaign


def test_pictures_of_any_shape_show_on_the_page_and_in_the_table(researcher, idle_tasks):
    campaign = odd_campaign(researcher, "images", campaigns.archive(PICTURES), len(PICTURES))
    page = page_for(researcher, campaign.get_absolute_url())
    assert page.status_code == 200
    assert "colourfulness" in page.content.decode()
    found = properties_of(campaign)
    assert found.keys() == PICTURES.keys()
    assert found["a row.jpg"]["edge_density"] == ""
    assert found["a row.jpg"]["colourfulness"] != ""
    assert found["square.png"]["edge_density"] != ""


def test_salts_radicals_and_dummies_show_on_the_page_and_in_the_table(researcher, idle_tasks):
    campaign = odd_campaign(
        researcher, "molecules", campaigns.spreadsheet([["smiles"], *([s] for s in MOLECULES)]), len(MOLECULES)
    )
    page = page_for(researcher, campaign.get_absolute_url())
    assert page.status_code == 200
    found = properties_of(campaign)
    assert float(found["[Cl-].[Na+]"]["weight"]) == pytest.approx(58.44, abs=0.01)
    assert float(found["CCO"]["qed"]) == pytest.approx(0.407, abs=0.002)


def test_a_lost_picture_hides_no_campaign(researcher, idle_tasks):
    campaign = odd_campaign(researcher, "images", campaigns.archive(PICTURES), len(PICTURES))
    head = campaign.chains.first().head
    head.picture.storage.delete(head.picture.name)
    page = page_for(researcher, campaign.get_absolute_url())
    assert page.status_code == 200
    assert "its picture cannot be read" in page.content.decode()
    assert page_for(researcher, f"/campaigns/pictures/{head.pk}/").status_code == 404
