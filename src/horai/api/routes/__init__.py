"""The routes of the kernel, one module per resource."""
