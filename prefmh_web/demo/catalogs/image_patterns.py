"""Eight families of abstract pictures. Each draws one from a Generator and a palette, `SIDE` pixels square.

Coordinates run from -1 to 1, left to right and top to bottom. Shapes are drawn from their distance to the nearest
edge, and `_cover` turns that into the part of a pixel that lies inside, which smooths every edge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

from prefmh_web.demo.catalogs.image_palettes import Array, ramp

SIDE = 384

Family = Callable[[np.random.Generator, Array], Array]
"""From a Generator and five colours, shape (5, 3), to a picture, shape (SIDE, SIDE, 3), as sRGB from 0 to 1."""


def waves(rng: np.random.Generator, colours: Array) -> Array:
    """Layers of cut paper with wavy edges, each casting a soft shadow on the one behind."""
    x, y = _plane()
    layers = int(rng.integers(7, 12))
    tones = ramp(colours, np.linspace(*rng.permutation([0.03, 1.0]), layers))
    tilt, height = rng.normal(0, 0.35), rng.uniform(0.7, 1.6)
    picture = np.broadcast_to(tones[0], (SIDE, SIDE, 3))
    for layer in range(1, layers):
        edge = -1.05 + 2.0 * layer / layers + tilt * x[0] + height * _swell(rng, x[0])
        inside = _below(edge, y)
        picture = _lay(picture * _shadow(inside), tones[layer], inside)
    return picture


def hills(rng: np.random.Generator, colours: Array) -> Array:
    """Ridges fading into haze below a sun or moon."""
    x, y = _plane()
    night = rng.random() < 0.4
    horizon = rng.uniform(-0.35, 0.15)
    picture = ramp(colours[:3] if night else colours[2:], (y + 1) / (horizon + 1.4))
    size = rng.uniform(0.12, 0.32)
    outside = np.hypot(x - rng.uniform(-0.6, 0.6), y - rng.uniform(-0.65, horizon)) - size
    picture = picture + (colours[4] - picture) * (0.55 * np.exp(-4 * np.maximum(outside, 0)))[..., None]
    picture = _lay(picture, colours[4], -outside)
    ridges = int(rng.integers(4, 8))
    roughness, steepness = rng.uniform(0.9, 1.7), rng.uniform(0.7, 1.4)
    for ridge in range(ridges):
        nearness = (ridge + 1) / ridges
        middle = horizon + (0.9 - horizon) * nearness**1.2
        edge = middle - steepness * (0.15 + 0.15 * nearness) * _crags(rng, x[0], roughness)
        haze = np.clip((y - middle + 0.2) * 0.8, 0, 0.5) * (1 - 0.8 * nearness)
        picture = _lay(picture, ramp(colours[:4], 0.75 * (1 - nearness) + haze), _below(edge, y))
    return picture


def tiles(rng: np.random.Generator, colours: Array) -> Array:
    """Truchet tiles: quarter circles, turned at random, that join into wandering ribbons."""
    count = int(rng.integers(4, 8))
    column, row, u, v = _cells(count)
    turned = rng.integers(0, 2, (count, count))[row, column]
    u = np.where(turned == 1, -u, u)
    nearest = np.minimum(np.hypot(u + 0.5, v + 0.5), np.hypot(u - 0.5, v - 0.5))
    ribbon = np.abs(nearest - 0.5) * 2 / count
    # The two sides of every ribbon take different colours if the corner discs alternate like a chessboard.
    side = ((row + column + turned) % 2 == 0) ^ (nearest < 0.5)
    order = rng.permutation(5)
    picture = colours[np.where(side, order[0], order[1])]
    x, y = _plane()
    band = ramp(colours[order[2:]], _even(x * rng.normal() + y * rng.normal()))
    width = rng.uniform(0.15, 0.24)
    picture = _lay(picture, band, 2 / count * width - ribbon)
    return _lay(picture, colours[order[rng.integers(0, 2)]], 2 / count * 0.3 * width - ribbon)


def shapes(rng: np.random.Generator, colours: Array) -> Array:
    """A grid of discs, quarter discs, halves, rings and diamonds, in flat colours."""
    count = int(rng.integers(4, 7))
    column, row, u, v = _cells(count)
    turns = rng.integers(0, 4, (count, count))[row, column]
    u, v = np.choose(turns, (u, -v, -u, v)), np.choose(turns, (v, u, -v, -u))
    insides = (
        0.42 - np.hypot(u, v),
        1 - np.hypot(u + 0.5, v + 0.5),
        0.5 - np.hypot(u + 0.5, v),
        0.12 - np.abs(np.hypot(u, v) - 0.3),
        (0.5 - np.abs(u) - np.abs(v)) / np.sqrt(2),
        (v - u) / np.sqrt(2),
        0.2 - np.abs(np.hypot(u + 0.5, v + 0.5) - 0.6),
    )
    chosen = rng.choice(len(insides), size=4, replace=False)
    inside = np.choose(rng.integers(0, 4, (count, count))[row, column], [insides[shape] for shape in chosen])
    ground = rng.integers(0, 5, (count, count))
    figure = (ground + rng.integers(1, 5, (count, count))) % 5
    return _lay(colours[ground[row, column]], colours[figure[row, column]], 2 / count * inside)


def rosettes(rng: np.random.Generator, colours: Array) -> Array:
    """Rings of petals, one upon the other, like a dahlia seen from above."""
    x, y = _plane()
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    rings, petals = int(rng.integers(6, 11)), int(rng.integers(5, 15))
    tones = ramp(colours, np.linspace(*rng.permutation([0.1, 1.0]), rings))
    roundness, depth = rng.uniform(0.5, 2.0), rng.uniform(0.2, 0.42)
    picture = np.broadcast_to(colours[rng.choice([0, 4])], (SIDE, SIDE, 3))
    for ring in range(rings):
        reach = 0.95 * (1 - ring / rings) ** 0.9
        # Each ring is turned by half a petal against the one below.
        crest = np.abs(np.cos(petals / 2 * angle + ring * np.pi / 2))
        inside = reach * (1 - depth + depth * crest**roundness) - radius
        shade = 0.72 + 0.28 * np.clip(radius / reach, 0, 1) * (0.5 + 0.5 * crest)
        picture = _lay(picture * _shadow(inside), tones[ring] * shade[..., None], inside)
    return picture


def glass(rng: np.random.Generator, colours: Array) -> Array:
    """Leaded glass: the cells around scattered points, or around the seeds of a sunflower."""
    x, y = _plane()
    sunflower = rng.random() < 0.5
    points = _sunflower(rng) if sunflower else _scattered(rng)
    owner, distance, to_edge = _voronoi(points, x, y)
    drift = np.hypot(*points.T) * rng.choice([-2, 2]) if sunflower else points @ rng.normal(0, 1, 2)
    drift = drift + rng.normal(0, rng.uniform(0.1, 0.6), len(points))
    rank = np.argsort(np.argsort(drift)) / (len(points) - 1)
    light = np.clip(1.06 - 1.1 * distance, 0.7, 1)
    panes = ramp(colours[1:], rank)[owner] * light[..., None]
    return _lay(np.broadcast_to(colours[0], panes.shape), panes, to_edge - 0.008)


def marble(rng: np.random.Generator, colours: Array) -> Array:
    """Noise displaced by noise, lit from one side like a relief."""
    x, y = _plane()
    strength = rng.uniform(0.35, 0.7)
    for scale in (1.5, 2.5):
        x, y = x + strength * _ripples(rng, x, y, scale), y + strength * _ripples(rng, x, y, scale)
    height = _even(_ripples(rng, x, y, 3.2))
    slope = np.gradient(height, axis=0) + np.gradient(height, axis=1)
    veins = 0.5 - 0.5 * np.cos(2 * np.pi * height * rng.integers(3, 7))
    light = np.clip(1 + 6 * slope, 0.75, 1.12)
    return ramp(colours, 0.75 * height + 0.25 * veins) * light[..., None]


def streams(rng: np.random.Generator, colours: Array) -> Array:
    """Ribbons that follow a flow."""
    dark = rng.random() < 0.6
    ground, inks = (colours[0], colours[1:]) if dark else (colours[4], colours[:4])
    # Lines are drawn by Pillow, which leaves their edges hard: twice the side, averaged down.
    side = 2 * SIDE
    canvas = Image.new("RGB", (side, side), _pixel(ground))
    draw = ImageDraw.Draw(canvas)
    paths = _follow_flow(rng, count=int(rng.integers(250, 700)), steps=int(rng.integers(20, 60)))
    drift = _even(paths[:, 0] @ rng.normal(0, 1, 2) + rng.normal(0, 0.3, len(paths)))
    radii = rng.uniform(1.5, rng.uniform(5, 11), len(paths))
    for path, tone, radius in zip((paths + 1) / 2 * side, ramp(inks, drift), radii, strict=True):
        draw.line(list(map(tuple, path)), fill=_pixel(tone), width=round(2 * radius), joint="curve")
        for x, y in path[[0, -1]]:
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_pixel(tone))
    return np.asarray(canvas.reduce(2)) / 255


FAMILIES: tuple[Family, ...] = (waves, hills, tiles, shapes, rosettes, glass, marble, streams)


def _plane() -> tuple[Array, Array]:
    """Return every pixel's x and y, each of shape (SIDE, SIDE)."""
    axis = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    x, y = np.meshgrid(axis, axis)
    return x, y


