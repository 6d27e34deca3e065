// SPDX-License-Identifier: MIT
#pragma once
// Strong types for values that must not be confused: an address as the GPU sees it, a GPU, an engine.
//
//   GpuVa src{0x7f1122334000};
//   GpuVa second = src + 4096;                 // arithmetic is in bytes
//   std::uint64_t n = second - src;            // 4096
//   GpuVa same = GpuVa::of(host_pointer);      // memory that engines reach at the host's address
//
// Counts stay plain integers and carry their unit in their name (bytes, dwords, packets). These are plain values
// without shared state. No errors. Arithmetic wraps at 2^64, as that of unsigned integers does.
#include "sdma/core/standard.hpp"

#include <compare>
#include <cstdint>

namespace sdma { inline namespace v0_3 {

/// A GPU virtual address, 64 bits. Explicit from an integer; sums and differences are in bytes.
struct GpuVa {
  std::uint64_t value{};  ///< the address as an integer
  constexpr GpuVa() = default;
  constexpr explicit GpuVa(std::uint64_t v) noexcept : value(v) {}
  /// The address of what `p` points to, where engines reach it at the host's address: memory of ROCr, HIP and KFD that
  /// host and GPUs share, and that of software devices. Elsewhere, the allocator says what its GPU VA is.
  template <class T> static constexpr GpuVa of(T* p) noexcept { return GpuVa{reinterpret_cast<std::uintptr_t>(p)}; }
  friend constexpr GpuVa operator+(GpuVa a, std::uint64_t bytes) noexcept { return GpuVa{a.value + bytes}; }
  friend constexpr std::uint64_t operator-(GpuVa a, GpuVa b) noexcept { return a.value - b.value; }
  friend constexpr bool operator==(GpuVa, GpuVa) = default;
  friend constexpr std::strong_ordering operator<=>(GpuVa a, GpuVa b) noexcept { return a.value <=> b.value; }
};

/// A GPU of a node: its index in the topology, from 0.
struct GpuId {
  std::uint32_t value{};  ///< its index in the topology
  friend constexpr bool operator==(GpuId, GpuId) = default;
  friend constexpr std::strong_ordering operator<=>(GpuId a, GpuId b) noexcept { return a.value <=> b.value; }
};

/// An sDMA engine of a GPU: 0 and 1 face the host, 2 to 15 the xGMI links (MI300X, one partition).
struct EngineId {
  std::uint32_t value{};  ///< its number on the GPU, from 0
  friend constexpr bool operator==(EngineId, EngineId) = default;
  friend constexpr std::strong_ordering operator<=>(EngineId a, EngineId b) noexcept { return a.value <=> b.value; }
};

}}  // namespace sdma::v0_3
