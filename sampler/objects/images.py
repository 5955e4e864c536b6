"""Images: a ZIP of picture files, with a `weights.csv` (columns file, weight, and others) inside if wanted.

Every picture is decoded and encoded again, in sRGB and on white, so nothing but pixels reaches a voter's browser, and
everybody sees the same: pages may be dark, and each model's server has a ground of its own. Pages show small previews
of generated ones; a model judge gets a picture in the size and format that the judge's config says.

What is measured of a picture needs no knowledge of what it shows.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image, ImageCms, UnidentifiedImageError

from sampler.judges.prompts import Picture, ShownObject, Vision
from sampler.objects.items import Encoded

_PREVIEW_QUALITY = 85


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return the lossless original as PNG.

    Args:
        pixels: sRGB, shape (height, width, 3).

    Raises:
        ValueError: the pixels have another shape or type.
    """
    encoded = io.BytesIO()
    _image(pixels).save(encoded, "PNG")
    return encoded.getvalue()


def preview(pixels: npt.NDArray[np.uint8], side: int) -> bytes:
    """Return the picture as WebP, a fraction of the bytes, with its longer side at most `side` pixels; smaller ones are
    not enlarged.

    Args:
        pixels: sRGB, shape (height, width, 3).
        side: at least 1.

    Raises:
        ValueError: the pixels have another shape or type, or `side` is below 1.
    """
    if side < 1:
        raise ValueError(f"side must be at least 1 pixel, not {side}")
    image = _image(pixels)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    encoded = io.BytesIO()
    image.save(encoded, "WEBP", quality=_PREVIEW_QUALITY)
    return encoded.getvalue()


def on_white(image: Image.Image) -> Image.Image:
    """Return a picture as it looks on white, mixed in its own colours, without transparency and with eight bits a band.

    Raises:
        ValueError: nothing of it is seen on white.
    """
    clear = image.info.get("transparency")
    if image.mode.startswith("I;16"):
        image = _with_eight_bits(image, clear)
    elif isinstance(clear, tuple) and max(clear) > 255:
        # Pillow reads 16-bit colours in eight bits, and leaves the one that is clear as it was.
        image.info["transparency"] = tuple(band >> 8 for band in clear)
    if not image.has_transparency_data:
        return image
    mode = "L" if image.mode in ("1", "L", "LA", "La") else "RGB"
    image = image.convert(f"{mode}A")
    opacity = image.getchannel("A")
    seen = Image.new(mode, image.size, "white")
    seen.paste(image.convert(mode), mask=opacity)
    if _is_one_colour(seen) and (opacity.getextrema() == (0, 0) or not _is_one_colour(image)):
        raise ValueError("the image is transparent and one colour on white; put what it shows on a ground of its own")
    return seen


def _with_eight_bits(image: Image.Image, clear: int | None) -> Image.Image:
    """Return a picture of 16-bit greys in eight; Pillow would clip them at 255 and leave a white picture."""
    greys = np.asarray(image)
    eight = Image.fromarray((greys >> 8).astype(np.uint8))
    if clear is not None:
        eight.putalpha(Image.fromarray(np.where(greys == clear, 0, 255).astype(np.uint8)))
    return eight


def _is_one_colour(image: Image.Image) -> bool:
    return all(low == high for low, high in (band.getextrema() for band in image.split()))


def _image(pixels: npt.NDArray[np.uint8]) -> Image.Image:
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"pixels must be uint8 of shape (height, width, 3), not {pixels.dtype} {pixels.shape}")
    return Image.fromarray(pixels)


# Luma of sRGB values (ITU-R BT.601), as image libraries turn colour to grey.
_LUMA = (0.299, 0.587, 0.114)
# A step in brightness of a tenth of the range within one pixel is an edge.
_EDGE = 0.1


@dataclass(frozen=True)
class ImageDescription:
    """Measures of one picture.

    Args:
        colourfulness: M^(3) of Hasler and Süsstrunk (2003); 0 is grey, about 33 moderately, 59 highly and above 82
            extremely colourful by their raters.
        contrast: root mean square contrast: the standard deviation of brightness, 0 to 0.5.
        edge_density: the share of pixels where brightness rises by more than a tenth of its range per pixel, 0 to 1;
            None for a picture of one row or one column, where it has no slope in one of the two directions.
        symmetry: correlation of brightness with its left-right mirror image, -1 to 1; 1 for a picture of one tone.
    """

    colourfulness: float
    contrast: float
    edge_density: float | None
    symmetry: float


