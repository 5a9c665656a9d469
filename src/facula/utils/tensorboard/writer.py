"""SummaryWriter: scalars, histograms, pictures and more, for TensorBoard."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any

from facula.utils.tensorboard import summary, wire
from facula.utils.tensorboard.images import as_array, figure_to_hwc, png, to_bytes, to_hwc
from facula.utils.tensorboard.record_writer import EventFile

__all__ = ["FileWriter", "SummaryWriter"]

_GRAPH, _SUMMARY, _SESSION_LOG = 4, 5, 7  # fields of an Event


def _bytes_of(message: Any) -> bytes:
    """A message as bytes; programs may make theirs with the protobuf package."""
    coded: bytes = message if isinstance(message, bytes) else message.SerializeToString()
    return coded


class FileWriter:
    """Writes summaries to an event file.

    Args:
        log_dir: the folder.
        max_queue: how many events may wait in memory.
        flush_secs: and for how long.
        filename_suffix: the end of the file's name.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self.log_dir = os.fspath(log_dir)
        self._how = (max_queue, flush_secs, filename_suffix)
        self.event_writer = EventFile(self.log_dir, *self._how)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Adds an Event message, or its bytes, with the time and the step."""
        self.event_writer.add(_bytes_of(event), step, walltime)

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Adds a Summary message, or its bytes."""
        self.add_event(wire.data(_SUMMARY, _bytes_of(summary)), global_step, walltime)

    def add_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Adds a GraphDef message, or its bytes."""
        self.add_event(wire.data(_GRAPH, _bytes_of(graph)), None, walltime)

    def flush(self) -> None:
        """Writes what waits in memory."""
        self.event_writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begins a new file where the last one has ended."""
        if self.event_writer.closed:
            self.event_writer = EventFile(self.log_dir, *self._how)


