// facula._C.transforms: the levels and wrapped tensors of function transforms.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "op/ops/views.h"
#include "python/py.h"
#include "transform/batching.h"

namespace nb = nanobind;

namespace facula::python {

namespace {

const Tensor& tensor_of(const nb::object& o) {
  if (!is_tensor(o.ptr()))
    raise_python(PyExc_TypeError, "expected a Tensor, not " + type_name(o.ptr()));
  return unwrap(o.ptr());
}

nb::object object_of(const Tensor& t) {
  return nb::steal(wrap_or_none(t));
}

template <class F>
auto translated(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (nb::python_error&) {
    throw;
  } catch (...) {
    set_python_error();
    throw nb::python_error();
  }
}

const char* name_of(LevelKind k) {
  return k == LevelKind::Vmap ? "vmap" : k == LevelKind::Grad ? "grad" : "jvp";
}

const char* name_of(Randomness r) {
  return r == Randomness::Different ? "different" : r == Randomness::Same ? "same" : "error";
}

const Level& live_level(uint32_t id) {
  const Level* l = find_level(id);
  if (!l) throw nb::value_error("no transform of that level is running");
  return *l;
}

nb::tuple modes_tuple(Modes m) {  // (grad mode, forward-grad mode)
  return nb::make_tuple((m.keys & kKeyGrad) != 0, m.forward);
}

uint32_t push(const std::string& kind, int64_t batch_size, const std::string& randomness) {
  LevelKind k = kind == "vmap"   ? LevelKind::Vmap
                : kind == "grad" ? LevelKind::Grad
                                 : LevelKind::Jvp;
  Randomness r = randomness == "different" ? Randomness::Different
                 : randomness == "same"    ? Randomness::Same
                                           : Randomness::Error;
  return push_level(k, batch_size, r);
}

Tensor add_batch_dim(const Tensor& t, int64_t dim, uint32_t level) {
  dim = wrap_dim(dim, t.dim());
  return wrap_batched(dim ? op::movedim(t, Dims{dim}, Dims{0}) : t, level);
}

Tensor remove_batch_dim(const Tensor& t, uint32_t level, int64_t batch_size, int64_t out_dim) {
  Tensor value;
  if (is_wrapped_at(t, level)) {
    value = t->wrapper->value;
  } else {
    Dims sizes(t.sizes());
    sizes.insert(0, batch_size);
    value = op::expand(t, sizes);
  }
  out_dim = wrap_dim(out_dim, value.dim());
  return out_dim ? op::movedim(value, Dims{0}, Dims{out_dim}) : value;
}

}  // namespace

void init_transforms(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("transforms", "The levels of function transforms.");
  m.def("push_level", push, nb::arg("kind"), nb::arg("batch_size") = 0,
        nb::arg("randomness") = "error");
  m.def("pop_level", [] { return pop_level(); });
  m.def("current_level", [] { return current_level; });
  m.def("level_stack", [] {
    nb::list out;
    for (const Level& l : live_levels()) out.append(nb::make_tuple(l.id, name_of(l.kind)));
    return out;
  });
  m.def("level_info", [](uint32_t level) {  // kind, batch size, randomness
    const Level& l = live_level(level);
    return nb::make_tuple(name_of(l.kind), l.batch_size, name_of(l.randomness));
  });
  m.def("modes_at", [](uint32_t level) { return modes_tuple(modes_at(level)); });
  m.def("modes_outside", [](uint32_t level) {
    const Level& l = live_level(level);
    ModesGuard ours(modes_at(level));
    return modes_tuple(modes_outside(l));
  });
  m.def("hide_levels", [](uint32_t from, bool hide) { hide_levels(from, hide); });
  m.def("add_batch_dim", [](const nb::object& t, int64_t dim, uint32_t level) {
    return translated([&] { return object_of(add_batch_dim(tensor_of(t), dim, level)); });
  });
  m.def("remove_batch_dim",
        [](const nb::object& t, uint32_t level, int64_t batch_size, int64_t out_dim) {
          return translated([&] {
            return object_of(remove_batch_dim(tensor_of(t), level, batch_size, out_dim));
          });
        });
  m.def("wrap_for_grad", [](const nb::object& t, uint32_t level) {
    return translated([&] { return object_of(wrap_tracked(tensor_of(t), level)); });
  });
  m.def("unwrap_for_grad", [](const nb::object& t, uint32_t level) {
    return translated([&] {
      const Tensor& w = tensor_of(t);
      return is_wrapped_at(w, level) ? object_of(w->wrapper->value) : t;
    });
  });
  m.def(
      "make_dual",
      [](const nb::object& primal, const nb::object& tangent, uint32_t level) {
        return translated([&] {
          const Tensor& p = tensor_of(primal);
          const Tensor t = tangent.is_none() ? Tensor() : tangent_like(p, tensor_of(tangent));
          return object_of(wrap_dual(p, t, level));
        });
      },
      nb::arg(), nb::arg().none(), nb::arg());
  m.def("unpack_dual", [](const nb::object& t, uint32_t level) {
    return translated([&]() -> nb::object {
      const Tensor& w = tensor_of(t);
      if (!is_wrapped_at(w, level)) return nb::make_tuple(t, nb::none());
      return nb::make_tuple(object_of(w->wrapper->value), object_of(w->wrapper->tangent));
    });
  });
  m.def("level_of", [](const nb::object& t) {
    return translated([&]() -> int64_t {
      const Tensor& w = tensor_of(t);
      return w.is_wrapped() ? int64_t(w->wrapper->level) : -1;
    });
  });
  m.def("kind_of", [](const nb::object& t) {
    return translated([&]() -> std::string {
      const Tensor& w = tensor_of(t);
      return w.is_wrapped() ? name_of(w->wrapper->kind) : "";
    });
  });
  m.def("value_of", [](const nb::object& t) {
    return translated([&] {
      const Tensor& w = tensor_of(t);
      return w.is_wrapped() ? object_of(w->wrapper->value) : t;
    });
  });
  m.def("batch_dim_of", [](const nb::object& t) {
    return translated([&]() -> int64_t {
      const Tensor& w = tensor_of(t);
      return w.is_wrapped() && w->wrapper->kind == LevelKind::Vmap ? 0 : -1;
    });
  });
  m.def("is_forward_grad_enabled", [] { return thread_state.forward; });
  m.def("set_forward_grad_enabled", [](bool on) { thread_state.forward = on; });
}

}  // namespace facula::python
