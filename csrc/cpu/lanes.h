// How many numbers a vector of the machine holds. In the ISA's namespace, so that no build can end
// up with another one's code. Wider vectors would be legal, but compilers keep those in memory and
// take choices between them apart, lane by lane.
#pragma once

namespace facula::FACULA_ISA {

#if defined(__AVX512BW__)
constexpr int kLaneBytes = 64;
#elif defined(__AVX2__)
constexpr int kLaneBytes = 32;
#else
constexpr int kLaneBytes = 16;
#endif
template <class T>
constexpr int kLanes = kLaneBytes / int(sizeof(T));

}  // namespace facula::FACULA_ISA
