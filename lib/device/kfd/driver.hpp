#pragma once
// The kernel driver's ioctls that no function of libhsakmt offers, or that an old libhsakmt does not know: queues by
// engine id (KFD 1.17), and waits that keep what the driver says about a fault.
//
//   call(kfd, kCreateQueue, &args)       an ioctl that EINTR interrupts must be repeated: `call` does
//
// Numbers, structures and their sizes are the kernel's interface. Plain data.
#include <linux/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace sdma {
inline namespace v0 {
namespace detail::kfd {

enum QueueType : std::uint32_t { kSdma = 1, kSdmaXgmi = 3, kSdmaByEngine = 4 };
inline constexpr std::uint32_t kByEngineMinor = 17;    ///< the first minor version that has kSdmaByEngine
inline constexpr std::uint64_t kDoorbellFrame = 8192;  ///< bytes: the doorbells of one process on one GPU

struct CreateQueue {
  std::uint64_t ring{}, wptr{}, rptr{}, doorbell_offset{};
  std::uint32_t ring_bytes{}, gpu_id{}, type{}, percentage{}, priority{}, queue{};
  std::uint64_t eop{}, eop_bytes{}, save_area{};
  std::uint32_t save_area_bytes{}, control_stack_bytes{};
  std::uint32_t engine{}, pad{};
};
static_assert(sizeof(CreateQueue) == 96 && offsetof(CreateQueue, engine) == 88);
struct DestroyQueue {
  std::uint32_t queue{}, pad{};
};
struct UpdateQueue {
  std::uint64_t ring{};
  std::uint32_t queue{}, ring_bytes{}, percentage{}, priority{};
};

struct MemoryFault {
  std::uint32_t not_present, read_only, no_execute, imprecise;
  std::uint64_t va;
  std::uint32_t gpu_id, error_type;
};
struct HwException {
  std::uint32_t reset_type, reset_cause, memory_lost, gpu_id;
};
union EventAnswer {
  MemoryFault memory;
  HwException exception;
};
struct EventData {
  EventAnswer answer{};
  std::uint64_t ext{};
  std::uint32_t id{}, pad{};
};
static_assert(sizeof(EventData) == 48);
enum WaitResult : std::uint32_t { kComplete = 0, kTimeout = 1 };
struct WaitEvents {
  std::uint64_t events{};
  std::uint32_t count{}, all{}, timeout_ms{}, result{};
};
static_assert(sizeof(WaitEvents) == 24);

inline constexpr unsigned long kCreateQueue = _IOWR('K', 0x02, CreateQueue),
                               kDestroyQueue = _IOWR('K', 0x03, DestroyQueue),
                               kUpdateQueue = _IOW('K', 0x07, UpdateQueue), kWaitEvents = _IOWR('K', 0x0c, WaitEvents);

/// Returns 0, or the errno. Repeats a call that a signal handler interrupted.
int call(int fd, unsigned long request, void* args) noexcept;

}  // namespace detail::kfd
}  // namespace v0
}  // namespace sdma
