"""The parts of ``facula.utils.benchmark``."""
