"""Samples that move with their parameters, and low-discrepancy points. For a seed they are PyTorch's."""

from gen.rows import composite, kernel, op

_GENERATOR = "Generator? generator=None"


def _seeded(call, shown):
    return f">>> _ = facula.manual_seed(0)\n>>> facula.{call}\n{shown}"


op(f"_standard_gamma(Tensor self, {_GENERATOR}) -> Tensor", kernel(),
   grad="grad * _standard_gamma_grad(self, result)", python="_standard_gamma", function=True, method=False, out=False,
   samples="none",
   doc="Samples of gamma distributions with the given shapes and rate 1. The gradient says how a sample moves when "
       "its shape does.",
   example=_seeded("_standard_gamma(facula.tensor([0.5, 2., 30.]))", "tensor([7.8936e-04, 6.3154e-01, 3.0549e+01])"))
op("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", kernel(),
   python="_standard_gamma_grad", function=True, method=False, out=False, batch="leading", samples="none",
   doc="How samples ``output`` of gamma distributions of rate 1 move with the shapes ``self``.",
   example=">>> facula._standard_gamma_grad(facula.tensor([1.]), facula.tensor([1.]))\ntensor([1.1736])")
op(f"_sample_dirichlet(Tensor self, {_GENERATOR}) -> Tensor", kernel(),
   grad="_sample_dirichlet_grad(grad, self, result)", python="_sample_dirichlet", function=True, method=False, out=False,
   samples="none",
   doc="Samples of Dirichlet distributions; the last dimension holds the concentrations of one.",
   example=_seeded("_sample_dirichlet(facula.tensor([0.5, 2., 30.]))", "tensor([2.5315e-05, 2.0254e-02, 9.7972e-01])"))
op("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", kernel(),
   python="_dirichlet_grad", function=True, method=False, out=False, batch="leading", samples="none",
   doc="How samples ``x`` of beta distributions with parameters ``alpha`` and ``total - alpha`` move with ``alpha``, "
       "divided by ``1 - x``.",
   example=">>> facula._dirichlet_grad(facula.tensor([0.5]), facula.tensor([1.]), facula.tensor([2.]))\ntensor([0.6931])")
op("_sample_dirichlet_grad(Tensor grad, Tensor concentration, Tensor sample) -> Tensor", composite(), samples="none",
   doc="The derivative of ``_sample_dirichlet``.")

# ---- Sobol's sequence

op("_sobol_engine_draw(Tensor quasi, int n, Tensor sobolstate, int dimension, int num_generated, "
   "ScalarType? dtype=None) -> (Tensor result, Tensor state)", kernel(),
   python="_sobol_engine_draw", function=True, method=False, out=False, samples="none", batch="loop",
   doc="The next ``n`` points after ``num_generated``, from the last one and the direction numbers; and the state "
       "after them.")
op("_sobol_engine_ff(Tensor quasi, int n, Tensor sobolstate, int dimension, int num_generated) -> Tensor", kernel(),
   python="_sobol_engine_ff", function=True, method=False, out=False, samples="none", batch="loop",
   doc="The state after ``n`` further points.")
op("_sobol_engine_scramble(Tensor sobolstate, Tensor ltm, int dimension) -> Tensor", kernel(),
   python="_sobol_engine_scramble", function=True, method=False, out=False, samples="none",
   batch="loop",
   doc="The direction numbers with their bits multiplied by lower triangular matrices of bits.")
