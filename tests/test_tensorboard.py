"""Event files: read back by a reader that stands here, and by TensorBoard where it is installed."""

import os
import struct
import zlib

import numpy
import pytest

import facula
from facula.utils.tensorboard import SummaryWriter, summary
from facula.utils.tensorboard.record_writer import masked_checksum


def fields(data):
    """The fields of a protocol buffer message: number -> list of values."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            n = varint()
            value, at = data[at : at + n], at + n
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder):
    out = []
    for name in sorted(os.listdir(folder)):
        if "tfevents" not in name:
            continue
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        at = 0
        while at < len(content):
            (n,) = struct.unpack_from("<Q", content, at)
            length, data = content[at : at + 8], content[at + 12 : at + 12 + n]
            assert struct.unpack_from("<I", content, at + 8)[0] == masked_checksum(length)
            assert struct.unpack_from("<I", content, at + 12 + n)[0] == masked_checksum(data)
            out.append(fields(data))
            at += 16 + n
    return out


def values(folder):
    """(step, tag, fields of the value)"""
    out = []
    for event in events(folder):
        for message in event.get(5, []):
            for value in fields(message)[1]:
                value = fields(value)
                out.append((event.get(2, [None])[0], value[1][0].decode(), value))
    return out


def test_checksums_are_castagnolis():
    from facula import _C

    assert _C._crc32c(b"") == 0
    assert _C._crc32c(b"123456789") == 0xE3069283
    assert _C._crc32c(bytes(32)) == 0x8A9136AA
    assert _C._crc32c(bytes(range(32))) == 0x46DD794E


def test_scalars_have_tag_step_value_and_time(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 3, walltime=12.5)
        writer.add_scalar("loss", facula.tensor([0.25]), 4)
        writer.add_scalar("big", 1e300, 5, new_style=True, double_precision=True)
        writer.add_scalar("new", 1.5, 6, new_style=True)
        writer.add_scalar("huge", 1e300, 7, new_style=True)
        writer.add_scalar("plain", 1.5, 8, double_precision=True)
        with pytest.raises(AssertionError, match="0D"):
            writer.add_scalar("bad", facula.ones(2))
        with pytest.raises(NotImplementedError, match="NoneType"):
            writer.add_scalar("bad", None)
    first, second, big, new, huge, plain = values(tmp_path)
    assert first[:2] == (3, "loss") and first[2][2] == [0.5] and second[2][2] == [0.25]
    all_events = events(tmp_path)
    assert all_events[0][3] == [b"brain.Event:2"] and all_events[1][1] == [12.5]
    assert fields(big[2][8][0])[6] == [struct.pack("<d", 1e300)]
    assert fields(new[2][8][0])[5] == [struct.pack("<f", 1.5)]
    assert fields(huge[2][8][0])[5] == [struct.pack("<f", float("inf"))]
    assert plain[2][2] == [1.5]  # a reader of curves finds it


def test_groups_of_scalars_have_folders_of_their_own(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/loss", {"train": 1, "test": 2}, 7)
    assert values(tmp_path / "run_loss_train")[0][:2] == (7, "run/loss")
    assert values(tmp_path / "run_loss_test")[0][2][2] == [2.0]


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 5])
def test_histograms_count_every_number(tmp_path, bins):
    data = facula.linspace(-3, 5, 101)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", data, 1, bins=bins)
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("h", facula.tensor([float("nan")]))
    ((_, _, value),) = values(tmp_path)
    h = fields(value[5][0])
    assert h[1] == [-3.0] and h[2] == [5.0] and h[3] == [101.0]
    assert h[4][0] == pytest.approx(101) and h[5][0] == pytest.approx(float((data**2).sum()), 1e-4)
    limits, counts = (numpy.frombuffer(h[i][0], "<f8") for i in (6, 7))
    assert len(limits) == len(counts) and counts.sum() == 101 and (numpy.diff(limits) > 0).all()
    assert limits[0] <= -3 and limits[-1] >= 5


def unpng(data):
    """The pixels of a PNG without filters."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        n, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + n]
        assert struct.unpack_from(">I", data, at + 8 + n)[0] == zlib.crc32(kind + content)
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack_from(">IIBB", content)
        elif kind == b"IDAT":
            packed += content
        at += 12 + n
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    rows = numpy.frombuffer(zlib.decompress(packed), numpy.uint8).reshape(height, -1)
    return rows[:, 1:].reshape(height, width, channels)


