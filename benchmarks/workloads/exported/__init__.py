"""Networks as PyTorch exports them, each with its published sizes."""
