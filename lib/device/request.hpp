// SPDX-License-Identifier: MIT
#pragma once
// The checks of requests that apply to every device. Any thread may call these functions. Internal to the library.
#include "../core/page.hpp"
#include "sdma/device/device.hpp"

#include <optional>
#include <string>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::uint64_t kMinRing = kMinRingDwords * 4, kMaxRing = std::uint64_t{1} << 30;

constexpr std::uint64_t round_up(std::uint64_t v, std::uint64_t to) noexcept { return (v + to - 1) & ~(to - 1); }

/// "create_queue gpu=0 engine=3", "allocate where=gpu0 bytes=64": the `where` of a Diagnostic.
std::string place_of(const QueueRequest&);
std::string place_of(const MemoryRequest&);

/// Bit n: a queue with this pick may be on engine n, which is not dead.
std::uint64_t engines_for(EnginePick, const Gpu&) noexcept;

/// Why a device with this topology cannot serve the request; nullopt: it may be able to. The checker and the simulator
/// ask the same function about the queues of a schedule.
std::optional<Diagnostic> refuse(const QueueRequest&, const Topology&);
std::optional<Diagnostic> refuse(const MemoryRequest&, const Topology&);

/// Copies bytes that engines and hosts may change meanwhile; loads each aligned dword as a whole.
void load_bytes(const std::byte* from, std::span<std::byte> to) noexcept;

}}}  // namespace sdma::v0_3::detail
