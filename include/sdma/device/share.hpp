// SPDX-License-Identifier: MIT
#pragma once
// Memory that several processes use: one creates and shares it, the others open it.
//
//   owner                                                 another process
//   Memory m = *device.allocate({.where = GpuId{0},
//                 .bytes = n, .shareable = true});
//   SharedHandle h = *device.share(m);
//   send(&h, sizeof h);                       ------->    receive(&h, sizeof h);          // a file, a socket, MPI
//   ...                                                   Memory m = *device.open_shared(h);
//                                                         ring.submit(CopyLinear{.src = mine, .dst = m.va(), ...});
//
//   handle   names  -->  a socket of the owner's device (abstract, named after 128 random bits)
//            names  -->  an object of that device (64 random bits)
//   open_shared     -->  the owner's thread sends the object's descriptor, or the name that the driver knows it by
//
// The two processes see the same bytes at different addresses. A program exchanges handles once; afterwards engines and
// host threads of each process store to the memory, and no call of this interface is needed.
//
// Signals. A signal is a word in memory, so memory of Purpose::words is shared as any other, and both processes make
// signals of its words:
//
//   Signal ready = *device.signal_at(m, 64);              // the word at byte 64 of memory of one's own, or opened
//   wait(ready, Compare::ge, 1, deadline);                // a store of any process or engine ends it
//
// On the software device, a store wakes what waits in a process whose memory this one has opened. No other store of
// another process does: threads and software engines also check a shared word at least every millisecond.
//
// Life. A handle is good while the owner's device is open and the owner holds the memory; after that, `open_shared`
// fails. It never opens other memory, because nothing has the same random bits. What is open stays mapped until its own
// handle is destroyed, even after the owner has ended. `Device::origin` names the process that shared an address, and
// says whether it has ended: call it after a wait that timed out.
//
// A handle is not a secret: the owner serves only processes of its own effective user, and a client opens only what a
// process of its own user serves. Both run on one machine, in one network namespace, because the socket is abstract.
//
// A fork copies no device (device/device.hpp). A child opens its own device, and handles of the parent, as any process.
// A shared object needs a descriptor of the owner while the owner holds it, and open memory needs one per owner.
//
// Thread-safe, as Device is. Errors: a Diagnostic says why memory cannot be shared or opened; at the limit of
// descriptors, it names the limit. `open_shared` waits for the owner, at most ten seconds.
#include "sdma/core/standard.hpp"

#include <array>
#include <cstdint>
#include <type_traits>

namespace sdma::inline v0 {

/// Names memory of another process. Plain bytes, to be copied and sent in any way to a process of the same machine.
struct SharedHandle {
  static constexpr std::uint32_t kVersion = 1;  ///< of this layout and of what the socket says
  std::uint32_t version{};                      ///< kVersion; 0: the handle names nothing
  std::uint32_t process{};                      ///< the number of the owner's process, for messages
  std::array<char, 8> device{};                 ///< the kind of device, "soft"; zero after the name
  std::array<std::uint64_t, 2> socket{};        ///< random: the name of the socket
  std::uint64_t object{};                       ///< random: the object
  std::uint64_t bytes{};                        ///< its size
  friend bool operator==(const SharedHandle&, const SharedHandle&) = default;
};
/// A process whose memory this one has opened.
struct MemoryOwner {
  std::uint32_t process{};  ///< its number
  bool ended{};             ///< it has ended; its memory stays mapped
  friend bool operator==(const MemoryOwner&, const MemoryOwner&) = default;
};
static_assert(std::is_trivially_copyable_v<SharedHandle> && sizeof(SharedHandle) == 48);

}  // namespace sdma::inline v0
