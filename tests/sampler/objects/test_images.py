"""Reading pictures from a ZIP: what is kept, what is dropped, what is refused.

And pictures as a model is shown them.
"""

import io
import struct
import warnings
import zipfile
import zlib
from functools import partial

import numpy as np
import pytest
from PIL import Image, ImageCms

import sampler
from sampler import CatalogError, judges
from sampler.judges import Picture, ShownObject
from sampler.objects.images import describe_image
from tests.support.campaigns import make_config
from tests.support.uploads import archive, linear_grey_profile, picture, png, png_that_claims, read, refused, saved

TWO = {"a.png": picture("red"), "b.png": picture("blue")}


def images(files):
    return {item.content: item for item in read("images", archive(files)).items}


def decoded(item):
    return Image.open(io.BytesIO(item.picture))


reason = partial(refused, "images", TWO)


def encrypted(files):
    """Return a ZIP whose entries say that they are encrypted."""
    data = bytearray(archive(files, zipfile.ZIP_STORED))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(signature, at + 4)
    return bytes(data)


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [
        ("PNG", "image/png"), ("JPEG", "image/webp"), ("WEBP", "image/webp"), ("GIF", "image/png"),
        ("BMP", "image/png"),
    ],
)  # fmt: skip
def test_pictures_keep_their_size_and_are_of_a_format_that_browsers_show(kind, media_type):
    item = images(TWO | {"x": picture("green", kind=kind)})["x"]
    assert item.media_type == media_type == f"image/{decoded(item).format.lower()}"
    assert decoded(item).size == (8, 6)


