"""The linker: jobs and their weights become one image with fixed addresses."""
