"""Special functions against values computed with 60 digits, and at the edges of their domains."""

from __future__ import annotations

import math

import numpy as np
import pytest
from package_under_test import IS_FACULA, F
from row_cases import attribute

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="stricter than PyTorch is")

INF, NAN = math.inf, math.nan

# name -> (ulp allowed, [(x, value)])
ONE = {
    "special.airy_ai": (
        8,
        [
            (-10000.0, 0.02705738360464258),
            (-50.25, -0.10228007262505645),
            (-12.5, -0.27627456138116024),
            (-4.99, 0.3539450366842079),
            (-2.0, 0.22740742820168558),
            (-1.0, 0.5355608832923521),
            (-0.25, 0.41872461427545293),
            (0.0, 0.3550280538878172),
            (0.75, 0.17933630547864524),
            (1.99, 0.035458538570668385),
            (2.01, 0.034396707129894226),
            (10.0, 1.1047532552898686e-10),
            (100.0, 2.6344821520881846e-291),
        ],
    ),
    "special.bessel_j0": (
        8,
        [
            (-7.5, 0.2663396578803784),
            (1e-09, 1.0),
            (0.5, 0.9384698072408129),
            (2.4048255576957724, 1.6946014926954953e-16),
            (2.5, -0.048383776468198),
            (5.520078110286311, -2.7522649432621832e-17),
            (7.99, 0.17399001312793258),
            (8.01, 0.16929736911054297),
            (25.5, 0.14406215754684787),
            (1000.25, 0.022846535354858314),
            (100000000.0, 3.206029534041208e-05),
        ],
    ),
    "special.bessel_j1": (
        8,
        [
            (-7.5, -0.1352484275797055),
            (1e-09, 5e-10),
            (0.5, 0.2422684576748739),
            (3.8317059702075125, -6.149807356994906e-17),
            (4.0, -0.06604332802354913),
            (7.99, 0.23320071425350178),
            (8.01, 0.236047103630834),
            (25.5, -0.062048536491484105),
            (1000.25, 0.010711720806184072),
            (100000000.0, 7.306391181551854e-05),
        ],
    ),
    "special.bessel_y0": (
        12,
        [
            (1e-300, -439.8351636227653),
            (1e-09, -13.266645074938387),
            (0.5, -0.44451873350670656),
            (2.5, 0.4980703596152319),
            (7.75, 0.17676987751364717),
            (8.25, 0.2551496050986449),
            (25.5, -0.06485976549878349),
            (1000.25, 0.010700299059596676),
            (100000000.0, 7.306391165521707e-05),
        ],
    ),
    "special.bessel_y1": (
        12,
        [
            (1e-300, -6.366197723675813e299),
            (1e-09, -636619772.3675814),
            (0.5, -1.471472392670243),
            (1.5, -0.4123086269739113),
            (7.75, -0.21433222865940804),
            (8.25, -0.0939944870646345),
            (25.5, -0.1453610587230494),
            (1000.25, -0.022841189398253216),
            (100000000.0, -3.2060294975092524e-05),
        ],
    ),
    "i0": (
        4,
        [
            (-3.5, 7.3782034322254795),
            (1e-09, 1.0),
            (0.5, 1.0634833707413236),
            (7.99, 423.5842036746737),
            (8.01, 431.5817860520924),
            (100.0, 1.0737517071310738e42),
            (712.0, 2.4684110577627523e307),
        ],
    ),
    "special.i0e": (
        4,
        [
            (-3.5, 0.22280243801077917),
            (1e-09, 0.999999999),
            (0.5, 0.6450352704491501),
            (7.99, 0.14352476537933484),
            (8.01, 0.14333897941113852),
            (1000.0, 0.012617240455891257),
            (1000000.0, 0.00039894233026924577),
        ],
    ),
    "special.i1": (
        4,
        [
            (-3.5, -6.205834922258365),
            (1e-09, 5e-10),
            (0.5, 0.2578943053908963),
            (7.99, 396.1152262074013),
            (8.01, 403.6669399977041),
            (100.0, 1.0683693903381625e42),
            (712.0, 2.4666770135246153e307),
        ],
    ),
    "special.i1e": (
        4,
        [
            (-3.5, -0.18739997660305),
            (1e-09, 4.999999995000001e-10),
            (0.5, 0.1564208031848717),
            (7.99, 0.134217339578281),
            (8.01, 0.13406776900984482),
            (1000.0, 0.012610930256928629),
            (1000000.0, 0.0003989421307980308),
        ],
    ),
    "special.modified_bessel_k0": (
        10,
        [
            (1e-300, 690.8914594138721),
            (1e-09, 20.839197352604824),
            (0.5, 0.9244190712276659),
            (1.99, 0.1153017675517768),
            (2.01, 0.11250436099872804),
            (10.0, 1.778006231616765e-05),
            (700.0, 4.669776431685377e-306),
        ],
    ),
    "special.modified_bessel_k1": (
        10,
        [
            (1e-300, 9.999999999999999e299),
            (1e-09, 999999999.9999999),
            (0.5, 1.656441120003301),
            (1.99, 0.14171756162240132),
            (2.01, 0.1380408773192077),
            (10.0, 1.8648773453825585e-05),
            (700.0, 4.6731107967079664e-306),
        ],
    ),
    "special.scaled_modified_bessel_k0": (
        10,
        [
            (1e-300, 690.8914594138721),
            (1e-09, 20.83919737344402),
            (0.5, 1.5241093857739094),
            (1.99, 0.8434939733789928),
            (2.01, 0.8396557490908678),
            (10.0, 0.39163193443659866),
            (1000000.0, 0.0012533139806513213),
        ],
    ),
    "special.scaled_modified_bessel_k1": (
        10,
        [
            (1e-300, 9.999999999999999e299),
            (1e-09, 1000000000.9999999),
            (0.5, 2.731009708211786),
            (1.99, 1.0367396067608632),
            (2.01, 1.0302428743356034),
            (10.0, 0.41076657059578875),
            (1000000.0, 0.0012533146073081549),
        ],
    ),
    "special.spherical_bessel_j0": (
        4,
        [
            (1e-09, 1.0),
            (0.5, 0.958851077208406),
            (3.0, 0.04704000268662241),
            (-10.0, -0.05440211108893698),
            (1000000.0, -3.4999350217129296e-07),
        ],
    ),
    "special.erfcx": (
        6,
        [
            (-26.5, 1.924553162418569e305),
            (-5.0, 144009798674.66104),
            (-0.5, 1.952360489182557),
            (1e-09, 0.9999999988716208),
            (0.5, 0.6156903441929259),
            (5.0, 0.11070463773306863),
            (100.0, 0.005641613782989433),
            (1000000000.0, 5.641895835477563e-10),
        ],
    ),
    "special.ndtr": (
        6,
        [
            (-37.5, 4.605353009581955e-308),
            (-10.0, 7.619853024160525e-24),
            (-1.0, 0.15865525393145705),
            (0.25, 0.5987063256829237),
            (3.0, 0.9986501019683699),
        ],
    ),
    "special.log_ndtr": (
        6,
        [
            (-50.0, -1254.8313611394199),
            (-10.0, -53.23128515051247),
            (-1.5, -2.7059444008238898),
            (-0.5, -1.1759117615936185),
            (0.25, -0.5129840754094305),
            (3.0, -0.0013508099647481938),
            (8.0, -6.220960574271786e-16),
        ],
    ),
    "special.ndtri": (
        6,
        [
            (1e-300, -37.0470962993612),
            (1e-16, -8.222082216130435),
            (0.001, -3.0902323061678136),
            (0.25, -0.6744897501960817),
            (0.75, 0.6744897501960817),
            (0.999, 3.090232306167813),
        ],
    ),
    "digamma": (
        8,
        [
            (1e-09, -1000000000.5772156),
            (0.25, -4.2274535333762655),
            (1.0, -0.5772156649015329),
            (7.99, 2.014309222046224),
            (8.01, 2.0169719639065193),
            (10000000000.0, 23.025850929890456),
            (-0.75, -2.894120200042932),
            (-10.25, 5.516858419886273),
        ],
    ),
    "lgamma": (
        8,
        [
            (1e-09, 20.723265836369194),
            (0.25, 1.2880225246980774),
            (1.25, -0.09827183642181316),
            (3.5, 1.2009736023470743),
            (30.5, 72.9534711841694),
            (-0.75, 1.5757045971498584),
            (-10.25, -14.20399790093109),
        ],
    ),
    "sinc": (
        4,
        [
            (1e-09, 1.0),
            (0.25, 0.9003163161571061),
            (0.999, 0.001000999354421167),
            (10.5, 0.03031522725559911),
            (1000000.25, 2.2507902276952083e-07),
        ],
    ),
}
TWO = {
    "special.zeta": (
        16,
        [
            (1.5, 1.0, 2.612375348685488),
            (2.0, 1.0, 1.6449340668482264),
            (3.0, 0.25, 64.66386996876847),
            (2.0, 1000.5, 0.0009999999166666958),
            (30.0, 12.5, 1.3776953629193722e-33),
            (4.0, -2.5, 32.4579793698646),
            (3.0, -7.25, -62.00426301828287),
        ],
    ),
    "igamma": (
        80,
        [
            (0.001, 0.5, 0.9994399333435292),
            (0.5, 1e-06, 0.0011283787909692363),
            (0.5, 3.0, 0.9856941215645704),
            (3.0, 2.5, 0.45618688411667047),
            (12.0, 15.0, 0.8152482009760685),
            (25.0, 25.5, 0.5659060650189364),
            (25.0, 10.0, 4.6949381426799705e-05),
            (100.0, 110.0, 0.8417213299399129),
            (10000.0, 9900.0, 0.15865119219356466),
        ],
    ),
    "igammac": (
        80,
        [
            (1e-06, 0.5, 5.597738881556345e-07),
            (0.001, 0.5, 0.0005600666564707498),
            (0.5, 1e-06, 0.9988716212090307),
            (0.5, 3.0, 0.01430587843542964),
            (3.0, 2.5, 0.5438131158833295),
            (12.0, 15.0, 0.18475179902393143),
            (25.0, 25.5, 0.4340939349810637),
            (25.0, 60.0, 1.0958807112599779e-07),
            (100.0, 110.0, 0.15827867006008708),
            (10000.0, 10100.0, 0.15865124955282037),
        ],
    ),
    "special.chebyshev_polynomial_t": (
        400,
        [
            (0.5, 6, 1.0),
            (0.25, 9, 0.7626953125),
            (-0.9, 30, 0.5698822788024726),
            (1.5, 12, 51841.0),
            (1.0001, 2000, 960661906676.3579),
        ],
    ),
    "special.chebyshev_polynomial_u": (
        400,
        [(0.5, 6, 1.0), (0.25, 9, 0.595703125), (-0.9, 30, 2.266534853927029), (1.5, 12, 121393.0)],
    ),
    "special.hermite_polynomial_h": (
        100,
        [
            (0.5, 6, 31.0),
            (0.25, 9, 6346.689453125),
            (-3.0, 30, 1.251385717091642e22),
            (10.0, 12, 2889419938329280.0),
        ],
    ),
    "special.laguerre_polynomial_l": (
        100,
        [
            (0.5, 6, -0.5041449652777777),
            (0.25, 9, -0.3242395276220177),
            (3.0, 30, 0.6840702660363648),
            (-10.0, 12, 5809067.678424456),
        ],
    ),
    "special.legendre_polynomial_p": (
        100,
        [
            (0.5, 6, 0.3232421875),
            (0.25, 9, 0.1768244206905365),
            (-0.9, 30, 0.20181239795906342),
            (1.5, 12, 18151.005744695663),
        ],
    ),
}
POLYGAMMA = [
    (1, 0.25, 17.19732915450711),
    (1, -0.75, 18.975106932284888),
    (1, 1000000.0, 1.0000005000001667e-06),
    (2, 0.5, -16.82879664423432),
    (2, -3.25, 123.95521103942203),
    (3, 10.0, 0.0023199013042898686),
    (10, 0.5, -7431824508.858769),
    (60, 20.5, -84.69233703486022),
    (200, 10.0, -7.886578711401554e173),
]


