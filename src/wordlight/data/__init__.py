"""Where scenes come from: the embedded world."""
