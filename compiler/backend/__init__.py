"""From a quantised graph to an image: lower, place, tile, generate, schedule and link."""
