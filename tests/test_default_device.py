"""What a default device is for, and what goes on without it."""

import copy
import io
import pickle

import pytest
from package_under_test import F

HERE = {
    "storage": lambda x: F.UntypedStorage(3),
    "legacy constructor": lambda x: F.Tensor(2, 3),
    "array": lambda x: F.from_numpy(x.numpy()),
    "sum": lambda x: x + 1,
    "one-hot": lambda x: F.nn.functional.one_hot(x.long(), 3),
    "packed": lambda x: F.nn.utils.rnn.pack_padded_sequence(x.view(3, 1), [3]).data,
    "padded": lambda x: F.nn.utils.rnn.pad_packed_sequence(
        F.nn.utils.rnn.PackedSequence(x, F.ones(3, dtype=F.int64, device="cpu"))
    )[0],
    "copy": copy.deepcopy,
    "even points": lambda x: F.quasirandom.SobolEngine(2, scramble=True, seed=1).draw(3),
    "sparse": lambda x: (x * 0).to_sparse().to_dense(),
    "sparse sum": lambda x: F.sparse.sum(F.diag(x).to_sparse(), 0).to_dense(),
    "stacked sparse": lambda x: F.stack([x.to_sparse(), x.to_sparse()]).to_dense(),
}


@pytest.mark.parametrize("name", HERE)
def test_work_on_host_tensors_stays_on_the_host(name):
    x = F.tensor([0.0, 1.0, 2.0])
    expected = HERE[name](x)
    with F.device("meta"):
        result = HERE[name](x)
    assert result.device == F.device("cpu")
    if name not in ("storage", "legacy constructor"):
        assert result.tolist() == expected.tolist()


def test_tensors_are_read_where_they_were_written():
    file, x = io.BytesIO(), F.tensor([1.0, 2.0])
    F.save({"x": x}, file)
    file.seek(0)
    pickled = pickle.dumps(x)
    with F.device("meta"):
        assert F.load(file)["x"].tolist() == [1.0, 2.0]
        assert pickle.loads(pickled).tolist() == [1.0, 2.0]


def test_gradcheck_computes_on_the_host():
    x = F.ones(2, dtype=F.float64, requires_grad=True)
    with F.device("meta"):
        assert F.autograd.gradcheck(lambda t: t * t, (x,))


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_data_given_as_a_tensor_goes_to_the_default_device():
    x = F.ones(2)
    with F.device("meta"):
        assert F.tensor(x).is_meta and F.as_tensor(x).is_meta
        assert not F.tensor(x, device="cpu").is_meta
    assert not F.tensor(x).is_meta
