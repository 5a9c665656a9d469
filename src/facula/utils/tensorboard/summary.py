"""The Summary messages of TensorBoard, as bytes."""

from __future__ import annotations

import io
import json
import wave
from typing import Any

import numpy

from facula.utils.tensorboard import wire
from facula.utils.tensorboard.images import as_array, gif, grid, png, to_bytes, to_hwc

_FLOAT, _DOUBLE, _INT32, _UINT8, _STRING = 1, 2, 3, 4, 7  # TensorFlow's dtypes
_DTYPES = {
    "float32": _FLOAT,
    "float64": _DOUBLE,
    "int32": _INT32,
    "uint8": _UINT8,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}


def _value(tag: str, content: bytes) -> bytes:
    return wire.data(1, wire.data(1, tag) + content)


def _plugin(name: str, content: bytes = b"") -> bytes:
    plugin = wire.data(1, name) + (wire.data(2, content) if content else b"")
    return wire.data(9, wire.data(1, plugin))


def _shape(sizes: Any) -> bytes:
    return wire.data(2, b"".join(wire.data(2, wire.integer(1, n)) for n in sizes))


def _tensor(dtype: int, sizes: Any, content: bytes) -> bytes:
    return wire.data(8, wire.integer(1, dtype) + _shape(sizes) + content)


def _number(x: Any) -> float:
    array = as_array(x)
    if array.size != 1:
        raise AssertionError(f"scalar should be 0D, got {array.size} elements")
    return float(array.reshape(()))


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> bytes:
    """One number. Only the new style, a tensor, can hold it in double precision."""
    number = _number(tensor)
    if not new_style:
        return _value(name, wire.float32(2, number))
    if double_precision:
        content = _tensor(_DOUBLE, (), wire.doubles(6, [number]))
    else:
        content = _tensor(_FLOAT, (), wire.floats(5, [number]))
    return _value(name, content + _plugin("scalars"))


def tensor(tag: str, value: Any) -> bytes:
    """An array of numbers, in the dtype that they have."""
    array = as_array(value)
    if array.dtype.name not in _DTYPES:
        raise ValueError(f"add_tensor() cannot write numbers of the dtype {array.dtype.name}")
    content = wire.data(4, array.astype(array.dtype.newbyteorder("<")).tobytes())
    return _value(tag, _tensor(_DTYPES[array.dtype.name], array.shape, content) + _plugin("tensor"))


