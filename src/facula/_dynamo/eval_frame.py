"""Where libraries look for the class of compiled modules."""

from facula.compiler import OptimizedModule

__all__ = ["OptimizedModule"]
