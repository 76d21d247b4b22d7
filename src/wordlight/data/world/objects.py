"""The twenty-four objects of the world, each a signed distance function made of parts.

World +Z is up and objects face +X; they reach about one unit from the origin. Each takes points and four
proportions in [-1, 1] that vary it, and returns the distance to each of its three materials: `primary`
carries the colour one names, `secondary` another colour, `dark` is for tyres, tracks, eyes and windows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.data.world.shapes import (
    Distance,
    Point,
    box,
    capsule,
    cone,
    cylinder,
    ellipsoid,
    gable,
    intersection,
    length,
    smooth_union,
    sphere,
    subtract,
    torus,
    union,
)


class Parts(NamedTuple):
    """Signed distances to the surfaces of the three materials, `[n]` each, in object units."""

    primary: Distance
    secondary: Distance
    dark: Distance

    def distance(self) -> Distance:
        """Return the distance to the whole object."""
        return union(*self)


Vary = tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""], Float[Array, ""]]


@dataclass(frozen=True)
class Kind:
    """One kind of object: its noun, its shape, and the factor that brings it to common size."""

    name: str
    shape: Callable[[Point, Vary], Parts]
    size: float = 1.0

    def parts(self, p: Point, vary: Vary) -> Parts:
        """Return the distances to the three materials; `vary` holds four proportions in [-1, 1]."""
        parts = self.shape(Point(*(a / self.size for a in p)), vary)
        return Parts(*(self.size * d for d in parts))


def airplane(p: Point, v: Vary) -> Parts:
    """Airliner: fuselage, swept wings, tail; engines under the wings."""
    r, span = 0.19 + 0.03 * v[0], 0.8 + 0.1 * v[1]
    m = p.mirror_y()
    body = capsule(p, (-0.7, 0.0, 0.0), (0.66, 0.0, 0.0), r)
    wing = box(m.at(0.02 - 0.1, span / 2, -0.03).yaw(0.2), 0.2 + 0.04 * v[2], span / 2, 0.05, 0.04)
    fin = box(p.at(-0.72, 0.0, 0.3).pitch(-0.4), 0.14, 0.045, 0.25 + 0.04 * v[3], 0.04)
    plane = box(m.at(-0.74, 0.18, 0.04).yaw(0.2), 0.12, 0.2, 0.04, 0.03)
    engine = capsule(m, (-0.02, 0.38, -0.15), (0.24, 0.38, -0.15), 0.085)
    glass = box(p.at(0.66, 0.0, 0.11), 0.1, 0.15, 0.045, 0.04)
    return Parts(union(body, wing, fin, plane), engine, glass)


def boat(p: Point, v: Vary) -> Parts:
    """Sailing boat: a pointed hull and a fat triangular sail."""
    width, reach = 0.34 + 0.05 * v[0], 1.0 + 0.5 * v[1]
    side = length(p.x, jnp.abs(p.y) + reach - width + 0.25 * jnp.maximum(-0.25 - p.z, 0.0)) - reach
    hull = intersection(0.97 * side, jnp.abs(p.x) - 0.82, jnp.abs(p.z + 0.52) - 0.22)
    mast = cylinder(p.at(0.12, 0.0, 0.2), 0.05, 0.72)
    rake = 0.6 + 0.06 * v[2]
    cloth = intersection(-0.2 - p.z, jnp.abs(p.y) - 0.06)
    aft = intersection((rake * (p.z + 0.2) - 0.62 - p.x) / jnp.sqrt(1.0 + rake * rake), p.x - 0.06, cloth)
    fore = intersection((rake * (p.z + 0.2) - 0.8 + p.x) / jnp.sqrt(1.0 + rake * rake), 0.2 - p.x, cloth)
    deck = intersection(0.97 * side, jnp.abs(p.x) - 0.8, jnp.abs(p.z + 0.3) - 0.05) - 0.03
    return Parts(union(hull, aft, fore), deck, mast)


def bottle(p: Point, v: Vary) -> Parts:
    """Bottle with a label and a cap."""
    r, neck = 0.36 + 0.06 * v[0], 0.13 + 0.02 * v[1]
    body = cylinder(p.at(z=-0.35), r, 0.55, 0.08)
    shoulder = cone(p.at(z=0.34), r - 0.03, neck, 0.2 + 0.03 * v[2])
    pipe = cylinder(p.at(z=0.55), neck, 0.3)
    cap = cylinder(p.at(z=0.84), neck + 0.04, 0.1, 0.02)
    label = cylinder(p.at(z=-0.38 + 0.1 * v[3]), r + 0.015, 0.17)
    return Parts(union(smooth_union(body, shoulder, 0.08), pipe), union(cap, label), cap + 10.0)


def bulldozer(p: Point, v: Vary) -> Parts:
    """Tracked machine with a wide blade in front and a cab at the back."""
    m = p.mirror_y()
    track = box(m.at(-0.12, 0.36, -0.42), 0.6 + 0.05 * v[0], 0.15, 0.22, 0.2)
    body = box(p.at(0.0, 0.0, -0.14), 0.5, 0.27, 0.26, 0.04)
    hood = box(p.at(0.2, 0.0, 0.05), 0.33, 0.22, 0.18 + 0.03 * v[1], 0.05)
    cab = box(p.at(-0.32, 0.0, 0.26), 0.25, 0.27, 0.36 + 0.05 * v[2], 0.04)
    roof = box(p.at(-0.32, 0.0, 0.62 + 0.05 * v[2]), 0.3, 0.32, 0.05, 0.03)
    tall, wide = 0.28 + 0.04 * v[3], 0.58 + 0.05 * v[0]
    curve = cylinder(p.at(1.15, 0.0, -0.3).along_y(), 0.42, 1.0)
    blade = subtract(box(p.at(0.76, 0.0, -0.34), 0.13, wide, tall, 0.02), curve)
    arm = capsule(m, (-0.05, 0.53, -0.4), (0.68, 0.5, -0.45), 0.055)
    side = box(p.at(-0.3, 0.0, 0.34), 0.17, 0.285, 0.14)
    front = box(p.at(-0.32, 0.0, 0.34), 0.265, 0.19, 0.14)
    pipe = cylinder(p.at(0.28, 0.1, 0.32), 0.05, 0.18)
    return Parts(union(body, hood, cab, roof, blade), arm, union(track, side, front, pipe))


def cactus(p: Point, v: Vary) -> Parts:
    """Column with two raised arms, in a pot."""
    r = 0.21 + 0.03 * v[0]
    stem = capsule(p, (0.0, 0.0, -0.5), (0.0, 0.0, 0.68), r)
    left, right = 0.05 + 0.12 * v[1], -0.12 + 0.12 * v[2]
    arms = union(
        capsule(p, (0.0, 0.1, left), (0.0, 0.5, left), 0.13),
        capsule(p, (0.0, 0.5, left), (0.0, 0.5, left + 0.4), 0.13),
        capsule(p, (0.0, -0.1, right), (0.0, -0.5, right), 0.13),
        capsule(p, (0.0, -0.5, right), (0.0, -0.5, right + 0.32), 0.13),
    )
    pot = cone(p.at(z=-0.7), 0.26, 0.36 + 0.04 * v[3], 0.19)
    return Parts(smooth_union(stem, arms, 0.06), pot, cylinder(p.at(z=-0.52), 0.3, 0.03))


def car(p: Point, v: Vary) -> Parts:
    """Saloon with four wheels; dark windows."""
    m = p.mirror_y()
    body = box(p.at(0.0, 0.0, -0.14), 0.85, 0.42, 0.2, 0.1)
    long, tall = 0.46 + 0.06 * v[0], 0.25 + 0.05 * v[1]
    cabin = box(p.at(-0.1 + 0.06 * v[2], 0.0, 0.16), long, 0.37, tall, 0.12)
    glass = p.at(-0.1 + 0.06 * v[2], 0.0, 0.21)
    ends = box(glass, long + 0.015, 0.27, tall - 0.16, 0.03)
    sides = box(glass, long - 0.13, 0.385, tall - 0.15, 0.03)
    wheels = cylinder(p.fold4().at(0.52, 0.38, -0.33).along_y(), 0.2 + 0.03 * v[3], 0.09, 0.03)
    hub = cylinder(p.fold4().at(0.52, 0.46, -0.33).along_y(), 0.1, 0.03)
    lights = sphere(m.at(0.81, 0.27, -0.1), 0.08)
    return Parts(union(body, cabin), union(hub, lights), union(ends, sides, wheels))


def castle(p: Point, v: Vary) -> Parts:
    """Four round towers with pointed roofs, walls with battlements and a keep."""
    f = p.fold4()
    wall, top = 0.5 + 0.03 * v[0], 0.3 + 0.08 * v[1]
    walls = box(p.at(z=-0.3), wall, wall, 0.4)
    teeth = box(p.fold8().at(wall - 0.05, 0.17, 0.14), 0.06, 0.08, 0.09)
    tower = cylinder(f.at(wall, wall, -0.7 + (top + 0.7) / 2), 0.2, (top + 0.7) / 2)
    rim = cylinder(f.at(wall, wall, top), 0.235, 0.05)
    roof = cone(f.at(wall, wall, top + 0.24), 0.23, 0.01, 0.2)
    keep = box(p.at(z=0.15), 0.24 + 0.04 * v[2], 0.24 + 0.04 * v[2], 0.5)
    crest = box(f.at(0.2 + 0.04 * v[2], 0.2 + 0.04 * v[2], 0.7), 0.07, 0.07, 0.1)
    arch = cylinder(p.at(wall, 0.0, -0.3).along_x(), 0.15, 0.02)
    gate = union(box(p.at(wall, 0.0, -0.5), 0.02, 0.15, 0.2), arch)
    return Parts(union(walls, teeth, tower, rim, keep, crest), roof, gate)


def chair(p: Point, v: Vary) -> Parts:
    """Four legs, a seat with a cushion, a tall back."""
    half, seat = 0.4 + 0.04 * v[0], -0.12 + 0.08 * v[1]
    top = 0.8 + 0.08 * v[2]
    leg = box(p.fold4().at(half - 0.08, half - 0.08, (seat - 0.85) / 2), 0.08, 0.08, (seat + 0.85) / 2, 0.02)
    board = box(p.at(z=seat), half, half, 0.08, 0.03)
    back = box(p.at(-half + 0.07, 0.0, (seat + top) / 2), 0.07, half, (top - seat) / 2, 0.03)
    cushion = box(p.at(0.05, 0.0, seat + 0.09), half - 0.12, half - 0.08, 0.05, 0.04)
    return Parts(union(leg, board, back), cushion, cushion + 10.0)


def crown(p: Point, v: Vary) -> Parts:
    """Open ring with eight points, a ball on each, and jewels on the band."""
    r, high, low = 0.64 + 0.05 * v[0], 0.5 + 0.08 * v[1], -0.05 + 0.05 * v[2]
    f = p.fold8().yaw(jnp.pi / 8)
    shell = jnp.abs(length(p.x, p.y) - r) - 0.065
    slope = (high - low) / (r * 0.4)
    point = (p.z - high + slope * jnp.abs(f.y)) / jnp.sqrt(1.0 + slope * slope)
    spikes = intersection(shell, point, -0.45 - p.z, jnp.abs(p.z) - high)
    band = torus(p.at(z=-0.42), r, 0.1)
    balls = sphere(f.at(r, 0.0, high - 0.02), 0.095)
    jewels = sphere(f.at(r + 0.04, 0.0, -0.17), 0.085)
    return Parts(union(spikes, band), union(balls, jewels), balls + 10.0)


def cup(p: Point, v: Vary) -> Parts:
    """Mug with a big handle, filled with something dark."""
    r, half, foot = 0.5 + 0.05 * v[0], 0.56 + 0.07 * v[1], 0.05 * v[2]
    wall = cone(p, r - 0.06 + foot, r, half)
    hollow = cylinder(p.at(z=half), r - 0.1, half)
    handle = torus(p.at(0.0, -r + 0.02, 0.0).along_x(), 0.3 + 0.04 * v[3], 0.085)
    handle = subtract(handle, cylinder(p, r - 0.08, half))
    drink = cylinder(p.at(z=half - 0.2), r - 0.095, 0.04)
    rim = torus(p.at(z=half), r - 0.05, 0.05)
    return Parts(union(subtract(wall, hollow), handle), rim, drink)


def donut(p: Point, v: Vary) -> Parts:
    """Iced ring, leaning, with sprinkles."""
    q = p.pitch(0.4)
    ring, tube = 0.56 + 0.03 * v[0], 0.28 + 0.04 * v[1]
    icing = torus(q, ring, tube)
    dough = intersection(torus(q, ring, tube + 0.02), q.z + 0.1 + 0.04 * v[2])
    f = q.fold8()
    sprinkles = union(
        capsule(f, (0.52, 0.1, tube), (0.6, 0.16, tube), 0.035),
        capsule(f, (0.62, 0.32, 0.85 * tube), (0.58, 0.42, 0.85 * tube), 0.035),
        capsule(f, (0.42, 0.13, 0.85 * tube), (0.4, 0.05, 0.85 * tube), 0.035),
    )
    return Parts(icing, union(dough, sprinkles), icing + 10.0)


def duck(p: Point, v: Vary) -> Parts:
    """Bath duck: body, head, beak, tail and wings."""
    m = p.mirror_y()
    body = ellipsoid(p.at(-0.1, 0.0, -0.3), 0.62, 0.44, 0.38)
    tail = ellipsoid(p.at(-0.66, 0.0, -0.02).pitch(0.7), 0.26, 0.2, 0.11)
    r, high = 0.3 + 0.04 * v[0], 0.3 + 0.06 * v[1]
    head = sphere(p.at(0.3, 0.0, high), r)
    wing = ellipsoid(m.at(-0.15, 0.38, -0.22).pitch(0.2), 0.36, 0.12, 0.2)
    beak = ellipsoid(p.at(0.3 + r, 0.0, high - 0.04), 0.24 + 0.04 * v[2], 0.16, 0.075)
    eye = sphere(m.at(0.3 + 0.75 * r, 0.5 * r, high + 0.35 * r), 0.07)
    bird = smooth_union(smooth_union(smooth_union(body, head, 0.15), tail, 0.12), wing, 0.04)
    return Parts(bird, beak, eye)


def fish(p: Point, v: Vary) -> Parts:
    """Deep flat body, forked tail, fins on back and sides."""
    m = p.mirror_y()
    body = ellipsoid(p.at(0.12, 0.0, 0.0), 0.62, 0.26, 0.4)
    lobe = Point(p.x, p.y, jnp.abs(p.z)).at(-0.68, 0.0, 0.2 + 0.03 * v[0]).pitch(0.75)
    tail = ellipsoid(lobe, 0.33, 0.09, 0.15)
    back = ellipsoid(p.at(0.02, 0.0, 0.4).pitch(0.3), 0.34, 0.08, 0.23)
    belly = ellipsoid(p.at(0.0, 0.0, -0.38).pitch(-0.5), 0.22, 0.08, 0.14)
    side = ellipsoid(m.at(0.14, 0.3, -0.1).pitch(-0.4).yaw(-0.5), 0.2, 0.06, 0.12)
    eye = sphere(m.at(0.5, 0.15, 0.12), 0.085 + 0.015 * v[1])
    mouth = torus(p.at(0.73, 0.0, -0.05).along_x(), 0.06, 0.035 + 0.01 * v[2])
    return Parts(smooth_union(body, union(tail, belly), 0.08), union(back, side, mouth), eye)


def hammer(p: Point, v: Vary) -> Parts:
    """Upright hammer: a heavy head, a claw behind, a handle with a grip."""
    z = 0.55
    head = box(p.at(0.05, 0.0, z), 0.34, 0.19, 0.19, 0.03)
    face = cylinder(p.at(0.5, 0.0, z).along_x(), 0.25 + 0.03 * v[0], 0.16 + 0.03 * v[1], 0.04)
    claw = capsule(p, (-0.3, 0.0, z + 0.02), (-0.68, 0.0, z - 0.18 + 0.08 * v[2]), 0.12)
    stick = cylinder(p.at(z=-0.1), 0.12 + 0.02 * v[3], 0.62)
    grip = cylinder(p.at(z=-0.62), 0.15 + 0.02 * v[3], 0.26, 0.05)
    return Parts(union(smooth_union(head, claw, 0.1), face, stick), grip, grip + 10.0)


def house(p: Point, v: Vary) -> Parts:
    """Walls, gable roof, chimney, door and windows."""
    x, y, ridge = 0.6 + 0.06 * v[0], 0.46 + 0.05 * v[1], 0.6 + 0.1 * v[2]
    walls = box(p.at(z=-0.35), x, y, 0.35)
    roof = gable(p.at(z=-0.03), x + 0.1, y + 0.14, ridge)
    chimney = box(p.at(-0.3, 0.22, 0.42), 0.1, 0.1, 0.26)
    door = box(p.at(x, 0.0, -0.46), 0.02, 0.13, 0.24)
    windows = box(p.fold4().at(0.3, y, -0.3), 0.13, 0.02, 0.13)
    gables = box(p.mirror_x().mirror_y().at(x, 0.3, -0.28), 0.02, 0.1, 0.11)
    attic = cylinder(p.mirror_x().at(x + 0.1, 0.0, 0.16).along_x(), 0.1, 0.02)
    return Parts(union(walls, roof), union(chimney, door), union(windows, gables, attic))


def lamp(p: Point, v: Vary) -> Parts:
    """Table lamp: a wide shade on a round foot."""
    low, high = 0.6 + 0.06 * v[0], 0.32 + 0.05 * v[1]
    shade = cone(p.at(z=0.42), low, high, 0.36 + 0.04 * v[2])
    vase = ellipsoid(p.at(z=-0.45), 0.25, 0.25, 0.32)
    pole = cylinder(p.at(z=-0.1), 0.06, 0.3)
    foot = cylinder(p.at(z=-0.76), 0.34 + 0.04 * v[3], 0.06, 0.03)
    hem = torus(p.at(z=0.06 - 0.04 * v[2]), low, 0.045)
    brim = torus(p.at(z=0.78 + 0.04 * v[2]), high, 0.045)
    return Parts(union(shade, vase), union(hem, brim, foot), pole)


def mushroom(p: Point, v: Vary) -> Parts:
    """Spotted dome on a thick stem."""
    cap = ellipsoid(p.at(z=0.05), 0.76, 0.76, 0.62)
    hat = intersection(cap, -0.02 - p.z + 0.06 * v[0]) - 0.03
    stem = cone(p.at(z=-0.4), 0.3 + 0.04 * v[1], 0.2 + 0.03 * v[2], 0.45)
    f = p.fold4()
    spot = 0.12 + 0.02 * v[3]
    spots = union(
        sphere(p.at(z=0.66), spot + 0.03),
        sphere(f.at(0.4, 0.3, 0.5), spot),
        sphere(p.mirror_x().at(0.68, 0.0, 0.3), spot),
        sphere(p.mirror_y().at(0.0, 0.68, 0.3), spot),
    )
    return Parts(hat, union(stem, spots), hat + 10.0)


def robot(p: Point, v: Vary) -> Parts:
    """Boxes for head, trunk, arms and legs; round eyes; an aerial."""
    m = p.mirror_y()
    head = box(p.at(z=0.5), 0.24, 0.3 + 0.03 * v[0], 0.22 + 0.02 * v[1], 0.05)
    trunk = box(p.at(z=-0.04), 0.26, 0.37 + 0.04 * v[2], 0.29, 0.05)
    arm = box(m.at(0.0, 0.54 + 0.04 * v[2], -0.02), 0.11, 0.1, 0.26 + 0.03 * v[3], 0.05)
    leg = box(m.at(0.0, 0.19, -0.55), 0.14, 0.13, 0.26, 0.03)
    foot = box(m.at(0.06, 0.19, -0.8), 0.23, 0.16, 0.09, 0.04)
    hand = sphere(m.at(0.0, 0.54 + 0.04 * v[2], -0.34), 0.12)
    neck = cylinder(p.at(z=0.27), 0.12, 0.06)
    aerial = union(sphere(p.at(z=0.88), 0.08), cylinder(p.at(z=0.77), 0.035, 0.08))
    panel = box(p.at(0.26, 0.0, 0.0), 0.02, 0.2, 0.14)
    eye = cylinder(m.at(0.24, 0.13, 0.55).along_x(), 0.075, 0.03)
    mouth = box(p.at(0.24, 0.0, 0.38), 0.02, 0.15, 0.035)
    return Parts(union(head, trunk, arm, leg), union(hand, aerial, panel), union(foot, neck, eye, mouth))


def rocket(p: Point, v: Vary) -> Parts:
    """Upright rocket: pointed nose, round windows, four fins, a nozzle."""
    r = 0.29 + 0.04 * v[0]
    body = ellipsoid(p.at(z=-0.02), r, r, 0.98)
    hull = intersection(body, -0.66 - p.z, p.z - 0.42)
    nose = intersection(body - 0.005, 0.42 - p.z)
    f = p.fold8().at(r + 0.1, 0.0, -0.58)
    fin = box(f.pitch(-0.35), 0.2 + 0.03 * v[1], 0.06, 0.26 + 0.03 * v[2], 0.03)
    nozzle = cone(p.at(z=-0.74), 0.22, 0.14, 0.1)
    band = cylinder(p.at(z=-0.5), 0.94 * r, 0.05)
    window = sphere(p.mirror_x().at(0.85 * r, 0.0, 0.12), 0.13 + 0.02 * v[3])
    return Parts(union(hull, fin), union(nose, band), union(nozzle, window))


def snowman(p: Point, v: Vary) -> Parts:
    """Three balls, a hat, a nose, a scarf and buttons."""
    m = p.mirror_y()
    low, mid, top = 0.43 + 0.03 * v[0], 0.32 + 0.02 * v[1], 0.23 + 0.02 * v[2]
    balls = union(sphere(p.at(z=-0.5), low), sphere(p.at(z=0.08), mid), sphere(p.at(z=0.48), top))
    hat = union(cylinder(p.at(z=0.66), 0.29, 0.035), cylinder(p.at(z=0.8), 0.18, 0.14 + 0.03 * v[3], 0.02))
    nose = cone(p.at(top + 0.1, 0.0, 0.48).along_x(), 0.07, 0.01, 0.13)
    scarf = torus(p.at(z=0.31), 0.22, 0.075)
    eye = sphere(m.at(top - 0.04, 0.09, 0.55), 0.045)
    buttons = union(sphere(p.at(mid, 0.0, 0.14), 0.05), sphere(p.at(mid - 0.02, 0.0, -0.04), 0.05))
    return Parts(balls, union(nose, scarf), union(hat, eye, buttons))


def table(p: Point, v: Vary) -> Parts:
    """Thick board on four stout legs."""
    x, y, top = 0.82 + 0.06 * v[0], 0.52 + 0.06 * v[1], 0.36 + 0.06 * v[2]
    board = box(p.at(z=top), x, y, 0.08, 0.03)
    f = p.fold4().at(x - 0.15, y - 0.13, 0.0)
    leg = box(f.at(z=(top - 0.6) / 2), 0.09 + 0.015 * v[3], 0.09 + 0.015 * v[3], (top + 0.6) / 2, 0.02)
    shoe = box(f.at(z=-0.53), 0.11 + 0.015 * v[3], 0.11 + 0.015 * v[3], 0.09, 0.02)
    return Parts(union(board, leg), shoe, shoe + 10.0)


def teapot(p: Point, v: Vary) -> Parts:
    """Round pot with a spout in front, a handle behind and a knob on the lid."""
    body = ellipsoid(p.at(z=-0.12), 0.54, 0.54, 0.46)
    spout = capsule(p, (0.4, 0.0, -0.2), (0.72, 0.0, 0.02), 0.13)
    lip = capsule(p, (0.72, 0.0, 0.02), (0.84, 0.0, 0.3 + 0.05 * v[0]), 0.095)
    grip = torus(p.at(-0.54, 0.0, -0.08).along_y(), 0.29 + 0.03 * v[1], 0.085)
    grip = subtract(grip, sphere(p.at(z=-0.12), 0.4))
    lid = cone(p.at(z=0.32), 0.34 + 0.03 * v[2], 0.2, 0.06)
    knob = sphere(p.at(z=0.46), 0.12 + 0.02 * v[3])
    foot = cylinder(p.at(z=-0.55), 0.32, 0.06)
    pot = smooth_union(union(body, grip), smooth_union(spout, lip, 0.05), 0.08)
    return Parts(pot, union(lid, knob, foot), lid + 10.0)


def train(p: Point, v: Vary) -> Parts:
    """Steam engine: boiler, cab, chimney, dome, big wheels."""
    m = p.mirror_y()
    r = 0.28 + 0.03 * v[0]
    boiler = cylinder(p.at(0.26, 0.0, 0.02).along_x(), r, 0.56, 0.04)
    cab = box(p.at(-0.54, 0.0, 0.16), 0.27, 0.36, 0.44 + 0.04 * v[1], 0.03)
    frame = box(p.at(0.05, 0.0, -0.3), 0.86, 0.3, 0.09, 0.02)
    roof = box(p.at(-0.54, 0.0, 0.62 + 0.04 * v[1]), 0.34, 0.42, 0.05, 0.03)
    dome = capsule(p, (0.1, 0.0, 0.2), (0.1, 0.0, 0.36), 0.13)
    chimney = cone(p.at(0.58, 0.0, 0.42), 0.1, 0.19 + 0.02 * v[2], 0.22)
    places = (-0.56, -0.06, 0.44)
    wheels = union(*(cylinder(m.at(x, 0.32, -0.44).along_y(), 0.19, 0.08, 0.02) for x in places))
    front = cylinder(p.at(0.82, 0.0, 0.02).along_x(), 0.2, 0.03)
    panes = box(p.at(-0.54, 0.0, 0.32), 0.16, 0.375, 0.13)
    return Parts(union(boiler, cab, frame, roof), dome, union(chimney, wheels, front, panes))


def tree(p: Point, v: Vary) -> Parts:
    """Fir: three tiers of cones on a trunk."""
    wide = 0.64 + 0.06 * v[0]
    tiers = union(
        cone(p.at(z=-0.25), wide, 0.2, 0.24),
        cone(p.at(z=0.13 + 0.03 * v[1]), 0.78 * wide, 0.12, 0.24),
        cone(p.at(z=0.54 + 0.03 * v[1]), 0.56 * wide, 0.01, 0.3 + 0.03 * v[2]),
    )
    trunk = cylinder(p.at(z=-0.66), 0.15 + 0.03 * v[3], 0.22)
    return Parts(tiers, sphere(p.at(z=0.86), 0.09), trunk)


KINDS: tuple[Kind, ...] = (
    Kind("airplane", airplane),
    Kind("boat", boat),
    Kind("bottle", bottle),
    Kind("bulldozer", bulldozer, 0.86),
    Kind("cactus", cactus),
    Kind("car", car),
    Kind("castle", castle, 0.88),
    Kind("chair", chair),
    Kind("crown", crown),
    Kind("cup", cup),
    Kind("donut", donut),
    Kind("duck", duck),
    Kind("fish", fish),
    Kind("hammer", hammer),
    Kind("house", house),
    Kind("lamp", lamp),
    Kind("mushroom", mushroom),
    Kind("robot", robot),
    Kind("rocket", rocket),
    Kind("snowman", snowman),
    Kind("table", table, 0.9),
    Kind("teapot", teapot),
    Kind("train", train, 0.9),
    Kind("tree", tree),
)
KIND_NAMES: tuple[str, ...] = tuple(kind.name for kind in KINDS)
