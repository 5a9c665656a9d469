// The random numbers of a worker process, where the loader makes its batches itself.
#pragma once
#include "core/thread_generator.h"
#include "python/interop.h"

namespace facula::python {

// Whether no other thread of the program can run now or draw from Python's generator.
bool runs_alone();

// While it lasts, draws are the worker's: from `generator`, a facula.Generator, in the place of the
// default one, and from `twister`, a random.Random, in the place of the module's. Either may be
// None. Python's generator belongs to all threads, so runs_alone() must hold then.
class DrawingAsWorker {
 public:
  DrawingAsWorker(PyObject* generator, PyObject* twister);
  ~DrawingAsWorker();
  DrawingAsWorker(const DrawingAsWorker&) = delete;
  // Numbers that have been drawn will be drawn again.
  void undo();

 private:
  static constexpr size_t kTwisterWords = 625;  // a place and 624 words

  Generator *generator_ = nullptr, *before_ = nullptr;
  Ref twister_;
  uint8_t generator_state_[Generator::kStateBytes];
  uint32_t shared_state_[kTwisterWords];  // of the module, meanwhile
};

void init_worker_random(PyObject* module);

}  // namespace facula::python
