"""Optimising: models on the embedded world, and objects for a prompt."""