def picture(value):
    image = fields(value[4][0])
    pixels = unpng(image[4][0])
    assert [image[1][0], image[2][0], image[3][0]] == list(pixels.shape)
    return pixels


def test_pictures_of_every_layout(tmp_path):
    image = (facula.arange(24) * 10).to(facula.uint8).view(2, 4, 3)  # (H, W, C)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("a", image, dataformats="HWC")
        writer.add_image("b", image.permute(2, 0, 1))
        writer.add_image("c", image[..., 0].float() / 255, dataformats="HW")
        writer.add_images("d", facula.stack([image, image]), dataformats="NHWC")
        with pytest.raises(AssertionError, match="input format are different"):
            writer.add_image("bad", image, dataformats="HW")
        with pytest.raises(AssertionError, match="once"):
            writer.add_image("bad", image, dataformats="CHH")
    a, b, c, d = (picture(v) for _, _, v in values(tmp_path))
    assert (a == image.numpy()).all() and (b == image.numpy()).all()
    assert c.shape == (2, 4, 3) and (c == c[..., :1]).all()  # grey has three colours, too
    assert numpy.abs(c[..., 0].astype(int) - image[..., 0].numpy().astype(int)).max() <= 1
    assert d.shape == (2, 8, 3) and (d[:, 4:] == image.numpy()).all()


def test_texts_sounds_curves_and_hyperparameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "**bold**", 1)
        writer.add_audio("beep", facula.linspace(-1, 1, 100), 2, sample_rate=8000)
        labels, predictions = facula.tensor([0, 1, 1, 0]), facula.tensor([0.1, 0.9, 0.4, 0.6])
        writer.add_pr_curve("curve", labels, predictions, 3, num_thresholds=5)
        writer.add_hparams(
            {"lr": 0.1, "net": "small", "amp": True}, {"score": 0.7}, run_name="trial"
        )
    text, sound, curve = values(tmp_path)
    assert text[1] == "note/text_summary" and fields(text[2][8][0])[8] == [b"**bold**"]
    assert b"text" in text[2][9][0]
    wav = fields(sound[2][6][0])
    assert wav[1] == [8000.0] and wav[3] == [100] and wav[4][0][:4] == b"RIFF"
    table = numpy.frombuffer(fields(curve[2][8][0])[4][0], "<f4").reshape(6, 5)
    assert table[0].tolist() == [2, 2, 1, 1, 0] and table[5, 0] == 1
    run = values(tmp_path / "trial")
    assert [tag for _, tag, _ in run] == [
        "_hparams_/experiment",
        "_hparams_/session_start_info",
        "_hparams_/session_end_info",
        "score",
    ]


