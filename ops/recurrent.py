"""Recurrent layers: all steps of a layer and a direction are one operator."""

from gen.rows import composite, kernel, op

# Sequences of different lengths, sorted by them: the rows of all steps one after the other, batch_sizes[t] of step t.
# kind: 0 LSTM, 1 GRU, 2 tanh, 3 relu. cx and cy are for LSTM only, w_hr is its projection.
op("_recurrent_layer(Tensor input, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? w_hr, int kind, int[] batch_sizes, bool reverse) -> (Tensor output, Tensor hy, Tensor cy, Tensor reserve)",
   kernel(), batch="loop", samples="none", nondifferentiable=("reserve",),
   node="RecurrentLayerBackward0",
   grad={"input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr":
         "_recurrent_gradients(given_output, given_hy, given_cy, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, output, "
         "reserve, kind, batch_sizes, reverse, wanted)"})
_BACKWARD = ("(Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, Tensor input, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, "
             "Tensor? b_ih, Tensor? b_hh, Tensor? w_hr, Tensor output, Tensor reserve, int kind, int[] batch_sizes, bool reverse, int wanted) -> Tensor[]")
# By plain operators where the gradients are to be differentiated again, else by the kernel below.
op("_recurrent_gradients" + _BACKWARD, composite(), samples="none")
op("_recurrent_backward" + _BACKWARD, kernel(), batch="loop", samples="none")

_OPTIONS = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_SHAPES = ("``input`` is (steps, batch, features), or (batch, steps, features) with ``batch_first``; ``params`` holds for\n"
           "each layer and direction the weights of input and state, then the biases. Layers drop elements of their\n"
           "input with probability ``dropout`` when ``train``. ")
_PACKED = "The same for packed sequences: ``data`` has the rows of all steps, ``batch_sizes`` how many each step has."


def _packed_example(name, gates, state):
    return (f">>> x, h = facula.ones(3, 1), facula.zeros(1, 2, 1)\n>>> w = [facula.zeros({gates}, 1)] * 2\n"
            f">>> facula.{name}(x, facula.tensor([2, 1]), {state}, w, False, 1, 0., False, False)[0].flatten()\n"
            "tensor([0., 0., 0.])")


def _example(name, gates, state):
    return (f">>> x, h = facula.ones(2, 1, 1), facula.zeros(1, 1, 1)\n>>> w = [facula.zeros({gates}, 1)] * 2\n"
            f">>> facula.{name}(x, {state}, w, False, 1, 0., False, False, False)[0].flatten()\ntensor([0., 0.])")


op(f"lstm.input(Tensor input, Tensor[] hx, Tensor[] params, {_OPTIONS}, bool batch_first) -> (Tensor, Tensor, Tensor)",
   composite(), method=False, out=False, samples="none",
   doc="A long short-term memory of one or more layers. " + _SHAPES + "``hx`` is the pair (hidden, cell). Returns the\n"
       "outputs of the last layer, the last hidden states and the last cells.", example=_example("lstm", 4, "(h, h)"))
op(f"lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, {_OPTIONS}) -> (Tensor, Tensor, Tensor)",
   composite(), method=False, out=False, samples="none", doc=_PACKED, example=_packed_example("lstm", 4, "(h, h)"))
for _name, _what, _gates in (("gru", "A gated recurrent unit", 3), ("rnn_tanh", "A recurrent network with tanh", 1),
                             ("rnn_relu", "A recurrent network with relu", 1)):
    op(f"{_name}.input(Tensor input, Tensor hx, Tensor[] params, {_OPTIONS}, bool batch_first) -> (Tensor, Tensor)",
       composite(), method=False, out=False, samples="none",
       doc=f"{_what} of one or more layers. {_SHAPES}Returns the outputs\nof the last layer and the last hidden states.",
       example=_example(_name, _gates, "h"))
    op(f"{_name}.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, {_OPTIONS}) -> (Tensor, Tensor)",
       composite(), method=False, out=False, samples="none", doc=_PACKED, example=_packed_example(_name, _gates, "h"))

_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
op(f"lstm_cell(Tensor input, Tensor[] hx, {_WEIGHTS}) -> (Tensor, Tensor)", composite(), method=False, out=False, samples="none",
   doc="One step of a long short-term memory: the next (hidden, cell) from ``input`` (batch, features) and ``hx``.",
   example=">>> x, w = facula.ones(1, 1), facula.zeros(4, 1)\n>>> facula.lstm_cell(x, (x, x), w, w)[1]\ntensor([[0.5000]])")
for _name, _what, _gates, _shown in (("gru_cell", "a gated recurrent unit", 3, "0.5000"), ("rnn_tanh_cell", "a recurrent network with tanh", 1, "0."),
                                     ("rnn_relu_cell", "a recurrent network with relu", 1, "0.")):
    op(f"{_name}(Tensor input, Tensor hx, {_WEIGHTS}) -> Tensor", composite(), method=False, out=False, samples="none",
       doc=f"One step of {_what}: the next hidden state from ``input`` (batch, features) and ``hx``.",
       example=f">>> x, w = facula.ones(1, 1), facula.zeros({_gates}, 1)\n>>> facula.{_name}(x, x, w, w)\ntensor([[{_shown}]])")
