// SPDX-License-Identifier: MIT
#pragma once
// Names without layouts, for headers that only pass these types on: by reference, by pointer, as a function's result.
//
//   #include "sdma/forward.hpp"                                   // no other header, and next to no compile time
//
//   class CopyEngine {
//    public:
//     explicit CopyEngine(const sdma::RingMemory&);
//     sdma::Errc copy(sdma::Ring<>& ring, sdma::GpuVa src, sdma::GpuVa dst, std::uint64_t bytes, const sdma::Signal&);
//   };
//
// What calls these functions, or holds such a value, includes sdma.hpp or the header of the type. Declarations only: no
// state, no errors.
#include "sdma/core/standard.hpp"

#include <cstdint>

namespace sdma { inline namespace v0_3 {

struct GpuVa;                              // core/units.hpp: an address as the GPU sees it
enum class Errc : std::uint8_t;            // core/result.hpp: why a call failed
template <class T, class E> class Result;  // core/result.hpp: a value, or why there is none
struct RingMemory;                         // queue/ring.hpp: the memory of a queue
struct Slot;                               // queue/ring.hpp: contiguous room in a ring
enum class Producers : std::uint8_t;       // queue/ring.hpp: one thread at a time, or many at once
struct Signal;                             // sync/signal.hpp: a word that engines and threads post to and wait for

namespace order {
struct Native;  // queue/order.hpp: the memory orders of real memory
}
/// queue/ring.hpp. Ring<> has one producer at a time; Producers{} is Producers::one.
template <Producers K = Producers{}, class OrderOf = order::Native> class Ring;

}}  // namespace sdma::v0_3