def ulp_distance(got: float, want: float, dtype: type) -> float:
    """In units of the last place of the exact value."""
    if got == want or (math.isnan(got) and math.isnan(want)):
        return 0.0
    return abs(got - want) / float(np.spacing(dtype(abs(want))))


def values_of(function, dtype, *arguments):
    tensors = [F.tensor(a, dtype=getattr(F, dtype)) for a in arguments]
    return function(*tensors).tolist()


@pytest.mark.parametrize("name", ONE)
def test_function_of_one_number_is_exact_to_a_few_ulp(name):
    allowed, points = ONE[name]
    got = values_of(attribute(F, name), "float64", [x for x, _ in points])
    for (x, want), value in zip(points, got, strict=True):
        assert ulp_distance(value, want, np.float64) <= allowed, f"{name}({x}) is {value}"


@pytest.mark.parametrize("name", TWO)
def test_function_of_two_numbers_is_exact_to_a_few_ulp(name):
    allowed, points = TWO[name]
    got = values_of(
        attribute(F, name), "float64", [a for a, _, _ in points], [b for _, b, _ in points]
    )
    for (a, b, want), value in zip(points, got, strict=True):
        assert ulp_distance(value, want, np.float64) <= allowed, f"{name}({a}, {b}) is {value}"


@pytest.mark.parametrize(("n", "x", "want"), POLYGAMMA)
def test_polygamma_is_exact_to_a_few_ulp(n, x, want):
    (got,) = F.polygamma(n, F.tensor([x], dtype=F.float64)).tolist()
    assert ulp_distance(got, want, np.float64) <= (8 if n < 100 else 2000)