def sixteen_bits(colour: int, pixels: list[int], clear: list[int] | None = None) -> bytes:
    """Return a PNG of one row of 16-bit numbers; `colour` says which bands, as the format does."""
    bands = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    header = struct.pack(">IIBBBBB", len(pixels) // bands, 1, 16, colour, 0, 0, 0)
    row = zlib.compress(b"\0" + struct.pack(f">{len(pixels)}H", *pixels))
    transparent = {"tRNS": struct.pack(f">{len(clear)}H", *clear)} if clear else {}
    return png(IHDR=header, **transparent, IDAT=row)


def palette(**saving) -> bytes:
    image = Image.new("P", (2, 1))
    image.putpalette([200, 0, 0, 0, 0, 200])
    image.putpixel((1, 0), 1)
    return saved(image, **saving)


def half(mode: str, *colour: int) -> Image.Image:
    """Return a picture that is half clear where it is left, and not where it is right."""
    image = Image.new(mode, (32, 16), (*colour, 255))
    image.paste((*colour, 128), (0, 0, 16, 16))
    return image


WHITE, HALF_RED = (255, 255, 255), (255, 127, 127)
CLEAR = {
    "colours": (saved(half("RGBA", 255, 0, 0)), [HALF_RED, (255, 0, 0)]),
    "greys": (saved(half("LA", 0)), [(127, 127, 127), (0, 0, 0)]),
    "a palette": (palette(transparency=bytes([0, 255])), [WHITE, (0, 0, 200)]),
    "one of a palette": (palette(transparency=1), [(200, 0, 0), WHITE]),
    "a GIF": (palette(kind="GIF", transparency=0), [WHITE, (0, 0, 200)]),
    "premultiplied": (
        saved(half("RGBA", 255, 0, 0).convert("RGBa").convert("RGBA"), "WEBP", lossless=True),
        [HALF_RED, (255, 0, 0)],
    ),
    "one 16-bit grey": (sixteen_bits(0, [1000, 30_000], [1000]), [WHITE, (117, 117, 117)]),
    "one 16-bit colour": (sixteen_bits(2, [1000, 2000, 3000, 60_000, 0, 0], [1000, 2000, 3000]), [WHITE, (234, 0, 0)]),
    "16-bit greys": (sixteen_bits(4, [0, 32_768, 0, 65_535]), [(127, 127, 127), (0, 0, 0)]),
    "16-bit colours": (sixteen_bits(6, [65_535, 0, 0, 32_768, 65_535, 0, 0, 65_535]), [HALF_RED, (255, 0, 0)]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), CLEAR.values(), ids=CLEAR)
def test_what_is_clear_is_white_for_all(content, expected):
    kept = decoded(images(TWO | {"x": content})["x"])
    assert not kept.has_transparency_data
    left, right = kept.width // 8, kept.width - 1 - kept.width // 8
    # Premultiplied bytes, and lossy ones of our own, may be a little off.
    np.testing.assert_allclose(np.asarray(kept.convert("RGB"))[kept.height // 2, [left, right]], expected, atol=4)


def test_an_animation_becomes_its_first_frame():
    moving = saved(Image.new("RGB", (4, 4), "red"), "GIF", save_all=True, append_images=[Image.new("RGB", (4, 4))])
    still = decoded(images(TWO | {"x.gif": moving})["x.gif"])
    assert getattr(still, "n_frames", 1) == 1
    assert still.convert("RGB").getpixel((0, 0)) == (255, 0, 0)
    (said,) = read("images", archive(TWO | {"x.gif": moving})).refusals
    assert (said.source, said.reason) == ("x.gif", "is animated; only its first frame is shown")


def test_a_rotated_photograph_stands_upright_and_loses_its_metadata():
    photograph = Image.new("RGB", (40, 20), "red")
    photograph.paste("blue", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to see it upright
    exif[0x010E] = "taken at home"
    item = images(TWO | {"x.jpg": saved(photograph, "JPEG", exif=exif, quality=95)})["x.jpg"]
    upright = decoded(item)
    assert upright.size == (20, 40)
    assert upright.convert("RGB").getpixel((10, 5))[2] > 200, "the left, blue half stands on top"
    assert not upright.getexif()
    assert b"taken at home" not in item.picture


# Red and blue change places, so nobody can take one space for the other.
SWAPPED = (
    ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    .tobytes()
    .replace(b"rXYZ", b"????")
    .replace(b"bXYZ", b"rXYZ")
    .replace(b"????", b"bXYZ")
)
LAB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


UNUSABLE = {
    "words": b"junk", "truncated": SWAPPED[:-200], "half its table": SWAPPED[:200], "zeros": bytes(500),
    "another space": LAB, "greys": linear_grey_profile(),
}  # fmt: skip
PINK, LOSSLESS = (200, 40, 90), ("PNG", "GIF", "BMP")
# Lossy formats may move a colour a little, and so does a profile.
COLOURS = {
    **{kind: (picture(PINK, kind=kind), PINK, 0 if kind in LOSSLESS else 8) for kind in (*LOSSLESS, "JPEG", "WEBP")},
    **{
        f"mode {mode}": (saved(Image.new("RGB", (8, 6), "white").convert(mode)), (255, 255, 255), 0)
        for mode in ("1", "L", "LA", "P")
    },
    "mode CMYK": (saved(Image.new("RGB", (8, 6), "white").convert("CMYK"), "JPEG"), (255, 255, 255), 3),
    **{
        f"swapped {kind}": (picture((250, 0, 0), kind=kind, icc_profile=SWAPPED), (0, 0, 255), 8)
        for kind in ("PNG", "JPEG", "WEBP")
    },
    **{f"profile: {name}": (picture(PINK, icc_profile=profile), PINK, 0) for name, profile in UNUSABLE.items()},
}


@pytest.mark.parametrize(("content", "expected", "atol"), COLOURS.values(), ids=COLOURS)
def test_colours_become_srgb_and_a_profile_is_dropped_used_or_not(content, expected, atol):
    kept = decoded(images(TWO | {"x": content})["x"])
    assert "icc_profile" not in kept.info
    np.testing.assert_allclose(kept.convert("RGB").getpixel((4, 3)), expected, atol=atol)


def test_large_pictures_are_scaled_to_1024_pixels():
    assert decoded(images(TWO | {"x": picture("red", (3000, 600))})["x"]).size == (1024, 205)


def test_photographs_may_be_larger_than_what_is_decoded_as_a_whole():
    photograph, progressive = (picture("red", (8_700, 3_000), "JPEG", progressive=each) for each in (False, True))
    assert decoded(images(TWO | {"x.jpg": photograph})["x.jpg"]).size == (1024, 353)
    assert "at most 25 million are allowed. Make it smaller" in reason("x.jpg", progressive)


REFUSED = {
    "empty": (b"", "not an image"),
    "words": (b"just words", "not an image"),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not an image"),
    "tiff": (saved(Image.new("RGB", (4, 4)), "TIFF"), "save the image as JPEG or PNG"),
    "avif": (saved(Image.new("RGB", (4, 4)), "AVIF"), "save the image as JPEG or PNG"),
    "heic": (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "save the image as JPEG or PNG"),
    "truncated jpeg": (picture("red", (64, 64), "JPEG")[:-300], "broken"),
    "truncated png": (saved(Image.effect_noise((64, 64), 90))[:-900], "broken"),
    "missing pixels": (png_that_claims(64, 64), "broken"),
    "half clear and white": (saved(half("RGBA", 255, 255, 255)), "one colour on white"),
    "clear": (saved(Image.new("RGBA", (4, 4), (10, 20, 30, 0))), "one colour on white"),
    # Bombs, which are not unpacked.
    "beyond our limit": (png_that_claims(5_001, 5_001), "pixels"),
    "where pillow warns": (png_that_claims(9_400, 9_400), "pixels"),
    "where pillow refuses": (png_that_claims(60_000, 60_000), "pixels"),
}


@pytest.mark.parametrize(("content", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_whole_picture_or_shows_nothing_is_refused(content, expected):
    assert expected in reason("x.png", content)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_entry_whose_packed_bytes_are_damaged_is_refused_and_the_others_are_kept(compression):
    data = bytearray(archive(TWO | {"c.png": saved(Image.effect_noise((32, 32), 90))}, compression))
    # The local header is 30 bytes long, and the name follows; whoever unpacks finds nonsense behind it.
    at = data.index(b"c.png") + len(b"c.png")
    data[at : at + 40] = bytes(255 - byte for byte in data[at : at + 40])
    reading = read("images", bytes(data))
    assert len(reading.items) == 2
    assert [(refusal.source, "unpacked" in refusal.reason) for refusal in reading.refusals] == [("c.png", True)]


@pytest.mark.parametrize("files", [TWO, TWO | {"weights.csv": b"file,weight\na.png,1\n"}], ids=["plain", "weights"])
def test_an_encrypted_archive_is_refused_with_the_reason(files):
    with pytest.raises(CatalogError, match="encrypted"):
        read("images", encrypted(files))


# The last one asks for a version of the format (in its central directory) that does not exist.
@pytest.mark.parametrize(
    "data",
    [b"", b"no zip", archive(TWO)[:-30], archive(TWO).replace(b"PK\x01\x02\x14\x03\x14", b"PK\x01\x02\x14\x03\x63")],
    ids=["empty", "words", "truncated", "from the future"],
)
def test_what_is_no_zip_is_refused(data):
    with pytest.raises(CatalogError, match="not a ZIP"):
        read("images", data)


@pytest.mark.parametrize(
    "names",
    [("a.png", "b.png", "more/c.png"), ("pics/a.png", "pics/b.png", "pics/more/c.png")],
    ids=["relative", "full"],
)
def test_weights_may_stand_in_the_zipped_folder(names):
    weights = "file,weight\n" + "".join(f"{name},{index}\n" for index, name in enumerate(names, start=2))
    files = {f"pics/{name}": content for name, content in TWO.items()} | {
        "pics/more/c.png": picture("green"), "pics/more/d.png": picture("black"),
        "pics/weights.csv": weights.encode(), "__MACOSX/pics/._weights.csv": b"x",
    }  # fmt: skip
    reading = read("images", archive(files))
    assert {item.content: item.weight for item in reading.items} == {
        "pics/a.png": 2.0, "pics/b.png": 3.0, "pics/more/c.png": 4.0,
    }  # fmt: skip
    assert [refusal.source for refusal in reading.refusals] == ["pics/more/d.png"]


@pytest.mark.parametrize("table", ["Weights.csv", "metadata.csv", "WEIGHTS.CSV"])
@pytest.mark.parametrize("cell", ["./é A.png", "E\u0301 a.PNG", "\u00e9 a.png", ".\\É A.PNG"])
def test_names_are_found_however_a_program_writes_them(table, cell):
    files = TWO | {"\u00e9 A.png": picture("green"), table: f"file,weight\na.png,1\nb.png,1\n{cell},7\n".encode()}
    assert images(files)["\u00e9 A.png"].weight == 7


def test_a_name_that_may_be_two_files_and_one_that_stands_twice_are_refused():
    files = TWO | {
        "A.PNG": picture("green"),
        "weights.csv": b"file,weight\na.png,1\nA.PNG,2\nA.png,3\nb.png,4\nb.png,5\n",
    }
    reading = read("images", archive(files))
    assert [(item.content, item.weight) for item in reading.items] == [("a.png", 1), ("b.png", 4), ("A.PNG", 2)]
    assert [refusal.reason for refusal in reading.refusals] == [
        "“A.png” may be 2 files; write it as in the archive",
        "row 5 has named “b.png”; what that says was taken",
    ]


def test_pictures_that_look_the_same_are_one_and_all_names_lead_to_it():
    upright, exif = Image.effect_noise((40, 20), 90).convert("RGB"), Image.Exif()
    exif[0x0112] = 6
    files = TWO | {
        "one.png": saved(upright),
        "turned.png": saved(upright.transpose(Image.Transpose.ROTATE_90), exif=exif),
        "glass.webp": saved(upright.convert("RGBA"), "WEBP", lossless=True),
        "weights.csv": b"file,weight\na.png,1\nb.png,1\nturned.png,2\none.png,4\nglass.webp,8\n",
    }  # fmt: skip
    reading = read("images", archive(files))
    assert [(item.content, item.weight) for item in reading.items][2:] == [("one.png", 14)]
    assert [(each.source, each.reason) for each in reading.refusals] == [
        (name, "repeats one.png; their weights were added") for name in ("turned.png", "glass.webp")
    ]
    assert reading.items[2].picture == read("images", archive(TWO | {"one.png": saved(upright)})).items[2].picture


def test_two_different_files_of_one_name_are_refused():
    data = io.BytesIO(archive(TWO))
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(data, "a") as opened:
        for colour in ("green", "white", "black"):
            opened.writestr("c.png", picture(colour))
    reading = read("images", data.getvalue())
    assert [item.content for item in reading.items] == ["a.png", "b.png"]
    assert [each.reason for each in reading.refusals] == [
        "the archive has two different files named “c.png”; rename one of them"
    ] * 3


@pytest.mark.parametrize("table", ["file\ncaf\xe9\n".encode("latin-1"), b"picture\na.png\n", b"file,a,a\n"])
def test_what_is_wrong_with_the_table_names_its_file(table):
    with pytest.raises(CatalogError, match=r"^In pics/weights\.csv: The f"):
        images(TWO | {"pics/weights.csv": table})


@pytest.mark.parametrize("name", ["c.png", ".hidden.png", "more/", "weights.csv", ""])
@pytest.mark.parametrize("folder", ["", "pics/"])
def test_a_line_of_the_weights_that_names_no_picture_is_refused(folder, name):
    weights = f"file,weight\na.png,1\n{name},1\nb.png,2\n".encode()
    files = {folder + file: content for file, content in TWO.items()}
    clutter = {f"{folder}.hidden.png": picture(), f"{folder}more/": b""}
    reading = read("images", archive(files | clutter | {f"{folder}weights.csv": weights}))
    assert [item.weight for item in reading.items] == [1.0, 2.0]
    assert [(refusal.source, refusal.reason) for refusal in reading.refusals] == [
        (f"{folder}weights.csv, row 3", f"the archive has no picture “{name}”")
    ]


# What is measured of a picture, on pictures whose measures follow from their definition.


SIDE = 64


def flat(*colour):
    return np.full((SIDE, SIDE, 3), colour, dtype=np.uint8)


def halves(left, right):
    picture = flat(*left)
    picture[:, SIDE // 2 :] = right
    return picture


RED, BLUE = (255, 0, 0), (0, 0, 255)


def test_grey_has_no_colour_no_contrast_no_edge_and_is_symmetric():
    described = describe_image(flat(90, 90, 90))
    assert (described.colourfulness, described.contrast) == pytest.approx((0, 0))
    assert (described.edge_density, described.symmetry) == (0, 1)


def test_colourfulness_follows_the_published_formula():
    """Red: rg = 255, yb = 127.5, no spread. Red and blue halves: rg 255 and 0, yb 127.5 and -255."""
    assert describe_image(flat(*RED)).colourfulness == pytest.approx(0.3 * np.hypot(255, 127.5))
    spread, centre = np.hypot(127.5, 191.25), np.hypot(127.5, -63.75)
    assert describe_image(halves(RED, BLUE)).colourfulness == pytest.approx(spread + 0.3 * centre)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 1), (1, 1024)])
def test_what_a_row_or_a_column_has_no_measure_of_is_absent_and_the_rest_is_measured(shape):
    pixels = np.random.default_rng(3).integers(0, 256, (*shape, 3), dtype=np.uint8)
    described = describe_image(pixels)
    assert described.edge_density is None
    measured = (described.colourfulness, described.contrast, described.symmetry)
    assert np.all(np.isfinite(measured))
    if shape[1] == 1:
        assert described.symmetry == pytest.approx(1)


# Pictures as a model judge is shown them: size, format, detail, and what is shown of a molecule.


SMILES = "CC(=O)Oc1ccccc1C(=O)O"


def file_of(mode="RGB", size=(400, 300), format="PNG"):
    image = Image.fromarray(np.random.default_rng(3).integers(0, 256, (*size[::-1], 4), dtype=np.uint8))
    image = image.quantize(16) if mode == "P" else image.convert(mode)
    return Picture(f"image/{format.lower()}", saved(image, format))


def drawn():
    return ShownObject(text=SMILES, picture=Picture("image/png", sampler.molecule_png(SMILES)))


def shown_as(picture, **vision):
    """Return a picture as a model is shown it, and that opened."""
    shown = sampler.shown_as(ShownObject(picture=picture), sampler.Vision(**vision)).picture
    return shown, Image.open(io.BytesIO(shown.data))


class TestPictures:
    def test_without_settings_the_files_bytes_go_to_the_model(self):
        shown_object = ShownObject(picture=file_of(format="JPEG"))
        assert sampler.shown_as(shown_object, None) is shown_object
        for vision in ({"edge": 400}, {"format": "jpeg"}, {"detail": "low"}):
            assert shown_as(shown_object.picture, **vision)[0].data == shown_object.picture.data

    @pytest.mark.parametrize(("edge", "expected"), [(320, (320, 240)), (64, (64, 48)), (401, (400, 300))])
    def test_the_longer_side_is_at_most_the_edge_and_nothing_is_enlarged(self, edge, expected):
        shown, opened = shown_as(file_of(), edge=edge)
        assert (opened.size, shown.media_type) == (expected, "image/png")

    @pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "LA"])
    @pytest.mark.parametrize("format", ["png", "jpeg"])
    def test_every_kind_of_file_is_encoded_alike_every_time(self, mode, format):
        (one, opened), (other, _) = (shown_as(file_of(mode), edge=100, format=format) for _ in range(2))
        assert one == other
        assert (opened.format, max(opened.size)) == (format.upper(), 100)

    def test_a_jpeg_stays_one_when_it_is_made_smaller(self):
        shown, opened = shown_as(file_of(format="JPEG"), edge=100)
        assert (shown.media_type, opened.format) == ("image/jpeg", "JPEG")

    @pytest.mark.parametrize("vision", [{"format": "jpeg"}, {"edge": 32}])
    def test_what_is_transparent_becomes_white(self, vision):
        clear = Picture("image/png", saved(Image.new("RGBA", (40, 40), (0, 0, 0, 5))))
        assert np.asarray(shown_as(clear, **vision)[1]).min() > 245

    def test_what_is_no_picture_is_told(self):
        with pytest.raises(ValueError, match="cannot be read"):
            shown_as(Picture("image/png", b"no"), edge=100)


class TestMolecules:
    @pytest.mark.parametrize(
        ("molecules", "text", "is_drawn"),
        [(None, SMILES, True), ("smiles", SMILES, False), ("picture", "", True), ("both", SMILES, True)],
    )
    def test_shown_as_smiles_as_a_drawing_or_as_both(self, molecules, text, is_drawn):
        shown = sampler.shown_as(drawn(), sampler.Vision(molecules=molecules) if molecules else None)
        assert (shown.text, shown.picture is not None) == (text, is_drawn)

    @pytest.mark.parametrize(("is_drawn", "told"), [(False, "written as SMILES"), (True, "drawn")])
    def test_the_prompt_speaks_of_smiles_only_where_there_are_any(self, is_drawn, told):
        prompt = judges.pairwise_prompt("molecules", "Which is safer?", is_drawn=is_drawn)
        assert f"Molecules are {told}. What" in prompt.template.system

    @pytest.mark.parametrize(("vision", "expected"), [(None, {}), (sampler.Vision(detail="low"), {"detail": "low"})])
    def test_the_detail_stands_with_each_picture_and_is_absent_otherwise(self, vision, expected):
        prompt = judges.pairwise_prompt("molecules", "Which is safer?")
        content = prompt.messages(*[sampler.shown_as(drawn(), vision)] * 2)[-1]["content"]
        shown = [part["image_url"] for part in content if part["type"] == "image_url"]
        assert [part | {"url": part["url"] != ""} for part in shown] == [{"url": True} | expected] * 2


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
def test_what_does_not_go_together_is_refused_with_its_field(vision, kind, words):
    judge = {"question": "Which?", "votes": 1, "source": {"kind": "model", "endpoint": "m", "vision": vision}}
    space = {"kind": "catalog", "objects": kind, "neighbours": 0}
    with pytest.raises(sampler.ConfigError, match=words):
        sampler.parse_config(make_config(space=space, kernel={"kind": "independent"}, judges=[judge]))
