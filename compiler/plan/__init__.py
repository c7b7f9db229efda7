"""What is decided before anything is emitted."""
