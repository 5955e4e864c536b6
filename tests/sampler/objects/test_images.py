"""Reading pictures from a ZIP: what is kept, what is dropped, and what is refused."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from sampler import OBJECT_KINDS, CatalogError
from tests.support.campaigns import archive, linear_grey_profile, picture, png_that_claims, read, saved

TWO = {"a.png": picture("red"), "b.png": picture("blue")}


def images(files):
    return {item.content: item for item in read("images", archive(files)).items}


def decoded(item):
    return Image.open(io.BytesIO(item.picture))


def reason(name, content):
    """Return why one file is refused; the two good ones beside it must be kept."""
    reading = read("images", archive(TWO | {name: content}))
    assert [item.content for item in reading.items] == ["a.png", "b.png"]
    (refusal,) = reading.refusals
    assert refusal.source == name
    return refusal.reason


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
        ("PNG", "image/png"),
        ("JPEG", "image/webp"),
        ("WEBP", "image/webp"),
        ("GIF", "image/png"),
        ("BMP", "image/png"),
    ],
)
def test_pictures_keep_their_size_and_colours(kind, media_type):
    item = images(TWO | {"x": picture((200, 40, 90), kind=kind)})["x"]
    assert item.media_type == media_type
    pixels = decoded(item)
    assert f"image/{pixels.format.lower()}" == media_type
    assert pixels.size == (8, 6)
    # Lossy formats may move a colour a little.
    np.testing.assert_allclose(pixels.convert("RGB").getpixel((4, 3)), (200, 40, 90), atol=8)


def test_transparency_is_kept():
    glass = saved(Image.new("RGBA", (4, 4), (10, 20, 30, 0)))
    assert decoded(images(TWO | {"glass.png": glass})["glass.png"]).getpixel((0, 0))[3] == 0


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "CMYK"])
def test_every_colour_mode_is_read(mode):
    image = Image.new("RGB", (4, 4), "white").convert(mode)
    item = images(TWO | {"x": saved(image, "JPEG" if mode == "CMYK" else "PNG")})["x"]
    np.testing.assert_allclose(decoded(item).convert("RGB").getpixel((2, 2)), (255, 255, 255), atol=3)


def test_greys_of_sixteen_bits_keep_their_contrast():
    ramp = np.tile(np.linspace(0, 65_535, 256).astype(np.uint16), (4, 1))
    item = images(TWO | {"ramp.png": saved(Image.fromarray(ramp))})["ramp.png"]
    greys = np.asarray(decoded(item).convert("L"))[0]
    np.testing.assert_allclose(greys, np.arange(256), atol=1)


def test_an_animation_becomes_its_first_frame():
    moving = saved(Image.new("RGB", (4, 4), "red"), "GIF", save_all=True, append_images=[Image.new("RGB", (4, 4))])
    still = decoded(images(TWO | {"x.gif": moving})["x.gif"])
    assert getattr(still, "n_frames", 1) == 1
    assert still.convert("RGB").getpixel((0, 0)) == (255, 0, 0)


def test_a_photograph_of_two_pictures_becomes_its_first_and_stays_lossy():
    both = picture("red", kind="MPO", save_all=True, append_images=[Image.new("RGB", (8, 6), "blue")])
    item = images(TWO | {"x.jpg": both})["x.jpg"]
    assert item.media_type == "image/webp"
    np.testing.assert_allclose(decoded(item).convert("RGB").getpixel((4, 3)), (255, 0, 0), atol=8)


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


@pytest.mark.parametrize(
    "entry",
    [
        (0x011A, 2, 1, 65),
        (0x010E, 12, 1, 0),
        (0x0100, 2, 1, 65),
        (0x011A, 11, 1, 0x7FC00000),
        (0x8769, 9, 1, 2**32 - 1),
    ],
)
def test_a_photograph_whose_metadata_is_wrong_is_kept(entry):
    # A TIFF directory of two entries: turned by 90 degrees, and one whose type no reader expects.
    entries = b"".join(struct.pack("<HHII", *each) for each in sorted([(0x0112, 3, 1, 6), entry]))
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + bytes(4)
    assert decoded(images(TWO | {"x.jpg": picture(kind="JPEG", exif=exif)})["x.jpg"]).size == (6, 8)


# Red and blue change places, so nobody can take one space for the other.
SWAPPED = (
    ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    .tobytes()
    .replace(b"rXYZ", b"????")
    .replace(b"bXYZ", b"rXYZ")
    .replace(b"????", b"bXYZ")
)
LAB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_colours_become_srgb_and_their_profile_is_dropped(kind):
    item = images(TWO | {"x": picture((255, 0, 0), kind=kind, icc_profile=SWAPPED)})["x"]
    assert "icc_profile" not in decoded(item).info
    np.testing.assert_allclose(decoded(item).convert("RGB").getpixel((4, 3)), (0, 0, 255), atol=8)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("RGBA", (4, 4), (255, 0, 0, 100)), (0, 0, 255, 100)),
        (Image.new("RGB", (4, 4), "red").convert("P"), (0, 0, 255, 255)),
        (Image.new("L", (4, 4), 90), (90, 90, 90, 255)),
        (Image.new("LA", (4, 4), (90, 20)), (90, 90, 90, 20)),
    ],
    ids=["RGBA", "P", "L", "LA"],
)
def test_a_profile_of_colours_applies_to_every_mode(image, expected):
    item = images(TWO | {"x.png": saved(image, icc_profile=SWAPPED)})["x.png"]
    np.testing.assert_allclose(decoded(item).convert("RGBA").getpixel((2, 2)), expected, atol=1)


@pytest.mark.parametrize("image", [Image.new("L", (4, 4), 55), Image.new("LA", (4, 4), (55, 99))], ids=["L", "LA"])
def test_a_profile_of_greys_applies_to_greys(image):
    item = images(TWO | {"x.png": saved(image, icc_profile=linear_grey_profile())})["x.png"]
    # 55 / 255 of white's light is shown by 1.055 (55 / 255)^(1 / 2.4) - 0.055 in sRGB.
    np.testing.assert_allclose(decoded(item).convert("RGB").getpixel((2, 2)), [128] * 3, atol=2)


@pytest.mark.parametrize(
    "profile",
    [b"junk", SWAPPED[:-200], SWAPPED[:200], bytes(500), LAB, linear_grey_profile()],
    ids=["words", "truncated", "half its table", "zeros", "another space", "greys"],
)
def test_a_profile_that_cannot_be_used_is_ignored(profile):
    item = images(TWO | {"x.png": picture((200, 40, 90), icc_profile=profile)})["x.png"]
    assert "icc_profile" not in decoded(item).info
    assert decoded(item).getpixel((2, 2)) == (200, 40, 90)


def test_a_profile_of_three_colours_is_ignored_for_four():
    cmyk = Image.new("CMYK", (4, 4), (0, 200, 100, 10))
    plain, marked = (saved(cmyk, "JPEG", **saving) for saving in ({}, {"icc_profile": SWAPPED}))
    found = images({"plain.jpg": plain, "marked.jpg": marked})
    assert found["plain.jpg"].picture == found["marked.jpg"].picture


def test_nothing_but_pixels_reaches_a_voter():
    words = PngImagePlugin.PngInfo()
    words.add_text("Author", "me at home")
    image = picture((9, 9, 9), pnginfo=words, dpi=(300, 300), icc_profile=SWAPPED)
    item = images(TWO | {"x.png": image})["x.png"]
    assert decoded(item).info == {}


def test_large_pictures_are_scaled_to_1024_pixels():
    assert decoded(images(TWO | {"x": picture("red", (3000, 600))})["x"]).size == (1024, 205)


@pytest.mark.parametrize("side", [5_001, 9_400, 60_000], ids=["our limit", "pillow warns", "pillow refuses"])
def test_a_decompression_bomb_is_refused_without_being_unpacked(side):
    assert "pixels" in reason("bomb.png", png_that_claims(side, side))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "not an image"),
        (b"just words", "not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not an image"),
        (saved(Image.new("RGB", (4, 4)), "TIFF"), "not an image"),
        (picture("red", (64, 64), "JPEG")[:-300], "broken"),
        (saved(Image.effect_noise((64, 64), 90))[:-900], "broken"),
        (png_that_claims(64, 64), "broken"),
    ],
    ids=["empty", "words", "svg", "tiff", "truncated jpeg", "truncated png", "missing pixels"],
)
def test_what_is_no_whole_picture_is_refused(content, expected):
    assert expected in reason("x.png", content)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
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


def test_an_archive_without_two_pictures_says_why():
    with pytest.raises(CatalogError, match=r"notes\.txt: not an image"):
        read("images", archive({"a.png": picture(), "notes.txt": b"hello"}))


def test_weights_come_from_the_csv_in_the_archive():
    weights = b"file,weight\nb.png,2.5\na.png,0.5\n"
    assert {name: item.weight for name, item in images(TWO | {"weights.csv": weights}).items()} == {
        "a.png": 0.5,
        "b.png": 2.5,
    }


@pytest.mark.parametrize(
    "names",
    [("a.png", "b.png", "more/c.png"), ("pics/a.png", "pics/b.png", "pics/more/c.png")],
    ids=["relative", "full"],
)
def test_weights_may_stand_in_the_zipped_folder(names):
    weights = "file,weight\n" + "".join(f"{name},{place}\n" for place, name in enumerate(names, start=2))
    files = {f"pics/{name}": content for name, content in TWO.items()} | {
        "pics/more/c.png": picture("green"),
        "pics/more/d.png": picture("black"),
        "pics/weights.csv": weights.encode(),
        "__MACOSX/pics/._weights.csv": b"x",
    }
    reading = read("images", archive(files))
    assert {item.content: item.weight for item in reading.items} == {
        "pics/a.png": 2.0,
        "pics/b.png": 3.0,
        "pics/more/c.png": 4.0,
    }
    assert [refusal.source for refusal in reading.refusals] == ["pics/more/d.png"]


def test_a_name_beside_the_weights_goes_before_the_same_name_elsewhere():
    files = {"a.png": picture("red"), "pics/a.png": picture("blue"), "b.png": picture("green")}
    weights = b"file,weight\na.png,2\nb.png,3\n"
    reading = read("images", archive(files | {"pics/weights.csv": weights}))
    assert {item.content: item.weight for item in reading.items} == {"pics/a.png": 2.0, "b.png": 3.0}
    assert [refusal.source for refusal in reading.refusals] == ["a.png"]


def test_two_weights_files_are_refused():
    weights = b"file,weight\na.png,1\nb.png,1\n"
    with pytest.raises(CatalogError, match=r"one weights\.csv.*more/weights\.csv"):
        read("images", archive(TWO | {"weights.csv": weights, "more/weights.csv": weights}))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "weights.csv does not name it"),
        ("c.png,\n", "there is no weight"),
        ("c.png,0\n", "the weight “0” is not a positive number"),
    ],
    ids=["not listed", "empty", "zero"],
)
def test_a_picture_without_a_good_weight_is_refused(line, reason):
    files = TWO | {"c.png": picture("green"), "weights.csv": f"file,weight\na.png,1\nb.png,1\n{line}".encode()}
    reading = read("images", archive(files))
    assert [(refusal.source, refusal.reason) for refusal in reading.refusals] == [("c.png", reason)]


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


def test_a_weights_file_without_its_columns_is_refused():
    with pytest.raises(CatalogError, match="“file”"):
        read("images", archive(TWO | {"weights.csv": b"name,weight\na.png,1\n"}))


def test_folders_hidden_files_and_what_macos_adds_are_passed_over():
    clutter = {"__MACOSX/._a.png": b"x", ".DS_Store": b"x", "more/.hidden": b"x", "more/": b""}
    reading = read("images", archive(TWO | clutter | {"more/c.png": picture("green")}))
    assert [item.content for item in reading.items] == ["a.png", "b.png", "more/c.png"]
    assert reading.refusals == ()


def test_pictures_of_like_colours_are_neighbours():
    colours = [(250, 0, 0), (220, 20, 10), (255, 30, 0), (0, 0, 250), (10, 0, 220), (20, 20, 255)]
    items = read("images", archive({f"{place}.png": picture(colour) for place, colour in enumerate(colours)})).items
    for item, row in enumerate(OBJECT_KINDS["images"].neighbours(items, 1)):
        assert row
        assert all((other < 3) == (item < 3) for other in row)
