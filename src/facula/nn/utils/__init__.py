"""What is done to modules, parameters and sequences."""

from facula.nn.utils import rnn

__all__ = ["rnn"]
