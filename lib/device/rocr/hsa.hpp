// SPDX-License-Identifier: MIT
#pragma once
// libhsa-runtime64, loaded at run time: the calls that a device needs, and the part of the ABI that they use.
//
//   auto h = load("");                        // the ROCr of this process, else libhsa-runtime64.so.1
//   (*h)->init();                             // calls hsa_init
//   (*h)->create_queues                       // null: this ROCr does not export hsa_amd_queue_create
//
// The ABI is stated here for the reasons in ../kfd/thunk.hpp; tests/device/rocr_abi.cpp compares it with the headers,
// as far as those that are installed go. What no installed header has is from public headers of interface 1.31.
//
// Loaded once per name and never unloaded. Any thread may use it.
#include "../kfd/thunk.hpp"
#include "../loaded_library.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sdma { inline namespace v0_3 { namespace detail::rocr {

using Status = std::uint32_t;
inline constexpr Status kSuccess = 0, kNotHandled = 0x1000, kMemoryFault = 43, kInvalidQueueCreation = 0x1002,
                        kOutOfResources = 0x1008;

struct Agent {
  std::uint64_t handle{};
  friend bool operator==(const Agent&, const Agent&) = default;
};
struct Pool {
  std::uint64_t handle{};
};
struct SignalHandle {
  std::uint64_t handle{};
};

// Attributes: of the system, of an agent, of a pool, of a pool for an agent, of a queue, of an earlier queue.
inline constexpr std::uint32_t kVersionMajor = 0, kVersionMinor = 1;
inline constexpr std::uint32_t kDevice = 17, kDriverNode = 0xa004, kHdpFlush = 0xa00e;
inline constexpr std::uint32_t kSegment = 0, kGlobalFlags = 1, kMayAllocate = 5;
inline constexpr std::uint32_t kAccess = 0;
inline constexpr std::uint32_t kFaultSeen = 10, kFaultAddress = 11, kFaultReason = 12, kEngineIndex = 14,
                               kRptrAddress = 15, kWptrAddress = 16;
inline constexpr std::uint32_t kEarlierResource = 0;

inline constexpr std::uint32_t kCpu = 0, kGpu = 1;                                   // of kDevice
inline constexpr std::uint32_t kKernarg = 1, kFine = 2, kCoarse = 4, kExtended = 8;  // of kGlobalFlags
inline constexpr std::uint32_t kNever = 0;                                           // of kAccess
inline constexpr std::uint32_t kReadOnly = 1u << 1;  // of kFaultReason and MemoryFault::reason

struct HdpFlush {
  std::uint32_t *memory{}, *registers{};
};

enum class PointerType : std::uint32_t { unknown, allocated, locked, graphics, ipc };
struct PointerInfo {
  std::uint32_t size{};
  PointerType type{};
  std::byte *agent_base{}, *host_base{};
  std::size_t bytes{};
  void* user{};
  Agent owner{};
  std::uint32_t flags{};
};

/// A signal as engines and ROCr's threads see it; a doorbell is one, too.
struct SignalWords {
  std::int64_t kind{};
  union {
    std::int64_t value{};
    std::uint64_t* doorbell;
  };
  std::uint64_t mailbox{};
  std::uint32_t event{};
};
inline constexpr std::int64_t kDoorbell = -1;

struct HsaQueue {
  std::uint32_t type{}, features{};
  void* base{};
  SignalHandle doorbell{};
  std::uint32_t size{}, reserved{};
  std::uint64_t id{};
};

using QueueCallback = void (*)(Status, HsaQueue*, void* data);
struct QueueDescriptor {
  std::uint16_t version = 1, flags = 0;
  std::uint8_t engine_type = kSdmaEngine, reserved_5[3]{};
  std::uint32_t bytes{}, priority = kNormal;
  QueueCallback callback{};
  void* callback_data{};
  HsaQueue* queue{};
  std::uint32_t engine = kAnyEngine, reserved_44[7]{};
  std::uint32_t traffic_class{}, reserved_76[5]{};

  static constexpr std::uint8_t kSdmaEngine = 1;
  static constexpr std::uint32_t kLow = 0, kNormal = 1, kHigh = 2, kAnyEngine = ~0u;
};
static_assert(sizeof(QueueDescriptor) == 96 && offsetof(QueueDescriptor, bytes) == 8 &&
              offsetof(QueueDescriptor, priority) == 12 && offsetof(QueueDescriptor, callback) == 16 &&
              offsetof(QueueDescriptor, queue) == 32 && offsetof(QueueDescriptor, engine) == 40 &&
              offsetof(QueueDescriptor, traffic_class) == 72);

/// A queue of the earlier form, as hsa_amd_sdma_queue_get_info describes it.
struct EarlierResource {
  void* base{};
  std::uint64_t bytes{};
  std::uint64_t *rptr{}, *wptr{}, *doorbell{};
};

struct SystemEvent {
  std::uint32_t type{};
  struct {
    Agent agent{};
    std::uint64_t address{};
    std::uint32_t reason{};
  } fault{};
};
inline constexpr std::uint32_t kEventMemoryFault = 0;

