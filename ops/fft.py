"""Discrete Fourier transforms.

Three transforms do the work: complex to complex, real to complex and complex to real, each along
several dimensions (csrc/kernels/fft.cpp on csrc/cpu/fft*.cpp); the functions of the fft namespace
(csrc/kernels/fft_functions.cpp) promote, pad and call one of them. They are linear, so their
derivatives are each other.
"""

from gen.rows import composite, kernel, op

# normalization: 0 none, 1 by the root of the number of points, 2 by the number
op("_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor", kernel(), batch="dims", jvp="linear",
   grad="_fft_c2c(grad, dim, normalization, not forward)", node="FftC2CBackward0", samples="none")
op("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", kernel(), batch="dims", jvp="linear",
   grad="_fft_r2c_grad(grad, dim, normalization, onesided, self.sizes())", node="FftR2CBackward0", samples="none")
op("_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor", kernel(), batch="dims", jvp="linear",
   grad="_fft_c2r_grad(grad, dim, normalization, last_dim_size)", node="FftC2RBackward0", samples="none")
op("_fft_r2c_grad(Tensor grad, int[] dim, int normalization, bool onesided, int[] sizes) -> Tensor", composite())
op("_fft_c2r_grad(Tensor grad, int[] dim, int normalization, int last_dim_size) -> Tensor", composite())

_LENGTH = ("``n`` points are transformed: a longer input is cut off, a shorter one gets zeros. "
           "``norm`` is 'backward' (the inverse divides by the number of points, the default), 'ortho' (both "
           "directions divide by its root) or 'forward'.")
_SIZES = _LENGTH.replace("``n`` points are transformed", "``s`` has the points of each dimension")


def _transform(name, samples, words, line, several, *, halved=""):
    """One function for each number of dimensions; (call, result) are the examples."""
    for suffix, args, where, (call, shown) in (
        ("", "int? n=None, int dim=-1", "along a dimension", line),
        ("2", "int[1]? s=None, int[1] dim=[-2, -1]", "along two dimensions, the last ones by default", several[0]),
        ("n", "int[1]? s=None, int[1]? dim=None", "along several dimensions, all by default", several[1])):
        op(f"fft_{name}{suffix}(Tensor self, {args}, str? norm=None) -> Tensor", composite(), python=f"fft.{name}{suffix}",
           method=False, samples=samples + suffix,
           doc=f"{words} {where}{halved}. {_SIZES if suffix else _LENGTH}", example=f">>> facula.fft.{name}{suffix}({call})\n{shown}")


_transform("fft", "fft", "The discrete Fourier transform",
           ("facula.arange(4)", "tensor([ 6.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])"),
           [("facula.eye(2)", "tensor([[2.+0.j, 0.+0.j],\n        [0.+0.j, 2.+0.j]])"),
            ("facula.ones(2, 2)", "tensor([[4.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])")])
_transform("ifft", "fft", "The inverse of the discrete Fourier transform",
           ("facula.tensor([6, -2+2j, -2, -2-2j])", "tensor([0.+0.j, 1.+0.j, 2.+0.j, 3.+0.j])"),
           [("facula.tensor([[4, 0j], [0, 0]])", "tensor([[1.+0.j, 1.+0.j],\n        [1.+0.j, 1.+0.j]])"),
            ("facula.tensor([4, 0j, 0, 0])", "tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])")])
_transform("rfft", "rfft", "The Fourier transform of real numbers",
           ("facula.arange(4)", "tensor([ 6.+0.j, -2.+2.j, -2.+0.j])"),
           [("facula.ones(2, 4)", "tensor([[8.+0.j, 0.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j, 0.+0.j]])"),
            ("facula.ones(2, 2)", "tensor([[4.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])")],
           halved="; of the last one only the frequencies up to half the points, since the others are their conjugates")
_transform("irfft", "irfft", "The inverse of the Fourier transform of real numbers",
           ("facula.tensor([6., -2+2j, -2.])", "tensor([0., 1., 2., 3.])"),
           [("facula.tensor([[8., 0., 0.], [0., 0., 0.]])", "tensor([[1., 1., 1., 1.],\n        [1., 1., 1., 1.]])"),
            ("facula.tensor([8., 0., 0., 0., 0.])", "tensor([1., 1., 1., 1., 1., 1., 1., 1.])")],
           halved=", from the frequencies up to half the points of the last one; without a number of points it has "
                  "an even one")
_transform("hfft", "irfft", "The Fourier transform, in real numbers, of a signal whose second half is the conjugate of "
           "its first and is left out,",
           ("facula.tensor([1., 2., 3.])", "tensor([ 8., -2.,  0., -2.])"),
           [("facula.ones(2, 3)", "tensor([[8., 0., 0., 0.],\n        [0., 0., 0., 0.]])"),
            ("facula.ones(3)", "tensor([4., 0., 0., 0.])")])
_transform("ihfft", "rfft", "The inverse of ``hfft``: half of the signal that has real frequencies,",
           ("facula.tensor([8., -2., 0., -2.])", "tensor([1.-0.j, 2.-0.j, 3.-0.j])"),
           [("facula.ones(2, 4)", "tensor([[1.-0.j, 0.-0.j, 0.-0.j],\n        [0.+0.j, 0.+0.j, 0.+0.j]])"),
            ("facula.ones(4)", "tensor([1.-0.j, 0.-0.j, 0.-0.j])")])

_NEW = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"
op(f"fft_fftfreq(int n, float d=1.0, *, {_NEW}) -> Tensor", composite(), python="fft.fftfreq", method=False, samples="none",
   doc="The frequencies of the results of ``fft`` on ``n`` points a distance of ``d`` apart, the negative ones behind.",
   example=">>> facula.fft.fftfreq(4)\ntensor([ 0.0000,  0.2500, -0.5000, -0.2500])")
op(f"fft_rfftfreq(int n, float d=1.0, *, {_NEW}) -> Tensor", composite(), python="fft.rfftfreq", method=False, samples="none",
   doc="The frequencies of the results of ``rfft`` on ``n`` points a distance of ``d`` apart.",
   example=">>> facula.fft.rfftfreq(4)\ntensor([0.0000, 0.2500, 0.5000])")
op("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", composite(), python="fft.fftshift", method=False, out=False,
   samples="fftshift", doc="Moves the frequency 0 from the front to the middle, in all dimensions or those in ``dim``.",
   example=">>> facula.fft.fftshift(facula.fft.fftfreq(4))\ntensor([-0.5000, -0.2500,  0.0000,  0.2500])")
op("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", composite(), python="fft.ifftshift", method=False, out=False,
   samples="fftshift", doc="Undoes ``fftshift``.",
   example=">>> facula.fft.ifftshift(facula.tensor([-2, -1, 0, 1]))\ntensor([ 0,  1, -2, -1])")
