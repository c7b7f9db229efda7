"""Models in device memory, and their jobs on the queues."""