def describe_image(pixels: npt.NDArray[np.uint8]) -> ImageDescription:
    """Measure a picture.

    Args:
        pixels: sRGB, shape (height, width, 3), at least one pixel.

    Raises:
        ValueError: another shape.
    """
    if pixels.ndim != 3 or pixels.shape[2] != 3 or min(pixels.shape[:2]) < 1:
        raise ValueError(f"pixels must have the shape (height, width, 3), at least 1 × 1, not {pixels.shape}")
    red, green, blue = (pixels[..., band].astype(np.float64) for band in range(3))
    brightness = (_LUMA[0] * red + _LUMA[1] * green + _LUMA[2] * blue) / 255
    return ImageDescription(
        colourfulness=_colourfulness(red, green, blue),
        contrast=float(brightness.std()),
        edge_density=_edge_density(brightness),
        symmetry=_symmetry(brightness),
    )


def _colourfulness(
    red: npt.NDArray[np.float64], green: npt.NDArray[np.float64], blue: npt.NDArray[np.float64]
) -> float:
    red_green, yellow_blue = red - green, (red + green) / 2 - blue
    spread = np.hypot(red_green.std(), yellow_blue.std())
    return float(spread + 0.3 * np.hypot(red_green.mean(), yellow_blue.mean()))


def _edge_density(brightness: npt.NDArray[np.float64]) -> float | None:
    if min(brightness.shape) < 2:
        return None
    down, across = np.gradient(brightness)
    return float(np.mean(np.hypot(down, across) > _EDGE))


def _symmetry(brightness: npt.NDArray[np.float64]) -> float:
    centred = brightness - brightness.mean()
    power = float(np.mean(centred * centred))
    # A flat picture's variance is nothing but rounding; it is its own mirror image.
    return float(np.mean(centred * centred[:, ::-1])) / power if power > 1e-12 else 1.0


MAX_PIXELS = 25_000_000
# Of a JPEG that is decoded at a fraction of its size. One that is saved progressively needs all of it at once.
MAX_JPEG_PIXELS = 89_000_000
MAX_SIDE = 1024
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_OTHER_FORMATS = re.compile(rb".{4}ftyp(?:hei|hev|mif1|msf1|avi)|II\*\0|MM\0\*", re.DOTALL)
# Many phones save photographs as MPO, which is JPEG with a second picture behind the first.
_LOSSY = ("JPEG", "MPO", "WEBP")
_THUMBNAIL = (12, 12)
# By the value of the EXIF tag Orientation.
_TURN_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def encoded_anew(data: bytes) -> Encoded:
    """Decode a picture and encode its pixels again as PNG, or as WebP where the original was lossy already.

    Larger sides than 1024 pixels are scaled down; metadata is dropped; what is clear becomes white.

    Raises:
        ValueError: it is no picture in one of `FORMATS`, is broken, or has too many pixels.
    """
    pixels, found, is_animated = _decoded(data)
    lossy = found in _LOSSY
    encoded = io.BytesIO()
    pixels.save(encoded, "WEBP" if lossy else "PNG", **({"quality": 90} if lossy else {}))
    alike = hashlib.sha256(f"{pixels.size}".encode() + pixels.tobytes()).hexdigest()
    left_out = "is animated; only its first frame is shown" if is_animated else ""
    return Encoded(encoded.getvalue(), "image/webp" if lossy else "image/png", alike, left_out)