@pytest.mark.parametrize("name", ONE)
def test_single_precision_is_the_rounded_value(name):
    """One ulp: float32 is computed in double, except where that would be a waste."""
    points = [
        (x, w) for x, w in ONE[name][1] if 1e-30 < abs(w) < 1e30 and float(np.float32(x)) == x
    ]
    got = values_of(attribute(F, name), "float32", [x for x, _ in points])
    for (x, want), value in zip(points, got, strict=True):
        assert ulp_distance(value, want, np.float32) <= 1.01, f"{name}({x}) is {value}"


# name -> {x: value}
EDGES = {
    "special.airy_ai": {INF: 0.0, -INF: 0.0, NAN: NAN},
    "special.bessel_j0": {0.0: 1.0, INF: 0.0, -INF: 0.0, NAN: NAN},
    "special.bessel_j1": {0.0: 0.0, INF: 0.0, -INF: 0.0, NAN: NAN},
    "special.bessel_y0": {0.0: -INF, -1.0: NAN, INF: 0.0, NAN: NAN},
    "special.bessel_y1": {0.0: -INF, -1.0: NAN, INF: 0.0, NAN: NAN},
    "i0": {0.0: 1.0, INF: INF, -INF: INF, 720.0: INF, NAN: NAN},
    "special.i0e": {0.0: 1.0, INF: 0.0, -INF: 0.0, NAN: NAN},
    "special.i1": {0.0: 0.0, INF: INF, -INF: -INF, -720.0: -INF, NAN: NAN},
    "special.i1e": {0.0: 0.0, INF: 0.0, -INF: 0.0, NAN: NAN},
    "special.modified_bessel_k0": {0.0: INF, -1.0: NAN, INF: 0.0, 800.0: 0.0, NAN: NAN},
    "special.modified_bessel_k1": {0.0: INF, -1.0: NAN, INF: 0.0, 800.0: 0.0, NAN: NAN},
    "special.scaled_modified_bessel_k0": {0.0: INF, -1.0: NAN, INF: 0.0, NAN: NAN},
    "special.scaled_modified_bessel_k1": {0.0: INF, -1.0: NAN, INF: 0.0, NAN: NAN},
    "special.spherical_bessel_j0": {0.0: 1.0, INF: 0.0, -INF: 0.0, NAN: NAN},
    "special.erfcx": {0.0: 1.0, INF: 0.0, -INF: INF, -27.0: INF, NAN: NAN},
    "special.ndtr": {INF: 1.0, -INF: 0.0, 0.0: 0.5, -40.0: 0.0, NAN: NAN},
    "special.log_ndtr": {INF: 0.0, -INF: -INF, -1e200: -INF, NAN: NAN},
    "special.ndtri": {0.0: -INF, 1.0: INF, 0.5: 0.0, -0.1: NAN, 1.1: NAN, NAN: NAN},
    "special.entr": {0.0: 0.0, 1.0: 0.0, -1.0: -INF, INF: -INF, NAN: NAN},
    "digamma": {0.0: -INF, -3.0: NAN, INF: INF, -INF: NAN, NAN: NAN},
    "lgamma": {0.0: INF, 1.0: 0.0, 2.0: 0.0, -3.0: INF, INF: INF, -INF: INF, NAN: NAN},
    "sinc": {0.0: 1.0, 1.0: 0.0, -7.0: 0.0, 1e30: 0.0, INF: NAN, NAN: NAN},
    "logit": {0.0: -INF, 1.0: INF, 0.5: 0.0, -0.5: NAN, 1.5: NAN, NAN: NAN},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EDGES)
