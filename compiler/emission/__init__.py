"""Makes code of what a plan says: jobs by kernels, cancellation points, objects, and the image that links them."""