def _decoded(data: bytes) -> tuple[Image.Image, str, bool]:
    """Return a picture upright, in sRGB, on white, small enough and without metadata; the format that it came in; and
    whether it has more frames.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as original:
            found, is_animated = original.format or "", getattr(original, "is_animated", False)
            _require_pixels(original)
            # Not ImageOps.exif_transpose: it writes all EXIF data anew and fails on what cameras get wrong there.
            turn = _TURN_UPRIGHT.get(original.getexif().get(ExifTags.Base.Orientation, 1))
            upright = original if turn is None else original.transpose(turn)
            pixels = _in_srgb(on_white(upright), original.info.get("icc_profile"))
    except UnidentifiedImageError as error:
        if _OTHER_FORMATS.match(data):
            raise ValueError("HEIC, AVIF and TIFF are not accepted; save the image as JPEG or PNG") from error
        raise ValueError(f"not an image; accepted are {', '.join(FORMATS)}") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(f"the image has far too many pixels: {error}") from error
    except (OSError, SyntaxError, EOFError, struct.error) as error:
        raise ValueError(f"the image is broken: {error}") from error
    pixels.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
    # Pillow would write what it keeps here, such as a colour profile, into the file.
    pixels.info.clear()
    return pixels, found, is_animated and found != "MPO"


def _require_pixels(original: Image.Image) -> None:
    """Require that a picture can be decoded in little memory; of a large JPEG, a fraction of it will be."""
    is_photograph = original.format in ("JPEG", "MPO") and not original.info.get("progressive")
    most = MAX_JPEG_PIXELS if is_photograph else MAX_PIXELS
    if original.width * original.height > most:
        raise ValueError(
            f"the image has {original.width} × {original.height} pixels; at most {most // 10**6} million are allowed. "
            "Make it smaller"
        )
    if original.width * original.height > MAX_PIXELS:
        original.draft(original.mode, (2 * MAX_SIDE, 2 * MAX_SIDE))


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return an image without transparency as RGB, in sRGB; a profile that does not fit is ignored."""
    if profile:
        for mode in {"CMYK": ("CMYK",), "1": ("L", "RGB"), "L": ("L", "RGB")}.get(image.mode, ("RGB",)):
            try:
                converted = ImageCms.profileToProfile(
                    image.convert(mode), io.BytesIO(profile), ImageCms.createProfile("sRGB"), outputMode="RGB"
                )
            except ImageCms.PyCMSError:
                continue
            if converted is not None:
                return converted
    return image.convert("RGB")


def thumbnail(picture: bytes) -> npt.NDArray[np.float64]:
    """Return how a picture looks from afar: 12 by 12 pixels in opponent colours, shape (432,)."""
    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("RGB").resize(_THUMBNAIL, Image.Resampling.BOX)
    red, green, blue = (np.asarray(band, dtype=np.float64) / 255 for band in small.split())
    # Opponent colours: lightness, red-green and yellow-blue, roughly as far apart as they look.
    opponents = np.stack([(red + green + blue) / 3, (red - green) / 2, (red + green) / 4 - blue / 2])
    return np.asarray(opponents.ravel(), dtype=np.float64)


_QUALITY = 90


def shown_as(shown: ShownObject, vision: Vision | None) -> ShownObject:
    """Return an object as a model gets it.

    Args:
        shown: its words, its picture, or both, as they are stored or drawn.
        vision: how the model is shown pictures; as they are if None.

    Raises:
        ValueError: its picture cannot be read.
    """
    if shown.picture is None or vision is None:
        return shown
    if shown.text and vision.molecules == "smiles":
        return replace(shown, picture=None)
    picture = replace(_encoded(shown.picture, vision), detail=vision.detail or "")
    return replace(shown, text="" if vision.molecules == "picture" else shown.text, picture=picture)


def _encoded(picture: Picture, vision: Vision) -> Picture:
    """Return the picture in the wanted size and format; the same bytes for the same file."""
    if not vision.changes_files:
        return picture
    image = _opened(picture)
    stored_as = (image.format or "").lower()
    is_small = vision.edge is None or max(image.size) <= vision.edge
    wanted = vision.format or ("jpeg" if stored_as == "jpeg" else "png")
    if is_small and wanted == stored_as and vision.quality is None:
        return picture
    image = on_white(image)
    # With a palette, colours between two entries would be lost.
    image = image if image.mode in ("RGB", "L") else image.convert("RGB")
    if vision.edge is not None and not is_small:
        image.thumbnail((vision.edge, vision.edge), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if wanted == "jpeg":
        image.save(out, "JPEG", quality=vision.quality or _QUALITY)
    else:
        image.save(out, "PNG")
    return Picture(f"image/{wanted}", out.getvalue())


def _opened(picture: Picture) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(picture.data))
        image.load()
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"the picture cannot be read: {error}") from error
    return image
