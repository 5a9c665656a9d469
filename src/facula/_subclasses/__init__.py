"""PyTorch's place for tensors that stand for others; see :mod:`facula._subclasses.fake_tensor`."""