def test_function_at_the_edges_of_its_domain(name, dtype):
    points = EDGES[name]
    got = values_of(attribute(F, name), dtype, list(points))
    for (x, want), value in zip(points.items(), got, strict=True):
        assert value == want or (math.isnan(value) and math.isnan(want)), f"{name}({x}) is {value}"


@pytest.mark.parametrize("name", [n for n in EDGES if n != "logit"])
def test_long_and_short_tensors_agree(name):
    """Vectorised blocks and what is left over of them; angles in and out of range."""
    function = attribute(F, name)
    for dtype in (F.float32, F.float64):
        x = F.linspace(-30, 30, 1037, dtype=dtype)
        x[513] = 1e30
        whole = function(x)
        single = F.stack([function(v) for v in x[505:521]])
        assert F.equal(whole[505:521].nan_to_num(nan=7), single.nan_to_num(nan=7))


def two(name, a, b, dtype="float64"):
    (value,) = values_of(attribute(F, name), dtype, [a], [b])
    return value


def test_zeta_outside_of_its_domain():
    assert two("special.zeta", 1.0, 2.0) == INF
    assert math.isnan(two("special.zeta", 0.5, 2.0))
    assert two("special.zeta", 2.0, -3.0) == INF
    assert math.isnan(two("special.zeta", 2.5, -0.5))
    assert two("special.zeta", 2.0, INF) == 0.0


