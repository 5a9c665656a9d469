#include "cpu/hessenberg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/host_array.h"
#include "core/thread_pool.h"
#include "cpu/lapack.h"

namespace facula {
namespace {

// The real Schur form of a Hessenberg matrix (LAPACK's lahqr): steps with the two eigenvalues of
// the last corner as shifts, until the matrix falls into blocks of one and two rows.
template <class T>
class SchurForm {
 public:
  // z null: eigenvalues only, and what lies outside of the blocks is not turned.
  SchurForm(int n, T* h, int64_t ld, T* w, T* z) : n_(n), ld_(ld), h_(h), w_(w), z_(z) {}

  // Rows begin .. end; the others are triangular already. LAPACK's info.
  int run(int begin, int end) {
    for (int i = 0; i < n_; ++i)
      if (i < begin || i > end) set(i, at(i, i), T(0));
    const int most_steps = 30 * std::max(10, end - begin + 1);
    for (int last = end, steps = 0, since_found = 0; last >= begin;) {
      const int first = find_block(begin, last);
      if (first > begin) at(first, first - 1) = 0;
      if (first + 1 >= last) {
        if (first == last) {
          set(last, at(last, last), T(0));
        } else {
          turn_vectors();
          split(first);
        }
        last = first - 1;
        since_found = 0;
        continue;
      }
      if (steps++ == most_steps) return last + 1;
      step(first, last, ++since_found);
    }
    turn_vectors();
    return 0;
  }

 private:
  static constexpr T kEpsilon = std::numeric_limits<T>::epsilon();

  T& at(int i, int j) const { return h_[i + j * ld_]; }
  T size(int i, int j) const { return std::abs(at(i, j)); }
  void set(int i, T real, T imaginary) {
    w_[i] = real;
    w_[n_ + i] = imaginary;
  }

  // The first row of the block that ends with row `last`: above it the element beside the diagonal
  // is negligible by the criterion of Ahues and Tisseur.
  int find_block(int begin, int last) const {
    const T tiny = std::numeric_limits<T>::min() / kEpsilon * T(n_);
    int k = last;
    for (; k > begin; --k) {
      const T below = size(k, k - 1);
      if (below <= tiny) break;
      T near = size(k - 1, k - 1) + size(k, k);
      if (near == 0) {
        if (k - 2 >= begin) near += size(k - 1, k - 2);
        if (k + 1 <= last) near += size(k + 1, k);
      }
      if (below > kEpsilon * near) continue;
      const T beside = size(k - 1, k), gap = std::abs(at(k - 1, k - 1) - at(k, k)),
              own = size(k, k), most = std::max(own, gap), sum = most + std::max(below, beside);
      if (std::min(below, beside) * (std::max(below, beside) / sum) <=
          std::max(tiny, kEpsilon * (std::min(own, gap) * (most / sum))))
        break;
    }
    return k;
  }

  // A block of two rows: to standard form, with equal elements on the diagonal or a zero below it.
  void split(int i) {
    T c, s;
    lapack::lanv2(&at(i, i), &at(i, i + 1), &at(i + 1, i), &at(i + 1, i + 1), &w_[i], &w_[n_ + i],
                  &w_[i + 1], &w_[n_ + i + 1], &c, &s);
    if (!z_) return;
    const auto turn = [&](T& x, T& y) {
      const T turned = c * x + s * y;
      y = c * y - s * x;
      x = turned;
    };
    for (int j = i + 2; j < n_; ++j) turn(at(i, j), at(i + 1, j));
    for (int j = 0; j < i; ++j) turn(at(j, i), at(j, i + 1));
    for (int j = 0; j < n_; ++j) turn(z_[j + i * ld_], z_[j + (i + 1) * ld_]);
  }

  struct Shifts {
    T real[2], imaginary;  // conjugates, or two real ones
  };
  Shifts shifts(int first, int last, int since_found) const {
    T a = at(last - 1, last - 1), b = at(last - 1, last), c = at(last, last - 1),
      d = at(last, last);
    if (since_found % 10 == 0) {  // others, in case that these lead round in circles
      const bool low = since_found % 20 == 0;
      c = low ? size(last, last - 1) + size(last - 1, last - 2)
              : size(first + 1, first) + size(first + 2, first + 1);
      a = d = T(0.75) * c + (low ? at(last, last) : at(first, first));
      b = T(-0.4375) * c;
    }
    const T scale = std::abs(a) + std::abs(b) + std::abs(c) + std::abs(d);
    if (scale == 0) return {};
    a /= scale, b /= scale, c /= scale, d /= scale;
    const T middle = (a + d) / 2, square = (a - middle) * (d - middle) - b * c,
            root = std::sqrt(std::abs(square));
    if (square >= 0) return {{middle * scale, middle * scale}, root * scale};
    const T high = middle + root, low = middle - root,
            nearer = (std::abs(high - d) <= std::abs(low - d) ? high : low) * scale;
    return {{nearer, nearer}, 0};
  }

