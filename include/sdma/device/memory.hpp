// SPDX-License-Identifier: MIT
#pragma once
// The memory, signals and events that a device lends. The destructor of a handle gives back what the handle holds.
//
//   Memory a = *device.allocate({.where = GpuId{0}, .bytes = 1 << 20});
//   a.host()[5] = std::byte{1};              // if the host can reach it (all host memory; VRAM of a large-BAR GPU)
//   ring.submit(CopyLinear{.src = a.va(), .dst = b, .bytes = n});
//
//   SignalMemory done = *device.create_signal();
//   ring.submit(Atomic{.addr = done->va, .value = 1});
//   wait(*done, Compare::eq, 1, deadline, ring);
//
//   Event e = *device.create_event();        // to block without polling: a mailbox and an interrupt
//   ring.submit(Fence{.addr = e.mailbox(), .value = e.id()}, Trap{.context = e.id()});
//   device.wait_event(e, deadline);
//
// Destroy queues before the memory that their packets refer to: an engine may touch that memory until the queue's
// destructor returns. So declare queues after memory. Handles may outlive the device: the memory stays until they are
// destroyed.
//
// Handles are move-only, and each belongs to one thread at a time. Any threads may share the memory itself. No errors:
// the device that creates a handle reports them.
//
// Memory of several processes: one creates and shares it, the others open it.
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
// Signals. A signal is a word in memory. Memory of Purpose::words is therefore shared like any other memory, and both
// processes create signals from its words:
//
//   Signal ready = *device.signal_at(m, 64);              // the word at byte 64 of memory of one's own, or opened
//   wait(ready, Compare::ge, 1, deadline);                // a store of any process or engine ends it
//
// On the software device, a store wakes the threads and engines that wait in a process whose memory this process has
// opened. Other stores of other processes do not, so threads and software engines also check a shared word at least
// every millisecond.
//
// Lifetime. A handle is valid while the owner's device is open and the owner holds the memory; after that,
// `open_shared` fails. It never opens other memory, because no two objects have the same random bits. Opened memory
// stays mapped until its own handle is destroyed, even after the owner has ended. `Device::origin` names the process
// that shared an address, and says whether it has ended: call it after a wait that timed out.
//
// A handle is not a secret: the owner serves only processes of its own effective user, and a client opens only what a
// process of its own user serves. Both run on one machine, in one network namespace, because the socket is abstract.
//
// A fork does not copy a device (device/device.hpp). Like any process, a child opens its own device, and then the
// handles of the parent. A shared object needs a descriptor of the owner while the owner holds it, and open memory
// needs one per owner.
//
// DMABUFs and IPC handles are the driver's own names, for runtimes and drivers that do not use this library:
//
//   Dmabuf b = *device.export_dmabuf(m);                  // b.fd() goes to a network card, a display, another runtime
//   Memory n = *device.import_dmabuf({.fd = fd, .bytes = bytes, .where = GpuId{0}});
//   IpcHandle h = *device.export_ipc(m);                  // h.words is an hsa_amd_ipc_memory_t
//   Memory o = *device.import_ipc(h, GpuId{0});
//
//            DMABUFs                                     IPC handles
//   soft     descriptors of shareable memory             no
//   kfd      hsaKmtExportDMABufHandle,                   hsaKmtShareMemory, hsaKmtRegisterSharedHandle
//            hsaKmtRegisterGraphicsHandleToNodes
//   rocr     hsa_amd_portable_export_dmabuf,             hsa_amd_ipc_memory_create, _attach
//            hsa_amd_interop_map_buffer
//   cuda     no                                          no
//
// The host cannot reach imported memory, except on the software device. Between processes that both use this library,
// share and open_shared are better: the handle ends with the memory, and says whose it is.
//
// Thread-safe, as Device is. Errors: a Diagnostic says why memory cannot be shared or opened; at the limit of
// descriptors, it names the limit. `open_shared` waits for the owner, at most ten seconds. To give memory back waits
// for no engine.
#include "sdma/core/lease.hpp"
#include "sdma/core/units.hpp"
#include "sdma/sync/signal.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace sdma { inline namespace v0_3 {

/// What memory is for. The KFD device chooses the memory's flags accordingly.
enum class Purpose : std::uint8_t {
  data,    ///< bytes that engines copy
  words,   ///< signals, flags, timestamps: uncached if that matters
  packets  ///< rings and indirect buffers that the host writes
};

/// A request for memory.
struct MemoryRequest {
  std::optional<GpuId> where{};     ///< whose memory; nullopt: the host's
  std::uint64_t bytes{};            ///< 1 or more
  std::uint64_t alignment = 4096;   ///< of the host address and the VA: a power of two
  std::uint64_t gpus = ~0ull;       ///< bit g: GPU g may access it
  Purpose purpose = Purpose::data;  ///< how engines and the host use it
  bool host_access = true;          ///< for a GPU's memory: map it for the host too
  bool shareable = false;           ///< other processes may open it
};

