// The random numbers of a worker process, where the loader makes its batches itself.
#pragma once
#include <memory>
#include <vector>

#include "core/thread_generator.h"
#include "python/interop.h"

namespace facula::python {

// Whether no other thread of the program can run now or draw from Python's generator.
bool runs_alone();

// Whether it is a random.Random whose words are known to be where they are expected, and another
// one that goes on with the same numbers.
bool is_twister(PyObject* o);
PyObject* copied_twister(PyObject* twister);

// Which generators a worker draws from.
enum Draws : unsigned { kDrawsOwn = 1, kDrawsTwister = 2, kDrawsArrays = 4 };

// Whether the loader can draw from them in the place of a worker, as it could before.
bool can_still_draw(unsigned draws);

// The generators that so many workers from `first` on begin with, in a loader whose seed is
// `base_seed`: for each the arguments of DrawingAsWorker in a tuple.
std::vector<Ref> generators_of_workers(unsigned draws, uint64_t base_seed, uint32_t first,
                                       uint32_t count);

// The words of a twister as they were, which are copied only if they are others than last time.
struct WordsBefore {
  std::unique_ptr<uint32_t[]> words;
  uint32_t place = 0;

  void note(const uint32_t* now, uint32_t at);
  void put_back(uint32_t* to) const;
};

// Where a worker's generators of Python and NumPy stood when it began to make a batch.
struct NumbersBefore {
  WordsBefore twister, arrays;
  Ref gauss;           // a number that the twister's gauss() had drawn already
  char left_over[16];  // the same of NumPy
};

// While it lasts, draws are the worker's: from `generator`, a facula.Generator, in the place of the
// default one, from `twister`, a random.Random, in the place of the module's, and from the state in
// the bytearray `arrays` in the place of numpy.random's. Each may be None. Those of Python and
// NumPy belong to all threads, so runs_alone() must hold then.
class DrawingAsWorker {
 public:
  // `before`, which is the worker's, or null: where to note what undo() needs.
  DrawingAsWorker(PyObject* generator, PyObject* twister, PyObject* arrays, NumbersBefore* before);
  ~DrawingAsWorker();
  DrawingAsWorker(const DrawingAsWorker&) = delete;
  // Numbers that have been drawn will be drawn again.
  void undo();

 private:
  Generator *generator_ = nullptr, *thread_ = nullptr;
  Ref twister_, arrays_;
  NumbersBefore* before_;
  size_t bound_ = 0;            // functions of the module `random` that draw from `twister_`
  PyObject* others_ = nullptr;  // what they drew from
  char* words_ = nullptr;       // what NumPy drew from
};

void init_worker_random(PyObject* module);

}  // namespace facula::python