def test_functions_of_far_negative_numbers_return_at_once():
    """A sum up to the sign change would take hours."""
    x = F.tensor([-1e9 - 0.5, -1e15 - 0.5], dtype=F.float64)
    assert F.polygamma(3, x).tolist() == pytest.approx([194.8181820680048] * 2, rel=1e-12)
    wanted = [9.869604400089358, 9.869604401089358]  # pi^2 less the terms beyond
    assert F.special.zeta(2, x).tolist() == pytest.approx(wanted, rel=1e-14)


def test_polynomials_of_huge_degree_return_at_once():
    x = F.tensor([0.5, 1.5, -1.5, 1.0, 1.0000000001], dtype=F.float64)
    t = F.special.chebyshev_polynomial_t(x, 10**12)
    assert t[1:].tolist() == [INF, INF, 1.0, INF]
    assert abs(t[0].item()) <= 1
    assert F.special.legendre_polynomial_p(x[:2], 10**12).tolist()[1] == INF
    assert F.special.laguerre_polynomial_l(x[:1], 10**12).isnan().all()
    assert F.special.hermite_polynomial_h(x[:1], 10**12).isnan().all()
    assert F.special.hermite_polynomial_h(F.zeros(1, dtype=F.float64), 10**12 + 1).item() == 0


def test_polynomial_of_negative_or_fractional_degree():
    x = F.tensor([0.5, 2.0])
    for name in ("chebyshev_polynomial_t", "hermite_polynomial_h", "laguerre_polynomial_l"):
        function = getattr(F.special, name)
        assert function(x, -1).tolist() == [0, 0]
        assert function(x, 2.75).tolist() == function(x, 2).tolist()


def test_incomplete_gamma_functions_at_the_edges():
    for a, x, lower in [(0, 1, 1), (1, 0, 0), (2, INF, 1), (INF, 2, 0)]:
        assert two("igamma", a, x) == lower
        assert two("igammac", a, x) == 1 - lower
    for a, x in [(0, 0), (-1, 1), (1, -1), (INF, INF), (NAN, 1)]:
        assert math.isnan(two("igamma", a, x))
        assert math.isnan(two("igammac", a, x))


def test_incomplete_gamma_functions_are_continuous_between_their_methods():
    for a in (1.5, 19.99, 20.01, 150.0):
        x = F.linspace(0.5 * a, 1.6 * a, 4001, dtype=F.float64)
        lower = F.igamma(F.tensor(a, dtype=F.float64), x)
        upper = F.igammac(F.tensor(a, dtype=F.float64), x)
        assert ((lower + upper - 1).abs() < 1e-14).all()
        assert (lower.diff() > 0).all() if a < 100 else (lower.diff() >= 0).all()