def _cells(count: int) -> tuple[np.ndarray, np.ndarray, Array, Array]:
    """Return every pixel's column and row in a grid of `count` cells a side, and its place in the cell, -0.5 to 0.5."""
    x, y = ((axis + 1) / 2 * count for axis in _plane())
    column, row = x.astype(np.intp), y.astype(np.intp)
    return column, row, x - column - 0.5, y - row - 0.5


def _cover(inside: Array) -> Array:
    """Return how much of a pixel a shape covers whose edge is `inside` away; negative is outside."""
    return np.clip(inside * SIDE / 2 + 0.5, 0, 1)[..., None]


def _lay(picture: Array, colour: Array, inside: Array) -> Array:
    """Return the picture with a shape laid upon it."""
    return picture + (colour - picture) * _cover(inside)


def _below(edge: Array, y: Array) -> Array:
    """Return how far below an edge, given as its y for every column, each pixel lies."""
    return (y - edge) / np.hypot(1, np.gradient(edge) * SIDE / 2)


def _shadow(inside: Array) -> Array:
    """Return the light that a shape leaves around it; its shadow is soft and short."""
    return (1 - 0.35 * np.exp(np.minimum(inside, 0) / 0.05))[..., None]


def _swell(rng: np.random.Generator, x: Array) -> Array:
    bends = zip((1.5, 3.0, 5.5), (0.11, 0.06, 0.025), strict=True)
    return sum(
        rng.uniform(0.3, 1) * height * np.sin(rng.uniform(0.8, 1.4) * pace * x + rng.uniform(0, 2 * np.pi))
        for pace, height in bends
    )


