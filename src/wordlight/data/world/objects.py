"""The twenty-four objects of the world, each a signed distance function made of parts.

World +Z is up and objects face +X; they reach about one unit from the origin. Each takes points and four
proportions in [-1, 1] that vary it, and returns the distance to each of its three materials: `primary`
carries the colour one names, `secondary` another colour, `dark` is for tyres, tracks, eyes and windows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp

from wordlight.data.world.parts import Parts, Vary
from wordlight.data.world.shapes import (
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
from wordlight.data.world.vehicles import airplane, boat, bulldozer, car, rocket, train


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


def bottle(p: Point, v: Vary) -> Parts:
    """Bottle with a label and a cap."""
    r, neck = 0.36 + 0.06 * v[0], 0.13 + 0.02 * v[1]
    body = cylinder(p.at(z=-0.35), r, 0.55, rounding=0.08)
    shoulder = cone(p.at(z=0.34), r - 0.03, neck, 0.2 + 0.03 * v[2])
    pipe = cylinder(p.at(z=0.55), neck, 0.3)
    cap = cylinder(p.at(z=0.84), neck + 0.04, 0.1, rounding=0.02)
    label = cylinder(p.at(z=-0.38 + 0.1 * v[3]), r + 0.015, 0.17)
    return Parts(union(smooth_union(body, shoulder, 0.08), pipe), union(cap, label), cap + 10.0)


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
    leg = box(
        p.fold4().at(half - 0.08, half - 0.08, (seat - 0.85) / 2),
        0.08,
        0.08,
        (seat + 0.85) / 2,
        rounding=0.02,
    )
    board = box(p.at(z=seat), half, half, 0.08, rounding=0.03)
    back = box(p.at(-half + 0.07, 0.0, (seat + top) / 2), 0.07, half, (top - seat) / 2, rounding=0.03)
    cushion = box(p.at(0.05, 0.0, seat + 0.09), half - 0.12, half - 0.08, 0.05, rounding=0.04)
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
    head = box(p.at(0.05, 0.0, z), 0.34, 0.19, 0.19, rounding=0.03)
    face = cylinder(p.at(0.5, 0.0, z).along_x(), 0.25 + 0.03 * v[0], 0.16 + 0.03 * v[1], rounding=0.04)
    claw = capsule(p, (-0.3, 0.0, z + 0.02), (-0.68, 0.0, z - 0.18 + 0.08 * v[2]), 0.12)
    stick = cylinder(p.at(z=-0.1), 0.12 + 0.02 * v[3], 0.62)
    grip = cylinder(p.at(z=-0.62), 0.15 + 0.02 * v[3], 0.26, rounding=0.05)
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
    foot = cylinder(p.at(z=-0.76), 0.34 + 0.04 * v[3], 0.06, rounding=0.03)
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
    head = box(p.at(z=0.5), 0.24, 0.3 + 0.03 * v[0], 0.22 + 0.02 * v[1], rounding=0.05)
    trunk = box(p.at(z=-0.04), 0.26, 0.37 + 0.04 * v[2], 0.29, rounding=0.05)
    arm = box(m.at(0.0, 0.54 + 0.04 * v[2], -0.02), 0.11, 0.1, 0.26 + 0.03 * v[3], rounding=0.05)
    leg = box(m.at(0.0, 0.19, -0.55), 0.14, 0.13, 0.26, rounding=0.03)
    foot = box(m.at(0.06, 0.19, -0.8), 0.23, 0.16, 0.09, rounding=0.04)
    hand = sphere(m.at(0.0, 0.54 + 0.04 * v[2], -0.34), 0.12)
    neck = cylinder(p.at(z=0.27), 0.12, 0.06)
    aerial = union(sphere(p.at(z=0.88), 0.08), cylinder(p.at(z=0.77), 0.035, 0.08))
    panel = box(p.at(0.26, 0.0, 0.0), 0.02, 0.2, 0.14)
    eye = cylinder(m.at(0.24, 0.13, 0.55).along_x(), 0.075, 0.03)
    mouth = box(p.at(0.24, 0.0, 0.38), 0.02, 0.15, 0.035)
    return Parts(union(head, trunk, arm, leg), union(hand, aerial, panel), union(foot, neck, eye, mouth))


def snowman(p: Point, v: Vary) -> Parts:
    """Three balls, a hat, a nose, a scarf and buttons."""
    m = p.mirror_y()
    low, mid, top = 0.43 + 0.03 * v[0], 0.32 + 0.02 * v[1], 0.23 + 0.02 * v[2]
    balls = union(sphere(p.at(z=-0.5), low), sphere(p.at(z=0.08), mid), sphere(p.at(z=0.48), top))
    hat = union(
        cylinder(p.at(z=0.66), 0.29, 0.035), cylinder(p.at(z=0.8), 0.18, 0.14 + 0.03 * v[3], rounding=0.02)
    )
    nose = cone(p.at(top + 0.1, 0.0, 0.48).along_x(), 0.07, 0.01, 0.13)
    scarf = torus(p.at(z=0.31), 0.22, 0.075)
    eye = sphere(m.at(top - 0.04, 0.09, 0.55), 0.045)
    buttons = union(sphere(p.at(mid, 0.0, 0.14), 0.05), sphere(p.at(mid - 0.02, 0.0, -0.04), 0.05))
    return Parts(balls, union(nose, scarf), union(hat, eye, buttons))


def table(p: Point, v: Vary) -> Parts:
    """Thick board on four stout legs."""
    x, y, top = 0.82 + 0.06 * v[0], 0.52 + 0.06 * v[1], 0.36 + 0.06 * v[2]
    board = box(p.at(z=top), x, y, 0.08, rounding=0.03)
    f = p.fold4().at(x - 0.15, y - 0.13, 0.0)
    leg = box(
        f.at(z=(top - 0.6) / 2), 0.09 + 0.015 * v[3], 0.09 + 0.015 * v[3], (top + 0.6) / 2, rounding=0.02
    )
    shoe = box(f.at(z=-0.53), 0.11 + 0.015 * v[3], 0.11 + 0.015 * v[3], 0.09, rounding=0.02)
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
