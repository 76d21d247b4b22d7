"""The objects that drive, swim or fly; see `objects` for what each function takes and returns."""

import jax.numpy as jnp

from wordlight.data.world.parts import Parts, Vary
from wordlight.data.world.shapes import (
    Point,
    box,
    capsule,
    cone,
    cylinder,
    ellipsoid,
    intersection,
    length,
    sphere,
    subtract,
    union,
)


def airplane(p: Point, v: Vary) -> Parts:
    """Airliner: fuselage, swept wings, tail; engines under the wings."""
    r, span = 0.19 + 0.03 * v[0], 0.8 + 0.1 * v[1]
    m = p.mirror_y()
    body = capsule(p, (-0.7, 0.0, 0.0), (0.66, 0.0, 0.0), r)
    wing = box(m.at(0.02 - 0.1, span / 2, -0.03).yaw(0.2), 0.2 + 0.04 * v[2], span / 2, 0.05, rounding=0.04)
    fin = box(p.at(-0.72, 0.0, 0.3).pitch(-0.4), 0.14, 0.045, 0.25 + 0.04 * v[3], rounding=0.04)
    plane = box(m.at(-0.74, 0.18, 0.04).yaw(0.2), 0.12, 0.2, 0.04, rounding=0.03)
    engine = capsule(m, (-0.02, 0.38, -0.15), (0.24, 0.38, -0.15), 0.085)
    glass = box(p.at(0.66, 0.0, 0.11), 0.1, 0.15, 0.045, rounding=0.04)
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


def bulldozer(p: Point, v: Vary) -> Parts:
    """Tracked machine with a wide blade in front and a cab at the back."""
    m = p.mirror_y()
    track = box(m.at(-0.12, 0.36, -0.42), 0.6 + 0.05 * v[0], 0.15, 0.22, rounding=0.2)
    body = box(p.at(0.0, 0.0, -0.14), 0.5, 0.27, 0.26, rounding=0.04)
    hood = box(p.at(0.2, 0.0, 0.05), 0.33, 0.22, 0.18 + 0.03 * v[1], rounding=0.05)
    cab = box(p.at(-0.32, 0.0, 0.26), 0.25, 0.27, 0.36 + 0.05 * v[2], rounding=0.04)
    roof = box(p.at(-0.32, 0.0, 0.62 + 0.05 * v[2]), 0.3, 0.32, 0.05, rounding=0.03)
    tall, wide = 0.28 + 0.04 * v[3], 0.58 + 0.05 * v[0]
    curve = cylinder(p.at(1.15, 0.0, -0.3).along_y(), 0.42, 1.0)
    blade = subtract(box(p.at(0.76, 0.0, -0.34), 0.13, wide, tall, rounding=0.02), curve)
    arm = capsule(m, (-0.05, 0.53, -0.4), (0.68, 0.5, -0.45), 0.055)
    side = box(p.at(-0.3, 0.0, 0.34), 0.17, 0.285, 0.14)
    front = box(p.at(-0.32, 0.0, 0.34), 0.265, 0.19, 0.14)
    pipe = cylinder(p.at(0.28, 0.1, 0.32), 0.05, 0.18)
    return Parts(union(body, hood, cab, roof, blade), arm, union(track, side, front, pipe))


def car(p: Point, v: Vary) -> Parts:
    """Saloon with four wheels; dark windows."""
    m = p.mirror_y()
    body = box(p.at(0.0, 0.0, -0.14), 0.85, 0.42, 0.2, rounding=0.1)
    long, tall = 0.46 + 0.06 * v[0], 0.25 + 0.05 * v[1]
    cabin = box(p.at(-0.1 + 0.06 * v[2], 0.0, 0.16), long, 0.37, tall, rounding=0.12)
    glass = p.at(-0.1 + 0.06 * v[2], 0.0, 0.21)
    ends = box(glass, long + 0.015, 0.27, tall - 0.16, rounding=0.03)
    sides = box(glass, long - 0.13, 0.385, tall - 0.15, rounding=0.03)
    wheels = cylinder(p.fold4().at(0.52, 0.38, -0.33).along_y(), 0.2 + 0.03 * v[3], 0.09, rounding=0.03)
    hub = cylinder(p.fold4().at(0.52, 0.46, -0.33).along_y(), 0.1, 0.03)
    lights = sphere(m.at(0.81, 0.27, -0.1), 0.08)
    return Parts(union(body, cabin), union(hub, lights), union(ends, sides, wheels))


def rocket(p: Point, v: Vary) -> Parts:
    """Upright rocket: pointed nose, round windows, four fins, a nozzle."""
    r = 0.29 + 0.04 * v[0]
    body = ellipsoid(p.at(z=-0.02), r, r, 0.98)
    hull = intersection(body, -0.66 - p.z, p.z - 0.42)
    nose = intersection(body - 0.005, 0.42 - p.z)
    f = p.fold8().at(r + 0.1, 0.0, -0.58)
    fin = box(f.pitch(-0.35), 0.2 + 0.03 * v[1], 0.06, 0.26 + 0.03 * v[2], rounding=0.03)
    nozzle = cone(p.at(z=-0.74), 0.22, 0.14, 0.1)
    band = cylinder(p.at(z=-0.5), 0.94 * r, 0.05)
    window = sphere(p.mirror_x().at(0.85 * r, 0.0, 0.12), 0.13 + 0.02 * v[3])
    return Parts(union(hull, fin), union(nose, band), union(nozzle, window))


def train(p: Point, v: Vary) -> Parts:
    """Steam engine: boiler, cab, chimney, dome, big wheels."""
    m = p.mirror_y()
    r = 0.28 + 0.03 * v[0]
    boiler = cylinder(p.at(0.26, 0.0, 0.02).along_x(), r, 0.56, rounding=0.04)
    cab = box(p.at(-0.54, 0.0, 0.16), 0.27, 0.36, 0.44 + 0.04 * v[1], rounding=0.03)
    frame = box(p.at(0.05, 0.0, -0.3), 0.86, 0.3, 0.09, rounding=0.02)
    roof = box(p.at(-0.54, 0.0, 0.62 + 0.04 * v[1]), 0.34, 0.42, 0.05, rounding=0.03)
    dome = capsule(p, (0.1, 0.0, 0.2), (0.1, 0.0, 0.36), 0.13)
    chimney = cone(p.at(0.58, 0.0, 0.42), 0.1, 0.19 + 0.02 * v[2], 0.22)
    places = (-0.56, -0.06, 0.44)
    wheels = union(*(cylinder(m.at(x, 0.32, -0.44).along_y(), 0.19, 0.08, rounding=0.02) for x in places))
    front = cylinder(p.at(0.82, 0.0, 0.02).along_x(), 0.2, 0.03)
    panes = box(p.at(-0.54, 0.0, 0.32), 0.16, 0.375, 0.13)
    return Parts(union(boiler, cab, frame, roof), dome, union(chimney, wheels, front, panes))
