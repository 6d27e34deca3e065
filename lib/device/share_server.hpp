// SPDX-License-Identifier: MIT
#pragma once
// Both ends of the socket that a shared handle names (sdma/device/memory.hpp).
//
//   ShareServer server{"soft"};                                        one per device of the owner
//   SharedHandle h = *server.offer(block, {.bytes = n, ...}, fd);      the first offer starts the thread
//   server.withdraw(block);                                            before the memory is given back
//
//   FetchedObject f = *fetch(h, "soft");                               in another process: what was offered, and `fd`
//   f.owner->ended()                                                   has that process ended?
//
//   client                               owner's thread
//   connect          ------------->      accept; refuse a process of another user
//   Question         ------------->
//                    <-------------      SharedObject, with the descriptor if there is one
//
// One connection per question. The thread waits for a client's question for at most kPatience, and `stop` for the
// thread as long. A client waits until its deadline, and `open_shared` gives all of its questions kAnswer together; it
// gives up at once if the owner ends (pidfd). The thread can always accept: at the limit of descriptors it uses one
// that it keeps for this.
//
// Any thread; one lock in each server, held for no longer than it takes to send an answer. Internal. Errors:
// Diagnostics, which `share` and `open_shared` return.
#include "../core/descriptor.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/memory.hpp"

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

using ShareToken = std::array<std::uint32_t, 8>;

/// The answer on the socket: what an owner offers.
struct SharedObject {
  static constexpr std::uint32_t kHost = ~0u;
  std::uint32_t withdrawn{};      ///< 1: the owner does not have it any more
  std::uint32_t gpu = kHost;      ///< in whose memory it is
  std::uint64_t bytes{};          ///< as requested
  std::uint64_t gpus{};           ///< bit g: GPU g may access it
  std::uint64_t host_access = 1;  ///< 0: the host cannot reach it
  std::uint64_t offset{};         ///< where it begins in what the token names
  ShareToken token{};             ///< the driver's name for it, if it has no descriptor
  std::uint64_t bells{};          ///< the object with which the owner's sleepers are woken (bells.hpp); 0: none
};

/// A process that shares memory with this one.
class OwnerProcess {
 public:
  OwnerProcess(pid_t pid, Descriptor pidfd) noexcept : pid_(pid), pidfd_(std::move(pidfd)) {}
  bool ended() const noexcept;
  pid_t pid() const noexcept { return pid_; }
  int pidfd() const noexcept { return pidfd_.get(); }

 private:
  pid_t pid_;
  Descriptor pidfd_;
};

struct FetchedObject {
  SharedObject object{};
  Descriptor fd{};
  std::shared_ptr<OwnerProcess> owner{};
};
/// Asks the owner. `known`: the owner, if this process has memory of it already.
Result<FetchedObject, Diagnostic> fetch(const SharedHandle&, std::string_view device,
                                        std::shared_ptr<OwnerProcess> known, Deadline);
namespace share {
inline constexpr std::chrono::seconds kPatience{1}, kAnswer{10};
}

class ShareServer {
 public:
  /// `device`: the name of its kind, at most 7 bytes.
  explicit ShareServer(std::string_view device) noexcept : device_(device) {}
  ~ShareServer() { stop(); }
  ShareServer(const ShareServer&) = delete;
  ShareServer& operator=(const ShareServer&) = delete;

  /// The handle of a block. The server does not own `fd`, which stays open until `withdraw` has returned.
  Result<SharedHandle, Diagnostic> offer(std::uint64_t block, const SharedObject&, int fd);
  void withdraw(std::uint64_t block) noexcept;
  /// Ends the thread and closes the socket. Handles are no longer good.
  void stop() noexcept;

 private:
  struct Offer {
    SharedObject object{};
    int fd = -1;
    SharedHandle handle{};
  };
  Result<void, Diagnostic> start();
  void serve() noexcept;
  void answer(int client) noexcept;

  const std::string_view device_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> blocks_{};  ///< to the object's number
  std::unordered_map<std::uint64_t, Offer> offers_{};
  std::array<std::uint64_t, 2> name_{};
  Descriptor listener_{}, spare_{};
  std::atomic<bool> ends_{false};
  std::thread thread_{};
};

/// Why a call that opens a descriptor failed: at the limit of descriptors, the message names it.
Diagnostic descriptor_error(std::string where, std::string_view call, int error);
/// New pages of zeros that can be mapped by several processes. Their size is fixed, so no process can take them away.
Result<Descriptor, Diagnostic> shareable_pages(const std::string& where, std::uint64_t bytes);

/// Pages of a file that are mapped at an aligned address.
struct FilePages {
  std::byte* base{};  ///< of what is to be unmapped
  std::uint64_t base_bytes{};
  std::byte* at{};  ///< null: they are not mapped, and errno says why
};
FilePages map_pages(int file, std::uint64_t bytes, std::uint64_t alignment) noexcept;

}}}  // namespace sdma::v0_3::detail
