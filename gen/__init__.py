"""The build-time generator: reads the rows of ``ops/`` and writes C++, stubs and docs.

Standard library only. ``python -m gen --out DIR`` writes a file only when its text changed, so
touching one row rebuilds one shard.
"""
