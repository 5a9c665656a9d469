// Hooks whose callables live in a Python dict, so that handles can remove them.
#pragma once
#include "python/py.h"

namespace facula::python {

enum class HookKind { Tensor, Node, Accumulate };

struct DictHook : GradHook {
  DictHook(PyObject* d, HookKind k) : dict(Py_NewRef(d)), kind(k) {}
  ~DictHook() override;
  void run(std::span<facula::Tensor> grads) override;
  PyObject* dict;
  HookKind kind;
};

struct DictPostHook : PostHook {
  explicit DictPostHook(PyObject* d) : dict(Py_NewRef(d)) {}
  ~DictPostHook() override;
  void run(std::span<facula::Tensor> grad_inputs,
           std::span<const facula::Tensor> grad_outputs) override;
  PyObject* dict;
};

}  // namespace facula::python
