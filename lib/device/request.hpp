#pragma once
// What a request must be, whatever device it is for. Plain functions, any thread; internal to the library.
#include "sdma/device/device.hpp"

#include <optional>
#include <string>

namespace sdma {
inline namespace v0 {
namespace detail {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kMinRing = kMinRingDwords * 4, kMaxRing = std::uint64_t{1} << 30;

constexpr std::uint64_t round_up(std::uint64_t v, std::uint64_t to) noexcept { return (v + to - 1) & ~(to - 1); }

/// "create_queue gpu=0 engine=3", "allocate where=gpu0 bytes=64": where a Diagnostic is.
std::string place_of(const QueueRequest&);
std::string place_of(const MemoryRequest&);

/// Why no device of this node can serve the request; none: it may.
std::optional<Diagnostic> refuse(const QueueRequest&, const Topology&);
std::optional<Diagnostic> refuse(const MemoryRequest&, const Topology&);

/// Copies bytes that engines and hosts may change meanwhile: aligned words whole.
void load_bytes(const std::byte* from, std::span<std::byte> to) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace sdma
