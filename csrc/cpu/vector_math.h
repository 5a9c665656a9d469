// All of facula::math: the functions that operator formulas and CPU loops call.
#pragma once
#include "cpu/math_activations.h"
#include "cpu/math_basic.h"
#include "cpu/math_bits.h"
#include "cpu/math_complex.h"
#include "cpu/math_exp.h"
#include "cpu/math_special.h"
#include "cpu/math_trig.h"
