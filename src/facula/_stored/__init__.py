"""Dtypes that memory can have but operators do not compute with, and quantized tensors."""
