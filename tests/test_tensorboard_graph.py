"""Graphs and meshes in event files, read back here and by TensorBoard where it is installed."""

import struct

import numpy
import pytest
from test_tensorboard import events, fields, values

import facula
from facula import nn
from facula.utils.tensorboard import SummaryWriter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))

    def forward(self, x, y):
        h = self.body(self.fc(x))
        return h + y, h.sum()


def write_graph(folder):
    facula.manual_seed(0)
    with SummaryWriter(folder) as writer:
        writer.add_graph(Net(), (facula.ones(5, 4), facula.zeros(2)))


def test_graph_has_modules_parameters_and_edges(tmp_path):
    write_graph(tmp_path)
    (graph,) = (event[4][0] for event in events(tmp_path) if 4 in event)
    nodes = {}
    for content in fields(graph)[1]:
        node = fields(content)
        inputs = [i.decode() for i in node.get(3, [])]
        nodes[node[1][0].decode()] = (node[2][0].decode(), inputs)
    assert nodes["input/0"] == ("IO Node", [])
    assert nodes["Net/Linear[fc]/weight"][0] == "Parameter"
    fc = nodes["Net/Linear[fc]/linear"]
    assert fc[1] == ["input/0", "Net/Linear[fc]/weight", "Net/Linear[fc]/bias"]
    assert nodes["Net/Sequential[body]/ReLU[0]/relu"][1] == ["Net/Linear[fc]/linear"]
    second = nodes["Net/Sequential[body]/Linear[1]/linear"]
    assert second[1][0] == "Net/Sequential[body]/ReLU[0]/relu"
    (add,) = (inputs for op, inputs in nodes.values() if "add" in op)
    assert add == ["Net/Sequential[body]/Linear[1]/linear", "input/1"]
    assert [nodes[f"output/{i}"][1] for i in range(2)] != [[], []]
    assert all(i.split(":")[0] in nodes for _, inputs in nodes.values() for i in inputs)


def test_graph_leaves_the_model_as_it_was_also_when_it_fails(tmp_path):
    net = Net()
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(RuntimeError):
            writer.add_graph(net, (facula.ones(5, 7), facula.zeros(2)))
        with pytest.raises(ValueError, match="input_to_model"):
            writer.add_graph(net)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert net(facula.ones(1, 4), facula.zeros(2))[0].requires_grad


def write_mesh(folder):
    with SummaryWriter(folder) as writer:
        points = facula.arange(12.0).view(1, 4, 3)
        writer.add_mesh(
            "thing", points, facula.full((1, 4, 3), 255), [[[0, 1, 2]]], {"a": 1}, global_step=3
        )
        with pytest.raises(ValueError, match="shape"):
            writer.add_mesh("flat", facula.ones(4, 3))


def test_mesh_is_three_tensors(tmp_path):
    write_mesh(tmp_path)
    found = {tag: value for _, tag, value in values(tmp_path)}
    assert set(found) == {"thing_VERTEX", "thing_FACE", "thing_COLOR"}
    tensor = fields(found["thing_VERTEX"][8][0])
    assert tensor[1] == [1]
    assert numpy.frombuffer(tensor[4][0], "<f4").tolist() == list(range(12))
    assert fields(found["thing_FACE"][8][0])[1] == [3]
    assert fields(found["thing_COLOR"][8][0])[4] == [b"\xff" * 12]
    plugin = fields(fields(found["thing_FACE"][9][0])[1][0])
    assert plugin[1] == [b"mesh"]
    settings = fields(plugin[2][0])
    assert settings[2] == [b"thing"] and settings[3] == [2] and settings[7] == [2 + 4 + 8]


def test_boxes_are_drawn(tmp_path):
    pytest.importorskip("PIL")
    with SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes(
            "seen", facula.zeros(3, 20, 30), [[2, 3, 20, 15]], rescale=2, labels="cat"
        )
    ((_, tag, value),) = values(tmp_path)
    picture = fields(value[4][0])
    assert tag == "seen" and (picture[1], picture[2], picture[3]) == ([40], [60], [3])
    assert struct.unpack(">II", picture[4][0][16:24]) == (60, 40)


def test_tensorboard_reads_graphs_and_meshes(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from tensorboard.plugins.mesh import plugin_data_pb2

    write_graph(tmp_path / "graph")
    reader = accumulator.EventAccumulator(str(tmp_path / "graph"))
    reader.Reload()
    graph = reader.Graph()
    (linear,) = (n for n in graph.node if n.name == "Net/Linear[fc]/linear")
    assert linear.input[0] == "input/0"
    sizes = linear.attr["_output_shapes"].list.shape[0].dim
    assert [d.size for d in sizes] == [5, 3]

    write_mesh(tmp_path / "mesh")
    reader = accumulator.EventAccumulator(str(tmp_path / "mesh"))
    reader.Reload()
    metadata = reader.SummaryMetadata("thing_COLOR")
    assert metadata.plugin_data.plugin_name == "mesh"
    settings = plugin_data_pb2.MeshPluginData.FromString(metadata.plugin_data.content)
    assert settings.name == "thing" and settings.content_type == 3
    assert list(settings.shape) == [1, 4, 3] and settings.components == 14
    assert settings.json_config == '{"a": 1}'
