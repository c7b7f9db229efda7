"""This folder holds models in device memory, and their jobs on the queues."""
