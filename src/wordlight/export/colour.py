"""sRGB and linear light, and a colour ramp for scalars; on the host, in NumPy."""

import numpy as np
from jaxtyping import Float

# Ottosson 2020, A perceptual color space for image processing; transposed, for row vectors.
_OKLAB_TO_LMS = np.array(
    [
        [1.0, 1.0, 1.0],
        [0.3963377774, -0.1055613458, -0.0894841775],
        [0.2158037573, -0.0638541728, -1.2914855480],
    ]
)
_LMS_TO_LINEAR = np.array(
    [
        [4.0767416621, -1.2684380046, -0.0041960863],
        [-3.3077115913, 2.6097574011, -0.7034186147],
        [0.2309699292, -0.3413193965, 1.7076147010],
    ]
)


def lightness_ramp(value: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape 3"]:
    """Map [0, 1] to sRGB colours whose lightness grows evenly, from dark blue over magenta to light yellow.

    A path in Oklab (Ottosson 2020, A perceptual color space for image processing): lightness linear in
    `value`, hue turning at constant chroma, so equal steps of depth look equal.
    """
    lightness = 0.22 + 0.72 * value
    hue = np.deg2rad(-90.0 + 195.0 * value)
    chroma = 0.05 + 0.4 * value * (1.0 - value) + 0.05 * value
    oklab = np.stack([lightness, chroma * np.cos(hue), chroma * np.sin(hue)], axis=-1)
    return encode_srgb(np.clip((oklab @ _OKLAB_TO_LMS) ** 3 @ _LMS_TO_LINEAR, 0.0, 1.0))


def encode_srgb(linear: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return the sRGB values of linear light in [0, 1] (IEC 61966-2-1)."""
    return np.where(
        linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 0.0031308) ** (1 / 2.4) - 0.055
    )


def decode_srgb(encoded: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return the linear light of sRGB values in [0, 1], the inverse of `encode_srgb`."""
    return np.where(
        encoded <= 0.04045, encoded / 12.92, ((np.maximum(encoded, 0.04045) + 0.055) / 1.055) ** 2.4
    )
