"""The older name of downloads from :mod:`facula.hub`."""

from facula.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
