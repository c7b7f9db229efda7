"""Searches: each makes plans of a model, or of a study of it, and keeps the best."""