struct Hsa {
  LoadedLibrary library;
  std::string name{};
  Status (*init)() = library["hsa_init"];
  Status (*shut_down)() = library["hsa_shut_down"];
  Status (*status_string)(Status, const char**) = library["hsa_status_string"];
  Status (*system_info)(std::uint32_t attribute, void*) = library["hsa_system_get_info"];
  Status (*iterate_agents)(Status (*)(Agent, void*), void*) = library["hsa_iterate_agents"];
  Status (*agent_info)(Agent, std::uint32_t attribute, void*) = library["hsa_agent_get_info"];
  Status (*iterate_pools)(Agent, Status (*)(Pool, void*), void*) = library["hsa_amd_agent_iterate_memory_pools"];
  Status (*pool_info)(Pool, std::uint32_t attribute, void*) = library["hsa_amd_memory_pool_get_info"];
  Status (*agent_pool_info)(Agent, Pool, std::uint32_t attribute,
                            void*) = library["hsa_amd_agent_memory_pool_get_info"];
  Status (*allocate)(Pool, std::size_t bytes, std::uint32_t flags, void**) = library["hsa_amd_memory_pool_allocate"];
  Status (*free)(void*) = library["hsa_amd_memory_pool_free"];
  Status (*allow_access)(std::uint32_t count, const Agent*, const std::uint32_t* flags,
                         const void*) = library["hsa_amd_agents_allow_access"];
  Status (*lock)(void*, std::size_t bytes, Agent*, int count, void** agent_address) = library["hsa_amd_memory_lock"];
  Status (*unlock)(void*) = library["hsa_amd_memory_unlock"];
  Status (*pointer_info)(const void*, PointerInfo*, void* (*allocate)(std::size_t), std::uint32_t* count,
                         Agent**) = library["hsa_amd_pointer_info"];
  Status (*create_signal)(std::int64_t value, std::uint32_t consumers, const Agent*,
                          SignalHandle*) = library["hsa_signal_create"];
  Status (*destroy_signal)(SignalHandle) = library["hsa_signal_destroy"];
  Status (*on_system_event)(Status (*)(const SystemEvent*, void*),
                            void*) = library["hsa_amd_register_system_event_handler"];
  Status (*destroy_queue)(HsaQueue*) = library["hsa_queue_destroy"];
  Status (*inactivate_queue)(HsaQueue*) = library["hsa_queue_inactivate"];
  // Null if this ROCr does not have them.
  Status (*share)(void*, std::size_t bytes,
                  std::uint32_t* handle) = library.may("hsa_amd_ipc_memory_create");  ///< 8 dwords
  Status (*open_shared)(const std::uint32_t* handle, std::size_t bytes, std::uint32_t count, const Agent*,
                        void**) = library.may("hsa_amd_ipc_memory_attach");
  Status (*close_shared)(void*) = library.may("hsa_amd_ipc_memory_detach");
  Status (*export_dmabuf)(const void*, std::size_t bytes, int* fd,
                          std::uint64_t* offset) = library.may("hsa_amd_portable_export_dmabuf");
  Status (*open_dmabuf)(std::uint32_t count, Agent*, int fd, std::uint32_t flags, std::size_t* bytes, void**,
                        std::size_t* metadata_bytes, const void** metadata) = library.may("hsa_amd_interop_map_buffer");
  Status (*close_dmabuf)(void*) = library.may("hsa_amd_interop_unmap_buffer");
  Status (*create_queues)(Agent, QueueDescriptor*, std::uint32_t count) = library.may("hsa_amd_queue_create");
  Status (*queue_info)(HsaQueue*, std::uint32_t attribute, void*) = library.may("hsa_amd_queue_get_info");
  Status (*create_earlier)(Agent, std::uint32_t flags, std::uint32_t engines, std::uint32_t priority,
                           void** queue) = library.may("hsa_amd_sdma_queue_create");
  Status (*destroy_earlier)(void* queue) = library.may("hsa_amd_sdma_queue_destroy");
  Status (*earlier_info)(void* queue, std::uint32_t attribute, void*) = library.may("hsa_amd_sdma_queue_get_info");
  Status (*preferred_engines)(Agent to, Agent from,
                              std::uint32_t* mask) = library.may("hsa_amd_memory_get_preferred_copy_engine");
  thunk::Thunk thunk{LoadedLibrary(library.from())};    ///< the functions of the libhsakmt that this ROCr links to
  bool has_thunk = thunk.library.lacking() == nullptr;  ///< it links to one

  /// What a status means, as ROCr says it.
  const char* message(Status) const noexcept;
};

Result<const Hsa*, Diagnostic> load(const std::string& name);
/// The file of the ROCr that this process has loaded; empty: none.
std::string loaded();
/// Where that library, or one that it links to, has this symbol; null: neither has it.
void* address(const std::string& file, const char* symbol) noexcept;

}}}  // namespace sdma::v0_3::detail::rocr
