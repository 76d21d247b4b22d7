"""What an object is made of: three materials, and four proportions that vary it."""

from typing import NamedTuple

from jaxtyping import Array, Float

from wordlight.data.world.shapes import Distance, union


class Parts(NamedTuple):
    """Signed distances to the surfaces of the three materials, `[n]` each, in object units."""

    primary: Distance
    secondary: Distance
    dark: Distance

    def distance(self) -> Distance:
        """Return the distance to the whole object."""
        return union(*self)


Vary = tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""], Float[Array, ""]]