class SummaryWriter:
    """Writes event files that TensorBoard shows.

    Args:
        log_dir: the folder; by default ``runs/`` and the time and the host's name.
        comment: added to the default ``log_dir``.
        purge_step: what earlier runs wrote at this step or later is hidden.
        max_queue: how many events may wait in memory.
        flush_secs: and for how long.
        filename_suffix: the end of the file's name.

    Example::

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = facula.utils.tensorboard.SummaryWriter(folder)
        ...     writer.add_scalar("loss", 0.5, 1)
        ...     writer.add_histogram("weights", facula.rand(100), 1)
        ...     writer.close()
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _make(self, folder: str) -> FileWriter:
        writer = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        assert self.all_writers is not None
        self.all_writers[folder] = writer
        return writer

    def _get_file_writer(self) -> FileWriter:
        if self.all_writers is None or self.file_writer is None:
            self.all_writers = {}
            self.file_writer = self._make(self.log_dir)
            if self.purge_step is not None:
                started = wire.data(_SESSION_LOG, wire.integer(1, 1))
                self.file_writer.event_writer.add(started, self.purge_step, None)
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    # ---- numbers

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Adds one number, a point of the curve ``tag``.

        Args:
            tag: the curve's name.
            scalar_value: the number.
            global_step: where the point is.
            new_style: writes a tensor; loading many of them is faster.
            double_precision: what a tensor may have; other numbers are float32.
        """
        content = summary.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a point to each of several curves of one diagram; each has a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            path = os.path.join(folder, main_tag.replace("/", "_") + "_" + tag)
            writer = self.all_writers.get(path) or self._make(path)
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self,
        tag: str,
        tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds the numbers of a tensor."""
        self._get_file_writer().add_summary(summary.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds the distribution of numbers.

        Args:
            tag: its name.
            values: a tensor or array; what is not finite is left out.
            bins: "tensorflow", or what ``numpy.histogram`` takes.
            max_bins: about so many, neighbours of larger numbers of bins being joined.
        """
        content = summary.histogram(tag, values, bins, max_bins)
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: list[float],
        bucket_counts: list[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a distribution of which the parts are known."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        content = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a curve of precision against recall.

        Args:
            tag: its name.
            labels: 0 or 1 for each sample.
            predictions: the probability of 1 for each sample.
            num_thresholds: points of the curve.
            weights: of the samples.
        """
        content = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a curve of precision against recall of which the parts are known."""
        content = summary.pr_curve_raw(
            tag,
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
            num_thresholds,
        )
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Adds hyperparameters and the results that they gave, as a run of its own.

        Args:
            hparam_dict: name to bool, text or number.
            metric_dict: name to number.
            hparam_domain_discrete: name to the values that are tried.
            run_name: the run's folder; the time by default.
        """
        contents = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for content in contents:
                writer._get_file_writer().add_summary(content, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_custom_scalars(self, layout: dict[str, dict[str, list[Any]]]) -> None:
        """Says which curves share a diagram; once for a writer.

        Args:
            layout: category to title to ``["Multiline", tags]``, or ``["Margin", [value, lower,
                upper]]``.
        """
        self._get_file_writer().add_summary(summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Puts curves into one diagram."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Puts a curve and its lower and upper limits into one diagram."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # ---- pictures, sounds, texts

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds a picture.

        Args:
            tag: its name.
            img_tensor: floats from 0 to 1, or uint8.
            dataformats: what its dimensions are: "CHW", "HWC" or "HW".
        """
        content = summary.image(tag, img_tensor, dataformats)
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds several pictures of one size as a grid."""
        if isinstance(img_tensor, list):
            dataformats = "N" + dataformats.replace("N", "")
            import numpy

            img_tensor = numpy.stack([as_array(i) for i in img_tensor])
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds a Matplotlib figure, or a list of them, and closes it."""
        figures = figure if isinstance(figure, list) else [figure]
        pictures = [figure_to_hwc(f) for f in figures]
        if close:
            from matplotlib import pyplot

            for f in figures:
                pyplot.close(f)
        if isinstance(figure, list):
            self.add_images(tag, pictures, global_step, walltime, dataformats="NHWC")
        else:
            self.add_image(tag, pictures[0], global_step, walltime, dataformats="HWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Adds videos, as an animated picture of 256 colours.

        Args:
            tag: their name.
            vid_tensor: floats from 0 to 1, or uint8, of shape (N, T, C, H, W).
            fps: frames in a second.
        """
        content = summary.video(tag, vid_tensor, fps)
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds sound: numbers from -1 to 1, of shape (1, length)."""
        content = summary.audio(tag, snd_tensor, sample_rate)
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a text, which is shown as Markdown."""
        self._get_file_writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Adds a picture with red frames in it; needs Pillow.

        Args:
            tag: its name.
            img_tensor: floats from 0 to 1, or uint8.
            box_tensor: a row (left, upper, right, lower) for each frame.
            rescale: how much larger the picture is shown.
            dataformats: what its dimensions are: "CHW", "HWC" or "HW".
            labels: a text for each frame, or one text.
        """
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != len(box_tensor):
            labels = None
        content = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds meshes or clouds of points, which TensorBoard shows in three dimensions.

        Args:
            tag: their name.
            vertices: (B, N, 3).
            colors: of the vertices, (B, N, 3), from 0 to 255.
            faces: the numbers of three vertices each, (B, M, 3).
            config_dict: settings of ThreeJS.
        """
        content = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Adds the graph of a model. The model runs once, without gradients.

        Args:
            model: the module.
            input_to_model: its argument, or a tuple of them.
            verbose: whether to print the modules and functions of the graph.
            use_strict_trace: accepted for PyTorch's sake: containers may always change.
        """
        from facula.utils.tensorboard.graph import graph_of

        if input_to_model is None:
            raise ValueError("add_graph() needs input_to_model: the model is run to see its graph")
        content, nodes = graph_of(model, input_to_model)
        if verbose:
            print("\n".join(nodes))
        self._get_file_writer().add_graph(content)

    def add_embedding(
        self,
        mat: Any,
        metadata: list[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: list[str] | None = None,
    ) -> None:
        """Adds points for the projector.

        Args:
            mat: a row for each point.
            metadata: a label, or a list of them with ``metadata_header``, for each point.
            label_img: a picture for each point, (N, C, H, W).
        """
        points = as_array(mat)
        step = f"{0 if global_step is None else global_step:05d}"
        inside = f"{step}/{self._encode(tag)}"
        folder = os.path.join(self.log_dir, inside)
        os.makedirs(folder, exist_ok=True)
        lines = [f'tensor_name: "{tag}:{step}"', f'tensor_path: "{inside}/tensors.tsv"']
        if points.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        if metadata is not None:
            if len(metadata) != len(points):
                raise AssertionError("#labels should equal with #data points")
            rows = [metadata_header, *metadata] if metadata_header else metadata
            with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as file:
                for row in rows:
                    cells = row if metadata_header else [row]
                    file.write("\t".join(map(str, cells)) + "\n")
            lines.append(f'metadata_path: "{inside}/metadata.tsv"')
        if label_img is not None:
            pictures = as_array(label_img)
            if len(pictures) != len(points):
                raise AssertionError("#images should equal with #data points")
            self._write_sprite(os.path.join(folder, "sprite.png"), pictures)
            height, width = pictures.shape[2:]
            lines.append(f'sprite {{ image_path: "{inside}/sprite.png"')
            lines.append(f"  single_image_dim: {width} single_image_dim: {height} }}")
        with open(os.path.join(folder, "tensors.tsv"), "w", encoding="utf-8") as file:
            for point in points:
                file.write("\t".join(map(str, point.tolist())) + "\n")
        config = os.path.join(self.log_dir, "projector_config.pbtxt")
        with open(config, "a", encoding="utf-8") as file:
            file.write("embeddings {\n" + "\n".join(lines) + "\n}\n")

    @staticmethod
    def _encode(tag: str) -> str:
        """A tag as the name of one folder."""
        return tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")

    @staticmethod
    def _write_sprite(path: str, pictures: Any) -> None:
        import math

        import numpy

        from facula.utils.tensorboard.images import grid

        side = math.ceil(math.sqrt(len(pictures)))
        filler = numpy.zeros((side * side - len(pictures), *pictures.shape[1:]), pictures.dtype)
        square = numpy.concatenate([pictures, filler]).transpose(0, 2, 3, 1)
        with open(path, "wb") as file:
            file.write(png(to_bytes(to_hwc(grid(square, side), "HWC"))))

    # ---- the end

    def flush(self) -> None:
        """Writes what waits in memory."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Ends the files; another ``add_`` begins new ones."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
