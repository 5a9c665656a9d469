// The random numbers of a worker process, where the loader makes its batches itself.
#pragma once
#include "core/thread_generator.h"
#include "python/interop.h"

namespace facula::python {

// Whether no other thread of the program can run now or draw from Python's generator.
bool runs_alone();

// While it lasts, draws are the worker's: from `generator`, a facula.Generator, in the place of the
// default one, from `twister`, a random.Random, in the place of the module's, and from the state in
// the bytearray `array_state` in the place of numpy.random's. Each may be None. Those of Python and
// NumPy belong to all threads, so runs_alone() must hold then.
class DrawingAsWorker {
 public:
  DrawingAsWorker(PyObject* generator, PyObject* twister, PyObject* array_state);
  ~DrawingAsWorker();
  DrawingAsWorker(const DrawingAsWorker&) = delete;
  // Numbers that have been drawn will be drawn again.
  void undo();

 private:
  static constexpr size_t kWords = 625;  // of a twister: a place and 624 words
  static constexpr size_t kArrayBytes = kWords * sizeof(uint32_t) + 2 * sizeof(double);

  Generator *generator_ = nullptr, *before_ = nullptr;
  Ref twister_, array_state_;
  uint8_t generator_state_[Generator::kStateBytes];
  uint32_t shared_words_[kWords];   // of the module `random`, meanwhile
  Ref shared_gauss_, own_gauss_;    // numbers that gauss() has drawn already
  char array_before_[kArrayBytes];  // the worker's, to draw again
};

void init_worker_random(PyObject* module);

}  // namespace facula::python