  void step(int first, int last, int since_found) {
    const Shifts s = shifts(first, last, since_found);
    // It starts at the last row where two small elements beside the diagonal follow each other.
    T v[3];
    int m = last - 2;
    for (;; --m) {
      const T x = at(m, m), y = at(m + 1, m + 1);
      const T scale = std::abs(x - s.real[1]) + std::abs(s.imaginary) + std::abs(at(m + 1, m));
      const T below = at(m + 1, m) / scale;
      v[0] = below * at(m, m + 1) + (x - s.real[0]) * ((x - s.real[1]) / scale) +
             s.imaginary * (s.imaginary / scale);
      v[1] = below * (x + y - s.real[0] - s.real[1]);
      v[2] = below * at(m + 2, m + 1);
      const T sum = std::abs(v[0]) + std::abs(v[1]) + std::abs(v[2]);
      for (T& part : v) part /= sum;
      if (m == first) break;
      if (size(m, m - 1) * (std::abs(v[1]) + std::abs(v[2])) <=
          kEpsilon * std::abs(v[0]) * (size(m - 1, m - 1) + std::abs(x) + std::abs(y)))
        break;
    }
    const size_t groups = groups_.size();
    groups_.resize(groups + size_t((last - m) / Reflections<T>::kMost + 1));
    const int count = bulge_chase<T>().chase(m, last, m > first, v, z_ ? 0 : first,
                                             z_ ? n_ : last + 1, h_, ld_, &groups_[groups]);
    groups_.resize(z_ ? groups + size_t(count) : 0);
    constexpr size_t kMostGroups =
        256;  // of several steps, which a strip of rows then goes through
    if (groups_.size() >= kMostGroups) turn_vectors();
  }

  // By what was done to the matrix since. Rows of z do not wait for each other.
  void turn_vectors() {
    if (groups_.empty()) return;
    constexpr int kRows = int(kHessenbergPadding<T>);
    const auto strip_work = int64_t(groups_.size()) * Reflections<T>::kMost * kRows;
    parallel_for(0, (n_ + kRows - 1) / kRows, std::max<int64_t>(200'000 / strip_work, 5),
                 [&](int64_t begin, int64_t end) {
                   bulge_chase<T>().turn(groups_.data(), int(groups_.size()), int(begin) * kRows,
                                         std::min(int(end) * kRows, n_), z_, ld_);
                 });
    groups_.clear();
  }

  int n_;
  int64_t ld_;
  T *h_, *w_, *z_;
  std::vector<Reflections<T>> groups_;
};

// Vectors of length 1; of pairs the largest element is real.
template <class T>
void normalize(int n, const T* imaginary, T* vectors) {
  for (int j = 0; j < n; ++j) {
    T *re = vectors + int64_t(j) * n, *im = re + n;
    const bool pair = imaginary[j] != 0 && j + 1 < n;
    double square = 0;
    for (int i = 0; i < (pair ? 2 * n : n); ++i) square += double(re[i]) * double(re[i]);
    const T scale = T(1 / std::sqrt(square));
    for (int i = 0; i < (pair ? 2 * n : n); ++i) re[i] *= scale;
    if (!pair) continue;
    ++j;
    int largest = 0;
    T most = -1;
    for (int i = 0; i < n; ++i) {
      const T size = re[i] * re[i] + im[i] * im[i];
      if (size > most) most = size, largest = i;
    }
    const T length = std::hypot(re[largest], im[largest]), c = re[largest] / length,
            s = im[largest] / length;
    for (int i = 0; i < n; ++i) {
      const T x = re[i];
      re[i] = c * x + s * im[i];
      im[i] = c * im[i] - s * x;
    }
    im[largest] = 0;
  }
}

}  // namespace

template <class T>
int real_eig(int n, T* a, T* w, T* vectors) {
  constexpr int kBlock = 32;  // columns that LAPACK takes at a time
  const int64_t ld = hessenberg_stride<T>(n), size = hessenberg_size<T>(n);
  const int work_size = (2 * kBlock + 2) * n + (kBlock + 1) * kBlock;
  const HostArray<T> scale(n), tau(n), work(work_size), room(vectors ? 2 * size : size);
  int begin, end;
  if (const int info = lapack::gebal('B', n, a, n, &begin, &end, scale.data())) return info;
  if (const int info = lapack::gehrd(n, begin, end, a, n, tau.data(), work.data(), work_size))
    return info;
  std::fill_n(room.data(), vectors ? 2 * size : size, T(0));
  T *h = room.data() + kHessenbergPadding<T>, *z = vectors ? h + size : nullptr;
  for (int j = 0; j < n; ++j) std::copy_n(a + int64_t(j) * n, std::min(j + 2, n), h + j * ld);
  if (vectors) {
    if (const int info = lapack::orghr(n, begin, end, a, n, tau.data(), work.data(), work_size))
      return info;
    for (int j = 0; j < n; ++j) std::copy_n(a + int64_t(j) * n, n, z + j * ld);
  }
  SchurForm<T> schur(n, h, ld, w, z);
  if (const int info = schur.run(begin - 1, end - 1)) return info;
  if (!vectors) return 0;
  for (int j = 0; j < n; ++j) std::copy_n(z + j * ld, n, vectors + int64_t(j) * n);
  if (const int info = lapack::trevc3('R', 'B', n, h, int(ld), vectors, n, work.data(), work_size))
    return info;
  lapack::gebak('B', 'R', n, begin, end, scale.data(), n, vectors, n);
  normalize(n, w + n, vectors);
  return 0;
}

template int real_eig<float>(int, float*, float*, float*);
template int real_eig<double>(int, double*, double*, double*);

}  // namespace facula
