"""Operators that programs define: schemas, registrations, and how a call finds its kernel."""
