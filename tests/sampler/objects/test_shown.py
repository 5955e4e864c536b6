"""Pictures as a model judge is shown them: size, format, detail, and what is shown of a molecule."""

import io

import numpy as np
import pytest
from PIL import Image

import sampler
from sampler import judges
from sampler.judges import Exhibit, Picture
from tests.support.campaigns import make_config

SMILES = "CC(=O)Oc1ccccc1C(=O)O"


def file_of(mode="RGB", size=(400, 300), format="PNG"):
    pixels = np.random.default_rng(3).integers(0, 256, (*size[::-1], 4), dtype=np.uint8)
    out = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.quantize(16) if mode == "P" else image.convert(mode)).save(out, format)
    return Picture(f"image/{format.lower()}", out.getvalue())


def drawn(**changes):
    return Exhibit(text=SMILES, picture=Picture("image/png", sampler.molecule_png(SMILES)), **changes)


def read(picture):
    return Image.open(io.BytesIO(picture.data))


class TestPictures:
    def test_without_settings_the_files_bytes_go_to_the_model(self):
        exhibit = Exhibit(picture=file_of(format="JPEG"))
        assert sampler.shown_as(exhibit, None) is exhibit
        for vision in (sampler.Vision(edge=400), sampler.Vision(format="jpeg"), sampler.Vision(detail="low")):
            assert sampler.shown_as(exhibit, vision).picture.data == exhibit.picture.data

    @pytest.mark.parametrize(("edge", "expected"), [(200, (200, 150)), (64, (64, 48)), (401, (400, 300))])
    def test_the_longer_side_is_at_most_the_edge_and_nothing_is_enlarged(self, edge, expected):
        shown = sampler.shown_as(Exhibit(picture=file_of()), sampler.Vision(edge=edge)).picture
        assert (Image.open(io.BytesIO(shown.data)).size, shown.media_type) == (expected, "image/png")

    @pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "LA"])
    @pytest.mark.parametrize("format", ["png", "jpeg"])
    def test_every_kind_of_file_is_encoded_alike_every_time(self, mode, format):
        vision = sampler.Vision(edge=100, format=format)
        one, other = (sampler.shown_as(Exhibit(picture=file_of(mode)), vision).picture for _ in range(2))
        assert one == other
        assert (read(one).format, max(read(one).size)) == (format.upper(), 100)

    def test_a_jpeg_stays_one_when_it_is_made_smaller(self):
        shown = sampler.shown_as(Exhibit(picture=file_of(format="JPEG")), sampler.Vision(edge=100)).picture
        assert (shown.media_type, read(shown).format) == ("image/jpeg", "JPEG")

    @pytest.mark.parametrize("vision", [sampler.Vision(format="jpeg"), sampler.Vision(edge=32)])
    def test_what_is_transparent_becomes_white(self, vision):
        out = io.BytesIO()
        Image.new("RGBA", (40, 40), (0, 0, 0, 5)).save(out, "PNG")
        shown = sampler.shown_as(Exhibit(picture=Picture("image/png", out.getvalue())), vision).picture
        assert np.asarray(read(shown)).min() > 245

    def test_what_is_no_picture_is_told(self):
        with pytest.raises(ValueError, match="cannot be read"):
            sampler.shown_as(Exhibit(picture=Picture("image/png", b"no")), sampler.Vision(edge=100))


class TestMolecules:
    @pytest.mark.parametrize(
        ("molecules", "words", "is_drawn"),
        [(None, True, True), ("smiles", True, False), ("picture", False, True), ("both", True, True)],
    )
    def test_shown_as_smiles_as_a_drawing_or_as_both(self, molecules, words, is_drawn):
        vision = sampler.Vision(molecules=molecules) if molecules else None
        shown = sampler.shown_as(drawn(), vision)
        assert (shown.text == SMILES, shown.picture is not None) == (words, is_drawn)
        assert shown.text in (SMILES, "")

    def test_the_prompt_speaks_of_smiles_only_where_there_are_any(self):
        written, drawn = (
            judges.pairwise_prompt("molecules", "Which is safer?", is_drawn=each).template.system
            for each in (False, True)
        )
        assert "Molecules are written as SMILES. What" in written
        assert "Molecules are drawn. What" in drawn

    def test_the_detail_stands_with_each_picture_and_is_absent_otherwise(self):
        def parts(vision):
            prompt = judges.pairwise_prompt("molecules", "Which is safer?")
            content = prompt.messages(*[sampler.shown_as(drawn(), vision)] * 2)[-1]["content"]
            return [part["image_url"] for part in content if part["type"] == "image_url"]

        assert [part.keys() for part in parts(None)] == [{"url"}] * 2
        assert [part["detail"] for part in parts(sampler.Vision(detail="low"))] == ["low"] * 2


class TestConfig:
    def config(self, vision, kind="molecules"):
        source = {"kind": "model", "endpoint": "m"} | ({} if vision is None else {"vision": vision})
        space = {"kind": "catalog", "objects": kind, "neighbours": 0}
        judges = [{"question": "Which?", "votes": 1, "source": source}]
        return make_config(space=space, kernel={"kind": "independent"}, judges=judges)

    def test_what_is_not_set_is_not_in_the_config(self):
        plain = sampler.parse_config(self.config(None)).model_dump(mode="json")
        assert "vision" not in plain["judges"][0]["source"]
        given = {"edge": 512, "format": "jpeg"}
        kept = sampler.parse_config(self.config(given)).model_dump(mode="json")
        assert kept["judges"][0]["source"]["vision"] == given

    @pytest.mark.parametrize(
        ("vision", "kind", "words"),
        [
            ({}, "images", "must say something"), ({"edge": 8}, "images", r"vision\.edge"),
            ({"quality": 50}, "images", "set format to 'jpeg'"),
            ({"quality": 50, "format": "png"}, "images", "set format to 'jpeg'"),
            ({"edge": 512}, "texts", "texts have no pictures"), ({"molecules": "both"}, "images", "no molecules"),
            ({"molecules": "smiles", "edge": 64}, "molecules", "'picture' or 'both' where the pictures have settings"),
        ],
    )  # fmt: skip
    def test_what_does_not_go_together_is_refused_with_its_field(self, vision, kind, words):
        with pytest.raises(sampler.ConfigError, match=words):
            sampler.parse_config(self.config(vision, kind))
