"""Writes what TensorBoard shows; needs neither TensorBoard nor protobuf.

Example::

    >>> import tempfile
    >>> from facula.utils.tensorboard import SummaryWriter
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
"""

from facula.utils.tensorboard.record_writer import RecordWriter
from facula.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