def _crags(rng: np.random.Generator, x: Array, roughness: float) -> Array:
    """Return heights, about -1 to 1: peaks where the slope breaks, finer and lower at each octave."""
    heights = np.zeros_like(x)
    for octave in 2.0 ** np.arange(7):
        bump = 1 - 2 * np.abs(np.sin(1.7 * octave * x + rng.uniform(0, 2 * np.pi)))
        heights += rng.uniform(0.6, 1.2) * bump / octave**roughness
    return heights


def _ripples(rng: np.random.Generator, x: Array, y: Array, scale: float) -> Array:
    ways = zip(rng.normal(0, scale, (5, 2)), rng.uniform(0, 2 * np.pi, 5), strict=True)
    return sum(np.cos(across * x + down * y + phase) for (across, down), phase in ways) / 2.5


def _follow_flow(rng: np.random.Generator, count: int, steps: int) -> Array:
    """Return lines along a random smooth flow, shape (count, steps, 2)."""
    swirls, phases = rng.normal(0, 1.6, (4, 2)), rng.uniform(0, 2 * np.pi, 4)
    paths = np.empty((count, steps, 2))
    paths[:, 0] = rng.uniform(-1.15, 1.15, (count, 2))
    for step in range(1, steps):
        here = paths[:, step - 1]
        angle = 1.6 * np.sin(here @ swirls.T + phases).sum(axis=1)
        paths[:, step] = here + 0.012 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return paths


def _voronoi(points: Array, x: Array, y: Array) -> tuple[np.ndarray, Array, Array]:
    """Return for every pixel the nearest of the points, its distance, and the distance to the edge of its cell."""
    owner, squared = np.zeros(x.shape, np.intp), np.full(x.shape, np.inf)
    for place, (px, py) in enumerate(points):
        candidate = (x - px) ** 2 + (y - py) ** 2
        owner[candidate < squared] = place
        np.minimum(squared, candidate, out=squared)
    to_edge = np.zeros(x.shape)
    for place in np.unique(owner):
        mine, others = owner == place, points - points[place]
        lengths = np.hypot(*others.T)
        # Of so evenly placed points only the nearest few can share an edge with this one.
        few = np.argsort(lengths)[1:17]
        here = np.stack([x[mine], y[mine]], axis=-1) - points[place]
        to_edge[mine] = (lengths[few] / 2 - here @ (others[few] / lengths[few, None]).T).min(axis=1)
    return owner, np.sqrt(squared), to_edge


def _sunflower(rng: np.random.Generator) -> Array:
    """Points turned by the golden angle, wider apart the farther out."""
    seed = np.arange(int(rng.integers(90, 180))) + 0.5
    radius = 1.6 * (seed / len(seed)) ** rng.uniform(0.55, 0.8)
    angle = seed * np.pi * (3 - np.sqrt(5)) + rng.uniform(0, 2 * np.pi)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def _scattered(rng: np.random.Generator) -> Array:
    """Points on a grid, moved at random: scattered, yet nowhere crowded."""
    count = int(rng.integers(4, 10))
    axis = (np.arange(-1, count + 1) + 0.5) / count * 2 - 1
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return grid + rng.uniform(-0.8, 0.8, grid.shape) / count


def _even(values: Array) -> Array:
    """Return values from 0 to 1, spread evenly enough that a ramp over them shows all its colours."""
    centred = (values - values.mean()) / values.std()
    return 1 / (1 + np.exp(-1.7 * centred))


def _pixel(colour: Array) -> tuple[int, int, int]:
    red, green, blue = (round(float(part) * 255) for part in colour)
    return red, green, blue
