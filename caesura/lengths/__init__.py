"""This folder serves models with a dynamic dimension: one model for the user, a kernel for each length."""