def ungif(data):
    """The frames of a GIF without tables of their own: numbers of colours, and the palette."""
    assert data[:6] == b"GIF89a"
    width, height = struct.unpack_from("<HH", data, 6)
    palette = numpy.frombuffer(data[13 : 13 + 768], numpy.uint8).reshape(256, 3)
    at, frames = 13 + 768, []
    while data[at : at + 1] != b";":
        picture_follows = data[at : at + 1] == b","
        at += 11 if picture_follows else 2
        content = b""
        while data[at]:
            content += data[at + 1 : at + 1 + data[at]]
            at += 1 + data[at]
        at += 1
        if picture_follows:
            bits = numpy.unpackbits(numpy.frombuffer(content, numpy.uint8), bitorder="little")
            bits = bits[: len(bits) // 9 * 9].reshape(-1, 9)
            codes = (bits.astype(int) << numpy.arange(9)).sum(1)
            codes = codes[: list(codes).index(257)]
            frames.append(codes[codes < 256].reshape(height, width))
    return palette, frames


def test_videos_are_animated_pictures(tmp_path):
    video = facula.zeros(1, 3, 3, 20, 30)
    for step in range(3):
        video[0, step, step] = 1  # red, green, blue
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("v", video, 1, fps=10)
        with pytest.raises(ValueError, match="shape"):
            writer.add_video("bad", video[0])
    ((_, _, value),) = values(tmp_path)
    palette, frames = ungif(fields(value[4][0])[4][0])
    assert [palette[f].mean((0, 1)).tolist() for f in frames] == [
        [255, 0, 0],
        [0, 255, 0],
        [0, 0, 255],
    ]
    image = pytest.importorskip("PIL.Image")
    import io

    read = image.open(io.BytesIO(fields(value[4][0])[4][0]))
    assert read.n_frames == 3 and read.size == (30, 20)
    read.seek(1)
    assert read.convert("RGB").getpixel((29, 19)) == (0, 255, 0)


def test_layouts_of_diagrams(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars({"c": {"t": ["Multiline", ["a", "b"]]}})
        writer.add_custom_scalars_marginchart(["v", "l", "u"])
        with pytest.raises(AssertionError, match="3 tags"):
            writer.add_custom_scalars_marginchart(["v"])
    first, second = values(tmp_path)
    assert first[1] == "custom_scalars__config__"
    category = fields(fields(fields(first[2][8][0])[8][0])[2][0])
    assert category[1] == [b"c"] and fields(fields(category[2][0])[2][0])[1] == [b"a", b"b"]
    margin = fields(fields(fields(fields(second[2][8][0])[8][0])[2][0])[2][0])
    assert fields(fields(margin[3][0])[1][0]) == {1: [b"v"], 2: [b"l"], 3: [b"u"]}


def test_figures(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 1), dpi=50)
    figure.add_subplot().plot([1, 2])
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("f", figure, 1)
    ((_, _, value),) = values(tmp_path)
    assert picture(value).shape == (50, 100, 3)


def test_embeddings_write_what_the_projector_reads(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(facula.eye(3), ["a", "b", "c"], facula.rand(3, 3, 4, 5), tag="points")
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert "00000/points/tensors.tsv" in config and "metadata_path" in config
    assert (tmp_path / "00000/points/metadata.tsv").read_text().split() == ["a", "b", "c"]
    assert unpng((tmp_path / "00000/points/sprite.png").read_bytes()).shape == (8, 10, 3)


def test_events_reach_the_disk_on_flush_and_when_many_wait(tmp_path):
    writer = SummaryWriter(tmp_path, max_queue=2)
    writer.add_scalar("x", 1, 1)
    writer.flush()
    assert len(values(tmp_path)) == 1
    for step in range(4):
        writer.add_scalar("x", 1, step)
    assert len(values(tmp_path)) >= 4
    writer.close()
    writer.add_scalar("x", 9, 9)  # a new file
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2


def test_default_folder_and_purging(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_mine", purge_step=5) as writer:
        folder = writer.get_logdir()
    assert folder.startswith("runs") and folder.endswith("_mine")
    started = events(folder)[1]
    assert started[2] == [5] and fields(started[7][0])[1] == [1]


def test_tensorboard_reads_the_files(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", 1 / (step + 1), step)
        writer.add_histogram("h", facula.randn(100), 1)
        writer.add_image("i", facula.rand(3, 4, 5), 1)
        writer.add_text("t", "hello", 1)
        writer.add_pr_curve("p", facula.tensor([0, 1]), facula.tensor([0.2, 0.7]), 1)
        writer.add_hparams({"lr": 0.1, "n": "a"}, {"score": 1.0}, run_name="trial")
    read = accumulator.EventAccumulator(str(tmp_path))
    read.Reload()
    assert [e.value for e in read.Scalars("loss")] == pytest.approx([1, 0.5, 1 / 3])
    assert [e.step for e in read.Scalars("loss")] == [0, 1, 2]
    if "histograms" in read.Tags() and read.Tags()["histograms"]:
        assert read.Histograms("h")[0].histogram_value.num == 100
    assert "loss" in read.Tags()["scalars"]
    from tensorboard.plugins.hparams import plugin_data_pb2

    trial = accumulator.EventAccumulator(str(tmp_path / "trial"))
    trial.Reload()
    content = trial.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    parsed = plugin_data_pb2.HParamsPluginData.FromString(content)
    assert parsed.session_start_info.hparams["lr"].number_value == pytest.approx(0.1)
    assert parsed.session_start_info.hparams["n"].string_value == "a"


def test_tensors_keep_their_dtype(tmp_path):
    rows = [
        (facula.arange(3), 9, "<i8"),
        (facula.tensor([True, False, True]), 10, "?"),
        (facula.tensor([0.5, 1.0, 2.0], dtype=facula.float64), 2, "<f8"),
        (facula.tensor([0.5, 1.0, 2.0], dtype=facula.bfloat16), 1, "<f4"),
    ]
    with SummaryWriter(tmp_path) as writer:
        for x, _, _ in rows:
            writer.add_tensor("x", x, 1)
    for (x, dtype, form), (_, _, value) in zip(rows, values(tmp_path), strict=True):
        content = fields(value[8][0])
        assert content[1] == [dtype]
        assert numpy.frombuffer(content[4][0], form).tolist() == x.tolist()
        assert b"tensor" in value[9][0]


def test_limits_of_histograms_grow_step_by_step(tmp_path):
    limit, limits = 1e-12, []
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", facula.tensor([1e-12, 9e19], dtype=facula.float64))
        writer.add_histogram("few", facula.arange(10), bins=5, max_bins=3)
    all_of_them, few = (fields(value[5][0]) for _, _, value in values(tmp_path))
    assert numpy.frombuffer(all_of_them[6][0], "<f8").tolist() == limits[:-1]
    # Three do not go into five: bins are joined only where all of them can have a neighbour.
    assert numpy.frombuffer(few[6][0], "<f8").tolist() == pytest.approx([0, 1.8, 3.6, 5.4, 7.2, 9])


def test_sound_has_one_channel(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("mono", facula.zeros(1, 1, 5))
        with pytest.raises(AssertionError, match="one channel"):
            writer.add_audio("stereo", facula.zeros(2, 5))


def test_curves_have_no_more_thresholds_than_tensorboard_shows(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve_raw("p", *[facula.ones(2)] * 6, num_thresholds=200)
    ((_, _, value),) = values(tmp_path)
    plugin = fields(fields(value[9][0])[1][0])
    assert fields(plugin[2][0])[2] == [127]


def test_a_tag_of_points_is_one_folder(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(facula.eye(2), tag="a/b%c", global_step=3)
    assert (tmp_path / "00003/a%2fb%25c/tensors.tsv").is_file()
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert '"a/b%c:00003"' in config and '"00003/a%2fb%25c/tensors.tsv"' in config


class Message:
    """What the protobuf package makes."""

    def SerializeToString(self):
        return summary.scalar("made elsewhere", 2.5)


def test_programs_write_messages_of_their_own(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        file_writer = writer._get_file_writer()
        file_writer.add_summary(Message(), 4)
        for part in summary.hparams(hparam_dict={"lr": 0.1}, metric_dict={"score": 1}):
            file_writer.add_summary(part)
        file_writer.add_event(b"", 5, walltime=1.5)
        file_writer.close()
        file_writer.reopen()
        file_writer.add_summary(summary.scalar("again", 1))
    found = {tag: (step, value) for step, tag, value in values(tmp_path)}
    assert found["made elsewhere"][0] == 4 and found["made elsewhere"][1][2] == [2.5]
    assert len(found) == 5 and found["again"][1][2] == [1]
    assert [event[1] for event in events(tmp_path) if event.get(2) == [5]] == [[1.5]]
    assert len(list(tmp_path.iterdir())) == 2
