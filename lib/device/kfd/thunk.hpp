// SPDX-License-Identifier: MIT
#pragma once
// libhsakmt, loaded at run time: the functions that a device needs, and the part of the ABI that they use.
//
//   auto t = load_thunk("libhsakmt.so.1");      // a Diagnostic says what to install
//   (*t)->open();                               // calls hsaKmtOpenKFD
//
// The ABI is stated here and not taken from <hsakmt.h>. A build therefore needs no header, and one binary works
// both with a library that has hsaKmtCreateQueueExt and with an older one. Structures that grow from version to
// version get extra room (Grown), and only their first members are read. tests/device/kfd_abi.cpp compares all of
// this with the headers.
//
// Loaded once per name and never unloaded: the library installs fork handlers and uses thread-local storage. Any thread
// may use it.
#include "../loaded_library.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sdma { inline namespace v0_3 { namespace detail::thunk {

using Status = std::uint32_t;
inline constexpr Status kSuccess = 0, kNoMemory = 6, kTooSmall = 7, kAlreadyOpened = 22;
/// What a status means, in a few words that do not name a function.
const char* message(Status) noexcept;

// Values of HSA_QUEUE_TYPE, HSA_EVENTTYPE and HSA_HEAPTYPE.
inline constexpr std::uint32_t kQueueSdma = 2, kQueueSdmaXgmi = 5, kQueueSdmaByEngine = 6;
inline constexpr std::uint32_t kEventSignal = 0;
inline constexpr std::uint32_t kHeapMmioRemap = 7;

/// HsaMemFlags: a struct of one dword, passed by value.
struct MemoryFlags {
  std::uint32_t value{};
};
inline constexpr std::uint32_t kNonPaged = 0x1, kHostAccess = 0x40, kNoSubstitute = 0x80, kExecute = 0x1000,
                               kCoarse = 0x2000, kNoNumaBind = 0x10000, kUncached = 0x20000;
/// HsaMemMapFlags: the same layout; here always zero.
struct MapFlags {
  std::uint32_t value{};
};

#pragma pack(push, 4)  // as in <hsakmttypes.h>
struct Version {
  std::uint32_t major{}, minor{};
};
struct SystemProperties {
  std::uint32_t nodes{}, platform_oem{}, platform_id{}, platform_rev{};
};
struct NodeProperties {  // its first members
  std::uint32_t cpu_cores{}, simds{}, memory_banks{};
};
struct MemoryProperties {
  std::uint32_t heap{};
  std::uint64_t bytes{};
  std::uint32_t flags{}, width{}, clock{};
  std::uint64_t base{};
};
struct QueueResource {
  std::uint64_t queue{};
  std::uint64_t *doorbell{}, *wptr{}, *rptr{};
  std::int64_t* error{};
};
struct GraphicsResource {
  void* address{};
  std::uint64_t bytes{};
  const void* metadata{};
  std::uint32_t metadata_bytes{}, node{};
};
struct EventDescriptor {
  std::uint32_t type{}, node{};
  std::uint64_t user{}, user_bytes{};
};
struct Event {
  std::uint32_t id{}, type{};
  std::byte data[20]{};
  std::uint64_t handle{}, mailbox{};
  std::uint32_t trap_context{};
};
#pragma pack(pop)

/// A struct with extra room, because newer libraries write more members than are declared here.
template <class T> struct alignas(8) Grown {
  T known{};
  std::byte more[1024]{};
};

struct Thunk {
  LoadedLibrary library;
  Status (*open)() = library["hsaKmtOpenKFD"];
  Status (*close)() = library["hsaKmtCloseKFD"];
  Status (*version)(Version*) = library["hsaKmtGetVersion"];
  Status (*acquire_system)(SystemProperties*) = library["hsaKmtAcquireSystemProperties"];
  Status (*node)(std::uint32_t node, NodeProperties*) = library["hsaKmtGetNodeProperties"];
  Status (*memory)(std::uint32_t node, std::uint32_t banks,
                   MemoryProperties*) = library["hsaKmtGetNodeMemoryProperties"];
  Status (*allocate)(std::uint32_t node, std::uint64_t bytes, MemoryFlags,
                     void** address) = library["hsaKmtAllocMemory"];
  Status (*free)(void* address, std::uint64_t bytes) = library["hsaKmtFreeMemory"];
  Status (*map)(void* address, std::uint64_t bytes, std::uint64_t* gpu_va, MapFlags, std::uint64_t nodes,
                std::uint32_t* node_array) = library["hsaKmtMapMemoryToGPUNodes"];
  Status (*unmap)(void* address) = library["hsaKmtUnmapMemoryToGPU"];
  Status (*create_event)(EventDescriptor*, bool manual_reset, bool signalled, Event**) = library["hsaKmtCreateEvent"];
  Status (*destroy_event)(Event*) = library["hsaKmtDestroyEvent"];
  Status (*destroy_queue)(std::uint64_t queue) = library["hsaKmtDestroyQueue"];
  Status (*update_queue)(std::uint64_t queue, std::uint32_t percentage, std::int32_t priority, void* ring,
                         std::uint64_t bytes, Event*) = library["hsaKmtUpdateQueue"];
  // Null where the library cannot share memory. `handle`: 8 dwords.
  Status (*share)(void* address, std::uint64_t bytes, std::uint32_t* handle) = library.may("hsaKmtShareMemory");
  Status (*open_shared)(const std::uint32_t* handle, void** address,
                        std::uint64_t* bytes) = library.may("hsaKmtRegisterSharedHandle");
  Status (*close_shared)(void* address) = library.may("hsaKmtDeregisterMemory");
  // Null where the library makes or takes no DMABUFs.
  Status (*export_dmabuf)(void* address, std::uint64_t bytes, int* fd,
                          std::uint64_t* offset) = library.may("hsaKmtExportDMABufHandle");
  Status (*open_dmabuf)(std::uint64_t fd, GraphicsResource*, std::uint64_t nodes,
                        std::uint32_t* node_array) = library.may("hsaKmtRegisterGraphicsHandleToNodes");
  /// Null in older libraries: the device then calls the kernel driver directly.
  Status (*create_queue)(std::uint32_t node, std::uint32_t type, std::uint32_t percentage, std::int32_t priority,
                         std::uint32_t engine, void* ring, std::uint64_t bytes, Event*,
                         QueueResource*) = library.may("hsaKmtCreateQueueExt");
};

Result<const Thunk*, Diagnostic> load_thunk(const std::string& name);

}}}  // namespace sdma::v0_3::detail::thunk
