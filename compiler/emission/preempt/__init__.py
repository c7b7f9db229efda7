"""Cancellation points: where they stand, what is live there, and what brings it back."""
