#pragma once
// The memory of a schedule that is simulated: every buffer and signal at its link address, backed by pages that nobody pays for
// until they are touched. Internal.
//
//   LinkMemory memory{schedule};
//   auto& reader = memory.reader(gpu);                  // what that GPU may touch
//   memory.watched(region)                              // does anybody wait for, or decide by, a word in there?
//   memory.home(va)                                     // whose memory it is
//
// Aliases are gone: `resolve` gives the address of what they are aliases of. Errors: `findings`.
#include "sdma/engine/memory.hpp"
#include "sdma/schedule/schedule.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

class LinkMemory {
 public:
  explicit LinkMemory(const Schedule&);
  ~LinkMemory();
  LinkMemory(const LinkMemory&) = delete;
  LinkMemory& operator=(const LinkMemory&) = delete;

  std::vector<Diagnostic>& findings() noexcept { return findings_; }
  AddressSpace::Reader& reader(std::uint32_t gpu) noexcept { return readers_[gpu]; }

  /// The address without aliases; any other stays as it is.
  GpuVa resolve(GpuVa) const noexcept;
  /// Of a resolved address.
  Place home(GpuVa) const noexcept;
  /// Of a resolved address: where its byte is. Null: nowhere.
  std::byte* at(GpuVa) noexcept;
  std::uint64_t value(std::size_t signal) noexcept;
  void set(std::size_t signal, std::uint64_t) noexcept;

  /// Of a resolved address.
  void watch(GpuVa va, std::uint64_t bytes);
  bool watched(const Region&) const noexcept;

 private:
  struct Piece {
    std::byte* host{};
    std::size_t bytes{};
  };
  void map(GpuVa va, std::uint64_t bytes, Place, const std::vector<Place>& gpus);

  const Schedule& s_;
  std::vector<Diagnostic> findings_;
  std::vector<Piece> buffers_, signals_;
  std::vector<std::uint64_t> words_;  ///< signals' memory
  AddressSpace space_;
  std::deque<AddressSpace::Reader> readers_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> watched_;  ///< ranges of buffers
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