/// Memory at one GPU address, the same for every GPU that may access it. Host memory is zeroed; the contents of a GPU's
/// memory are undefined.
class Memory {
 public:
  Memory() = default;
  Memory(Lease lease, GpuVa va, std::uint64_t bytes, std::byte* host) noexcept
      : lease_(std::move(lease)), va_(va), bytes_(bytes), host_(host) {}

  /// The address of its first byte, as engines see it.
  GpuVa va() const noexcept { return va_; }
  /// Its length in bytes.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// All of the memory as the host sees it; empty if the host cannot reach it.
  std::span<std::byte> host() const noexcept { return {host_, host_ ? static_cast<std::size_t>(bytes_) : 0}; }
  /// The same bytes as an array of the trivial type `T`.
  template <class T> std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(host_), host_ ? static_cast<std::size_t>(bytes_ / sizeof(T)) : 0};
  }
  /// Its number on its device.
  std::uint64_t id() const noexcept { return lease_.id(); }
  /// Gives it back now.
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  GpuVa va_{};
  std::uint64_t bytes_ = 0;
  std::byte* host_ = nullptr;
};

/// A request for a signal.
struct SignalRequest {
  std::optional<GpuId> where{};  ///< whose memory; nullopt: the host's, which is right if a host thread waits
  std::uint64_t value{};         ///< the initial value
};

/// A signal's 64-bit word, alone on its cache line.
class SignalMemory {
 public:
  SignalMemory() = default;
  SignalMemory(Lease lease, const Signal& s) noexcept : lease_(std::move(lease)), signal_(s) {}

  const Signal& operator*() const noexcept { return signal_; }
  const Signal* operator->() const noexcept { return &signal_; }
  /// Gives it back now.
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  Signal signal_{};
};

/// An interrupt that a thread can wait for. A TRAP takes effect only if an earlier FENCE has stored the id in the
/// mailbox; the wake-up clears the mailbox. One waiter at a time.
class Event {
 public:
  Event() = default;
  Event(Lease lease, GpuVa mailbox, std::uint32_t id) noexcept : lease_(std::move(lease)), mailbox_(mailbox), id_(id) {}

  /// The address of the word to which a fence stores `id` before the TRAP.
  GpuVa mailbox() const noexcept { return mailbox_; }
  /// The event's number: Trap::context, and the value of the fence.
  std::uint32_t id() const noexcept { return id_; }
  /// Gives it back now.
  void reset() noexcept { lease_.reset(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }

 private:
  Lease lease_;
  GpuVa mailbox_{};
  std::uint32_t id_ = 0;
};

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
/// A descriptor by which drivers share memory. It is closed with this object; the memory stays while a descriptor or a
/// mapping of it is left. Move-only.
class Dmabuf {
 public:
  Dmabuf() = default;
  /// Takes the descriptor.
  Dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept : fd_(fd), offset_(offset), bytes_(bytes) {}
  Dmabuf(Dmabuf&& o) noexcept : fd_(std::exchange(o.fd_, -1)), offset_(o.offset_), bytes_(o.bytes_) {}
  Dmabuf& operator=(Dmabuf&& o) noexcept {
    std::swap(fd_, o.fd_);
    std::swap(offset_, o.offset_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Dmabuf();

  /// The descriptor; -1: none.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// The descriptor, which the caller closes.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Where the memory begins in the DMABUF, in bytes: a driver exports whole allocations.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// The length of the memory in bytes.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  int fd_ = -1;
  std::uint64_t offset_{}, bytes_{};
};
/// What to import from a DMABUF, which stays the caller's.
struct DmabufRequest {
  int fd = -1;                   ///< the descriptor
  std::uint64_t offset{};        ///< where the memory begins in it, in bytes
  std::uint64_t bytes{};         ///< of the memory, 1 or more
  std::optional<GpuId> where{};  ///< whose memory it is; nullopt: the host's, or not known
  std::uint64_t gpus = ~0ull;    ///< bit g: GPU g may access it
};
/// Names memory for the IPC of ROCr or libhsakmt. Plain bytes, for a process with the same driver and library.
struct IpcHandle {
  std::array<std::uint32_t, 8> words{};  ///< hsa_amd_ipc_memory_t, or libhsakmt's HsaSharedMemoryHandle
  std::uint64_t offset{};                ///< where the memory begins in what `words` names, in bytes
  std::uint64_t bytes{};                 ///< of the memory
  friend bool operator==(const IpcHandle&, const IpcHandle&) = default;
};
static_assert(std::is_trivially_copyable_v<IpcHandle> && sizeof(IpcHandle) == 48);

/// A process whose memory this one has opened.
struct MemoryOwner {
  std::uint32_t process{};  ///< its number
  bool ended{};             ///< it has ended; its memory stays mapped
  friend bool operator==(const MemoryOwner&, const MemoryOwner&) = default;
};
static_assert(std::is_trivially_copyable_v<SharedHandle> && sizeof(SharedHandle) == 48);

}}  // namespace sdma::v0_3
