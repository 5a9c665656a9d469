"""Pictures: what users give, as PNG."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

import numpy

import facula


def as_array(x: Any) -> Any:
    """A NumPy array of a tensor, array or number."""
    if isinstance(x, facula.Tensor):
        x = x.detach().cpu()
        return x.to(facula.float32).numpy() if x.dtype is facula.bfloat16 else x.numpy()
    array = numpy.asarray(x)
    if array.dtype == object:
        raise NotImplementedError(f"Got {type(x)}, but numpy array or facula tensor are expected")
    return array


def to_hwc(image: Any, dataformats: str) -> Any:
    """One picture with the dimensions (height, width, channels); several become a grid, and
    grey becomes three colours.

    Args:
        image: an array.
        dataformats: what its dimensions are, such as "CHW" or "NHWC".
    """
    formats = dataformats.upper()
    if len(set(formats)) != len(formats):
        raise AssertionError(f"dataformats must name each dimension once, got {dataformats!r}")
    if not set(formats) <= set("NCHW"):
        raise ValueError(f"dataformats must name dimensions out of NCHW, got {dataformats!r}")
    if image.ndim != len(formats):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {image.shape}, "
            f"input_format: {dataformats}"
        )
    for missing in "HWC":
        if missing not in formats:
            if missing != "C":
                raise ValueError(f"dataformats must contain H and W, got {dataformats!r}")
            image, formats = image[..., None], formats + "C"
    if "N" in formats:
        image = grid(image.transpose([formats.index(d) for d in "NHWC"]))
    else:
        image = image.transpose([formats.index(d) for d in "HWC"])
    return image.repeat(3, axis=2) if image.shape[2] == 1 else image


def grid(images: Any, columns: int = 8) -> Any:
    """Pictures (N, H, W, C) side by side, in rows of eight."""
    n, height, width, channels = images.shape
    columns = min(n, columns)
    rows = math.ceil(n / columns)
    out = numpy.zeros((rows * height, columns * width, channels), images.dtype)
    for i in range(n):
        y, x = divmod(i, columns)
        out[y * height : (y + 1) * height, x * width : (x + 1) * width] = images[i]
    return out


def to_bytes(image: Any) -> Any:
    """Numbers from 0 to 1 as 0 to 255; uint8 as it is."""
    if image.dtype == numpy.uint8:
        return image
    scaled = numpy.nan_to_num(image.astype(numpy.float64)) * 255
    return numpy.clip(scaled, 0, 255).astype(numpy.uint8)


_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> PNG's type of colour


def png(image: Any) -> bytes:
    """The PNG file of a uint8 array (height, width, channels)."""
    height, width, channels = image.shape
    if channels not in _COLOURS:
        raise ValueError(f"a picture has 1 to 4 channels, got {channels}")
    rows = numpy.zeros((height, 1 + width * channels), numpy.uint8)  # each begins with a filter
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, content in (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(rows.tobytes())),
        (b"IEND", b""),
    ):
        parts.append(struct.pack(">I", len(content)) + kind + content)
        parts.append(struct.pack(">I", zlib.crc32(kind + content)))
    return b"".join(parts)


def gif(frames: Any, fps: float) -> bytes:
    """The animated GIF of uint8 pictures (T, H, W, 3), in 256 colours and without compression."""
    _, height, width, _ = frames.shape
    # A colour is 3 bits of red, 3 of green and 2 of blue.
    levels = numpy.arange(256)
    palette = numpy.stack(
        [(levels >> 5) * 255 // 7, (levels >> 2 & 7) * 255 // 7, (levels & 3) * 255 // 3], 1
    ).astype(numpy.uint8)
    red, green, blue = (frames[..., i].astype(numpy.uint16) for i in range(3))
    colours = ((red * 7 + 127) // 255 << 5) | ((green * 7 + 127) // 255 << 2)
    colours |= (blue * 3 + 127) // 255
    delay = max(1, round(100 / fps))
    parts = [
        b"GIF89a",
        struct.pack("<HHBBB", width, height, 0xF7, 0, 0),
        palette.tobytes(),
        b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00",  # begin again at the end
    ]
    for frame in colours:
        parts.append(b"!\xf9\x04\x00" + struct.pack("<H", delay) + b"\x00\x00")
        parts.append(b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x08")
        coded = _lzw_literals(frame.reshape(-1))
        for at in range(0, len(coded), 255):
            block = coded[at : at + 255]
            parts.append(bytes([len(block)]) + block)
        parts.append(b"\x00")
    return b"".join([*parts, b";"])


def _lzw_literals(pixels: Any) -> bytes:
    """Codes of nine bits; the table is cleared before it would need ten."""
    clear, end, run = 256, 257, 250
    codes = numpy.full((-(-len(pixels) // run), run + 1), clear, numpy.uint16)
    filled = numpy.full(len(codes) * run, clear, numpy.uint16)
    filled[: len(pixels)] = pixels
    codes[:, 1:] = filled.reshape(-1, run)
    used = len(codes) * (run + 1) - (len(filled) - len(pixels))
    stream = numpy.append(codes.reshape(-1)[:used], end)
    bits = (stream[:, None] >> numpy.arange(9)) & 1
    return numpy.packbits(bits.astype(numpy.uint8).reshape(-1), bitorder="little").tobytes()


def figure_to_hwc(figure: Any) -> Any:
    """The picture of a Matplotlib figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return numpy.asarray(canvas.buffer_rgba())[..., :3].copy()