def tensorflow_bins() -> Any:
    """Limits that grow by a tenth, from 1e-12 to 1e20, on both sides of zero."""
    # Step by step, so that they are the same bits as in the files of others.
    positive = numpy.cumprod(numpy.r_[1e-12, numpy.full(773, 1.1)])
    positive = positive[positive < 1e20]
    return numpy.concatenate([-positive[::-1], [0.0], positive])


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> bytes:
    """How often numbers lie between limits."""
    array = as_array(values).astype(numpy.float64).reshape(-1)
    array = array[numpy.isfinite(array)]
    if array.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = numpy.histogram(array, tensorflow_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = numpy.add.reduceat(counts, numpy.arange(0, len(counts), step))
        limits = numpy.append(limits[:-1:step], limits[-1])
    used = numpy.flatnonzero(counts)
    if used.size == 0:
        raise ValueError("no number lies between the limits of the histogram")
    # The first bucket's lower limit is that of an empty bucket before it.
    first, last = used[0], used[-1]
    counts = [0, *counts[first : last + 1].tolist()]
    limits = limits[first : last + 2].tolist()
    return _value(name, histogram_message(array, limits, counts))


def histogram_message(array: Any, limits: Any, counts: Any) -> bytes:
    return histogram_of(
        float(array.min()), float(array.max()), array.size, float(array.sum()),
        float(array.dot(array)), limits, counts,
    )  # fmt: skip


def histogram_of(
    smallest: float,
    largest: float,
    count: int,
    total: float,
    squares: float,
    limits: Any,
    counts: Any,
) -> bytes:
    """A histogram of which the parts are known."""
    return wire.data(
        5,
        wire.double(1, smallest)
        + wire.double(2, largest)
        + wire.double(3, count)
        + wire.double(4, total)
        + wire.double(5, squares)
        + wire.doubles(6, limits)
        + wire.doubles(7, counts),
    )


def histogram_raw(tag: str, *parts: Any) -> bytes:
    return _value(tag, histogram_of(*parts))


def image(tag: str, picture: Any, dataformats: str) -> bytes:
    """A picture, or a grid of them."""
    pixels = to_bytes(to_hwc(as_array(picture), dataformats))
    height, width, channels = pixels.shape
    return _value(
        tag,
        wire.data(
            4,
            wire.integer(1, height)
            + wire.integer(2, width)
            + wire.integer(3, channels)
            + wire.data(4, png(pixels)),
        ),
    )


def image_boxes(
    tag: str, picture: Any, boxes: Any, rescale: float, dataformats: str, labels: Any
) -> bytes:
    """A picture with frames."""
    from PIL import Image, ImageDraw

    drawn = Image.fromarray(to_bytes(to_hwc(as_array(picture), dataformats))).convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for i, box in enumerate(as_array(boxes).reshape(-1, 4).tolist()):
        pen.rectangle(box, outline="red", width=2)
        if labels is not None:
            pen.text((box[0] + 2, box[1] + 2), str(labels[i]), fill="red")
    if rescale != 1:
        drawn = drawn.resize([max(1, round(side * rescale)) for side in drawn.size])
    return image(tag, numpy.asarray(drawn), "HWC")


_VERTEX, _FACE, _COLOR = 1, 2, 3  # of MeshPluginData


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Any) -> bytes:
    """Vertices of meshes, with their colours and faces where they are given."""
    parts = [(_VERTEX, "VERTEX", vertices, _FLOAT, "<f4")]
    if faces is not None:
        parts.append((_FACE, "FACE", faces, _INT32, "<i4"))
    if colors is not None:
        parts.append((_COLOR, "COLOR", colors, _UINT8, "u1"))
    components = sum(1 << part[0] for part in parts)
    content = b""
    for kind, name, values, dtype, form in parts:
        array = as_array(values)
        if array.ndim != 3 or array.shape[2] != 3:
            raise ValueError(f"{name.lower()} of a mesh has the shape (B, N, 3), got {array.shape}")
        data = wire.integer(1, 0) + wire.data(2, tag) + wire.integer(3, kind)
        data += wire.data(5, json.dumps(config or {}, sort_keys=True))
        data += wire.data(6, b"".join(map(wire.varint, array.shape)))
        data += wire.integer(7, components)
        numbers = wire.data(4, array.astype(form).tobytes())
        content += _value(
            f"{tag}_{name}", _tensor(dtype, array.shape, numbers) + _plugin("mesh", data)
        )
    return content


def video(tag: str, frames: Any, fps: float) -> bytes:
    """Videos (N, T, C, H, W) side by side, as an animated picture."""
    array = as_array(frames)
    if array.ndim != 5 or array.shape[2] not in (1, 3):
        raise ValueError(
            f"a video has the shape (N, T, C, H, W) with 1 or 3 channels, got {array.shape}"
        )
    pixels = to_bytes(array).transpose(1, 0, 3, 4, 2)  # (T, N, H, W, C)
    pictures = numpy.stack([grid(step) for step in pixels])
    pictures = numpy.broadcast_to(pictures, (*pictures.shape[:3], 3))
    _, height, width, channels = pictures.shape
    return _value(
        tag,
        wire.data(
            4,
            wire.integer(1, height)
            + wire.integer(2, width)
            + wire.integer(3, channels)
            + wire.data(4, gif(pictures, fps)),
        ),
    )


