"""The parts of ``facula.serialization``: names, picklers, and the two file formats."""
