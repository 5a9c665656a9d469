// Function transforms: the stack of levels and the tensors that stand for others inside of them.
#pragma once
#include <deque>

#include "op/def.h"

namespace facula {

enum class LevelKind : uint8_t { Vmap, Grad, Jvp };
enum class Randomness : uint8_t { Error, Different, Same };

// One transform that is running: vmap, a tape of its own, or forward mode.
struct Level {
  uint32_t id;  // never used twice; a larger one is further inside
  LevelKind kind;
  int64_t batch_size;
  Randomness randomness;
  // The modes around the transform. What is off there is off for the outer levels, whatever code
  // inside says; no_grad inside of a level holds for all.
  uint8_t keys_before;
  bool forward_before;
  int hidden;  // from random operators, while they are handled further out
};

// What a wrapped tensor stands for. The tensor itself has the geometry that its user sees.
struct Wrapper {
  std::atomic<uint32_t> refs{1};
  uint32_t level;
  LevelKind kind;
  Tensor value;    // of an outer level; under vmap with the batch as its first dimension
  Tensor tangent;  // of a Jvp level; undefined means zero
};

uint32_t push_level(LevelKind kind, int64_t batch_size = 0,
                    Randomness randomness = Randomness::Error);
uint32_t pop_level();  // 0 when there was none
const std::deque<Level>& live_levels();
const Level* find_level(uint32_t id);  // null when it is over
// Raises where the truth of a tensor is asked for that stands for a batch.
void refuse_branch(const Tensor& t);

// The modes that hold for the tape and the forward derivatives of a level (0: plain tensors).
struct Modes {
  uint8_t keys;
  bool forward;
};
Modes modes_at(uint32_t level);
Modes modes_outside(const Level& level);  // of the levels around it, from code in it

// Random operators are for the innermost vmap that is not hidden; 0 when there is none.
uint32_t innermost_vmap();
void hide_levels(uint32_t from, bool hide);  // that level and all inside of it

struct ModesGuard {  // for a scope, as seen by code of another level
  ThreadState saved = thread_state;
  explicit ModesGuard(Modes m) {
    thread_state.enabled_keys = m.keys;
    thread_state.forward = m.forward;
  }
  ~ModesGuard() {
    thread_state.enabled_keys = saved.enabled_keys;
    thread_state.forward = saved.forward;
  }
};

inline uint32_t level_of(const Tensor& t) {
  return t.is_wrapped() ? t->wrapper->level : 0;
}
inline bool is_wrapped_at(const Tensor& t, uint32_t level) {
  return t.is_wrapped() && t->wrapper->level == level;
}

// Whether the tensor stands for others at a level of this kind, inside or out.
bool is_wrapped_by(const Tensor& t, LevelKind kind);
// Whether a tape or forward mode, of any level, follows what is computed from the tensor.
bool is_followed(const Tensor& t);

Tensor wrap_batched(const Tensor& value, uint32_t level);  // hides the first dimension
Tensor wrap_tracked(const Tensor& value, uint32_t level);
Tensor wrap_dual(const Tensor& value, const Tensor& tangent, uint32_t level);
// A tangent with the strides of its primal: views of both must be the same parts, and whether a
// view exists depends on strides.
Tensor tangent_like(const Tensor& primal, const Tensor& tangent);
// Makes a tensor stand for what it was so far, so that tensors of the level can be written to it.
void become_wrapped(const Tensor& t, LevelKind kind, uint32_t level);
// The same for several levels, outermost first, some of them vmap: the tensor gets a copy of what
// it holds for every element of the batches. Only for tensors without history that were made inside
// of the levels and share their memory with nobody but their base; false for others.
bool become_batched(const Tensor& t, const std::vector<uint32_t>& levels);
// The same tensor without wrappers of levels that are over.
Tensor strip_dead(const Tensor& t);
// The tensor in memory that can be read: the value behind wrappers, with lazy bits computed. Inside
// of vmap there is no single value, which `what` (".item()") is told.
Tensor readable(const Tensor& t, const char* what);
// Brings the geometry of a wrapped tensor up to date after its value changed shape in place.
void refresh_geometry(const Tensor& t);

}  // namespace facula