def audio(tag: str, sound: Any, sample_rate: int) -> bytes:
    """Sound: numbers from -1 to 1, (1, length) or (length,)."""
    array = as_array(sound)
    if max(array.shape, default=0) != array.size:
        raise AssertionError(f"add_audio() writes one channel, got the shape {array.shape}")
    samples = array.astype(numpy.float64).reshape(-1)
    coded = (numpy.clip(samples, -1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(sample_rate)
        wav.writeframes(coded.tobytes())
    return _value(
        tag,
        wire.data(
            6,
            wire.float32(1, sample_rate)
            + wire.integer(2, 1)
            + wire.integer(3, len(coded))
            + wire.data(4, file.getvalue())
            + wire.data(5, "audio/wav"),
        ),
    )


def text(tag: str, content: str) -> bytes:
    """A text, which is shown as Markdown."""
    tensor_part = _tensor(_STRING, (1,), wire.data(8, content))
    return _value(f"{tag}/text_summary", tensor_part + _plugin("text", wire.integer(1, 0)))


_MOST_THRESHOLDS = 127  # TensorBoard's limit


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int, weights: Any) -> bytes:
    """Precision against recall: labels 0 or 1, predictions from 0 to 1."""
    labels = as_array(labels).reshape(-1).astype(numpy.float64)
    predictions = as_array(predictions).reshape(-1).astype(numpy.float64)
    weights = 1.0 if weights is None else as_array(weights).reshape(-1)
    num_thresholds = min(num_thresholds, _MOST_THRESHOLDS)
    buckets = numpy.clip((predictions * (num_thresholds - 1)).astype(int), 0, num_thresholds - 1)

    def at_least(chosen: Any) -> Any:  # how much of it lies in a bucket or above
        counts = numpy.bincount(buckets, chosen * numpy.ones_like(labels), num_thresholds)
        return counts[::-1].cumsum()[::-1]

    true_positive, false_positive = at_least(labels * weights), at_least((1 - labels) * weights)
    true_negative = false_positive[0] - false_positive
    false_negative = true_positive[0] - true_positive
    tiny = 1e-7
    precision = true_positive / numpy.maximum(tiny, true_positive + false_positive)
    recall = true_positive / numpy.maximum(tiny, true_positive + false_negative)
    rows = [true_positive, false_positive, true_negative, false_negative, precision, recall]
    return pr_curve_raw(tag, *rows, num_thresholds)


def pr_curve_raw(tag: str, *rows_and_thresholds: Any) -> bytes:
    *rows, num_thresholds = rows_and_thresholds
    num_thresholds = min(num_thresholds, _MOST_THRESHOLDS)
    table = numpy.stack([as_array(r) for r in rows]).astype("<f4")
    content = _tensor(_FLOAT, table.shape, wire.data(4, table.tobytes()))
    settings = wire.integer(1, 0) + wire.integer(2, num_thresholds)
    return _value(tag, content + _plugin("pr_curves", settings))


def custom_scalars(layout: dict[str, dict[str, list[Any]]]) -> bytes:
    """Which curves share a diagram: category -> title -> ["Multiline" or "Margin", tags]."""
    categories = b""
    for category, charts in layout.items():
        content = wire.data(1, category)
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"a margin chart has 3 tags, got {len(tags)}")
                series = b"".join(wire.data(i, tag) for i, tag in enumerate(tags, 1))
                chart = wire.data(3, wire.data(1, series))
            else:
                chart = wire.data(2, b"".join(wire.data(1, tag) for tag in tags))
            content += wire.data(2, wire.data(1, title) + chart)
        categories += wire.data(2, content)
    tensor_part = _tensor(_STRING, (), wire.data(8, categories))
    return _value("custom_scalars__config__", tensor_part + _plugin("custom_scalars"))


# ---- hyperparameters

_TEXT, _BOOL, _NUMBER = 1, 2, 3


def _kind(value: Any) -> tuple[int, bytes]:
    """The type of a hyperparameter and its google.protobuf.Value."""
    if isinstance(value, bool):
        return _BOOL, wire.integer(4, value)
    if isinstance(value, str):
        return _TEXT, wire.data(3, value)
    if isinstance(value, (int, float)) or getattr(value, "ndim", None) == 0:
        return _NUMBER, wire.double(2, _number(value))
    raise ValueError(
        f"value should be one of int, float, str, bool, or a tensor of one element, got "
        f"{type(value).__name__}"
    )


def hparams(
    hparam_dict: dict[str, Any] | None = None,
    metric_dict: dict[str, Any] | None = None,
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> list[bytes]:
    """Three summaries: the experiment, the begin and the end of one session of it."""
    if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionaries")
    infos, values = b"", b""
    for name, value in hparam_dict.items():
        if value is None:
            continue
        kind, coded = _kind(value)
        domain = b""
        if hparam_domain_discrete and name in hparam_domain_discrete:
            choices = hparam_domain_discrete[name]
            listed = b"".join(wire.data(1, _kind(v)[1]) for v in choices)
            domain = wire.data(5, listed)
        infos += wire.data(4, wire.data(1, name) + wire.integer(4, kind) + domain)
        values += wire.data(1, wire.data(1, name) + wire.data(2, coded))
    metrics = b"".join(wire.data(5, wire.data(1, wire.data(2, name))) for name in metric_dict)
    parts = {
        "experiment": wire.data(2, infos + metrics),
        "session_start_info": wire.data(3, values),
        "session_end_info": wire.data(4, wire.integer(1, 1)),
    }
    return [
        _value(f"_hparams_/{name}", _plugin("hparams", wire.integer(1, 0) + part))
        for name, part in parts.items()
    ]
