"""The comparison with the reference programs; it needs them installed, and the tests do not."""