def test_derivative_that_does_not_exist_is_refused():
    """Silence would detach the graph."""
    a = F.tensor([1.5], requires_grad=True)
    for result, name in [
        (F.igamma(a, F.ones(1)), "igamma"),
        (F.special.zeta(a, 2.0), "special.zeta"),
        (F.special.airy_ai(a), "special.airy_ai"),
        (F.special.hermite_polynomial_h(a, 3), "special.hermite_polynomial_h"),
    ]:
        with pytest.raises(NotImplementedError, match=f"derivative of {name}"):
            result.sum().backward()


def test_derivatives_of_sinc_are_right_at_and_near_zero():
    x = F.tensor([0.0, 1e-6, 1e-3], dtype=F.float64, requires_grad=True)
    (first,) = F.autograd.grad(F.sinc(x).sum(), x, create_graph=True)
    (second,) = F.autograd.grad(first.sum(), x)
    assert first.tolist() == pytest.approx([0.0, -3.289868133689e-6, -3.28986489e-3], rel=1e-8)
    assert second.tolist() == pytest.approx([-3.289868133696453] * 3, rel=1e-5)


def test_second_derivatives_of_order_one_functions_at_zero():
    """The limit of a quotient: no NaN comes out of the branch that is not taken."""
    for function in (F.special.i1, F.special.i1e, F.special.bessel_j1):
        x = F.zeros(1, dtype=F.float64, requires_grad=True)
        (first,) = F.autograd.grad(function(x).sum(), x, create_graph=True)
        (second,) = F.autograd.grad(first.sum(), x)
        assert first.item() == 0.5
        assert not second.isnan().any()


def test_polygamma_as_method_takes_the_order_second():
    x = F.tensor([1.0, 2.0])
    assert F.equal(x.polygamma(1), F.polygamma(1, x))
    y = x.clone()
    assert y.polygamma_(1) is y
    assert F.equal(y, F.polygamma(1, x))
    with pytest.raises(RuntimeError, match=r"does not support negative n. Got n = -1"):
        F.polygamma(-1, x)


def test_special_namespace_has_every_name_of_pytorch():
    names = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t
        chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc
        erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln hermite_polynomial_h
        hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p
        log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
        modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w sinc softmax spherical_bessel_j0 xlog1py xlogy zeta"""
    assert set(names.split()) == set(F.special.__all__)
    assert not [n for n in dir(F.Tensor) if "." in n]


def test_aliases_compute_the_same():
    x = F.tensor([0.25, 0.75])
    assert F.equal(F.special.expit(x), F.sigmoid(x))
    assert F.equal(F.special.psi(x), F.digamma(x))
    assert F.equal(F.special.gammaln(x), F.lgamma(x))
    assert F.equal(F.special.multigammaln(x + 2, 2), F.mvlgamma(x + 2, 2))
    assert F.equal(F.special.gammaincc(x, x), F.igammac(x, x))
    assert F.equal(F.special.round(x, decimals=1), F.round(x, decimals=1))
    assert F.special.softmax(x, 0, dtype=F.float64).dtype == F.float64


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions_in_float32_are_those_in_float64_rounded(name):
    """Fewer terms are summed for float32, but as many as it takes."""
    rng = np.random.default_rng(0)
    a = F.from_numpy(np.exp(rng.uniform(-6, 6, 20000)).astype("float32"))
    x = a * F.from_numpy(np.exp(rng.normal(0, 1, 20000)).astype("float32"))
    wide = getattr(F, name)(a.double(), x.double()).numpy()
    narrow = getattr(F, name)(a, x).numpy()
    normal = wide > 1e-37
    error = np.abs(narrow.astype("float64") - wide)[normal] / np.spacing(narrow[normal])
    assert error.max() <= 0.501


def test_mvlgamma_of_many_terms():
    x = F.tensor([200.0, 300.0], dtype=F.float64, requires_grad=True)
    terms = sum(F.lgamma(x - 0.5 * j) for j in range(100)) + 25 * 99 * math.log(math.pi)
    result = F.mvlgamma(x, 100)
    assert F.allclose(result, terms, rtol=1e-13)
    (given,) = F.autograd.grad(result.sum(), x)
    (expected,) = F.autograd.grad(terms.sum(), x)
    assert F.allclose(given, expected, rtol=1e-12)
    assert F.mvlgamma(F.tensor([400]), 100).dtype is F.float32


def test_mvlgamma_of_more_terms_than_fit_into_memory():
    with pytest.raises(RuntimeError, match="memory"):
        F.mvlgamma(F.tensor([10.0]), 2**50)
