"""The procedural world on which the project's own small models are trained."""
