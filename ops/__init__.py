"""The operator table: one row per operator, read by the build, the tests and the docs."""
