"""This folder holds what hardware and software agree on, each fact in one table; nothing in it imports Amaranth."""
