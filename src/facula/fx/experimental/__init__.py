"""Questions to PyTorch's tracer of operators."""
