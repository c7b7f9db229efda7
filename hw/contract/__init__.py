"""What hardware and software agree on, each fact in one table: nothing in this folder imports Amaranth."""
