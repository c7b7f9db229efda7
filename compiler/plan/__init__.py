"""Decides about a model before there is code: what a plan is, and the rooms that fill one."""
