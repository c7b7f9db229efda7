"""Small breakages of the product: what the campaigns must find."""
