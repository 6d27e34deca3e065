// SPDX-License-Identifier: MIT
#include "kernels.hpp"

#include "waits.hpp"
#include "word.hpp"

#include <algorithm>
#include <chrono>
#include <type_traits>

namespace stand_in {
namespace {

/// op(old, value, compare) gives the new value.
template <class T, auto Op> Status atomic(int device, const KernelArguments& a) {
  const auto value = static_cast<T>(a[1]), compare = static_cast<T>(a[2]);
  const auto code = with_word<T>(a[0], device, Use::write, [&](std::atomic_ref<T> word) {
    auto old = word.load();
    while (!word.compare_exchange_weak(old, Op(old, value, compare))) {}
  });
  Waits::get().nudge();
  return code;
}

Status timestamp(int device, const KernelArguments& a) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  const auto code = with_word<std::uint64_t>(a[0], device, Use::write, [&](std::atomic_ref<std::uint64_t> word) {
    word.store(ns / 10, std::memory_order_release);
  });
  Waits::get().nudge();
  return code;
}

/// (to, now, before, bytes): stores now[i] where it differs from before[i]. Only `to` is GPU memory.
Status merge(int device, const KernelArguments& a) {
  const auto *now = reinterpret_cast<const unsigned char*>(a[1]),
             *before = reinterpret_cast<const unsigned char*>(a[2]);
  for (std::uint64_t at = 0; at < a[3];) {
    if (now[at] == before[at]) {
      ++at;
      continue;
    }
    const auto piece = find_memory(a[0] + at, a[3] - at, device, Use::write);
    if (!piece || piece->size == 0) return kIllegalAddress;
    const auto end = std::min<std::uint64_t>(a[3], at + piece->size);
    for (auto* byte = reinterpret_cast<unsigned char*>(piece->data); at < end; ++at, ++byte)
      if (now[at] != before[at]) std::atomic_ref(*byte).store(now[at]);
  }
  return kSuccess;
}

/// (to, words, value): to[i] = value + i. Only `to` is GPU memory.
Status produce(int device, const KernelArguments& a) {
  for (std::uint64_t i = 0; i < a[1];) {
    const auto piece = find_memory(a[0] + 4 * i, 4 * (a[1] - i), device, Use::write);
    if (!piece || piece->size < 4) return kIllegalAddress;
    auto* const words = reinterpret_cast<std::uint32_t*>(piece->data);
    for (std::uint64_t n = piece->size / 4, k = 0; k < n && i < a[1]; ++k, ++i)
      words[k] = static_cast<std::uint32_t>(a[2] + i);
  }
  return kSuccess;
}

constexpr auto add = [](auto old, auto value, auto) { return static_cast<decltype(old)>(old + value); };
constexpr auto swap = [](auto, auto value, auto) { return value; };
constexpr auto band = [](auto old, auto value, auto) { return old & value; };
constexpr auto bor = [](auto old, auto value, auto) { return old | value; };
constexpr auto bxor = [](auto old, auto value, auto) { return old ^ value; };
constexpr auto umin = [](auto old, auto value, auto) { return std::min(old, value); };
constexpr auto umax = [](auto old, auto value, auto) { return std::max(old, value); };
template <class T> constexpr bool less(T a, T b) { return std::make_signed_t<T>(a) < std::make_signed_t<T>(b); }
constexpr auto smin = [](auto old, auto value, auto) { return less(value, old) ? value : old; };
constexpr auto smax = [](auto old, auto value, auto) { return less(old, value) ? value : old; };
constexpr auto cmpswap = [](auto old, auto value, auto compare) { return old == compare ? value : old; };
constexpr auto inc = [](std::uint32_t old, std::uint32_t value, std::uint32_t) { return old >= value ? 0 : old + 1; };
constexpr auto dec = [](std::uint32_t old, std::uint32_t value, std::uint32_t) {
  return old == 0 || old > value ? value : old - 1;
};

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// clang-format off
constexpr Kernel kKernels[] = {
    {"add_32", 3, atomic<u32, add>},         {"add_64", 3, atomic<u64, add>},
    {"swap_32", 3, atomic<u32, swap>},       {"swap_64", 3, atomic<u64, swap>},
    {"and_32", 3, atomic<u32, band>},        {"and_64", 3, atomic<u64, band>},
    {"or_32", 3, atomic<u32, bor>},          {"or_64", 3, atomic<u64, bor>},
    {"xor_32", 3, atomic<u32, bxor>},        {"xor_64", 3, atomic<u64, bxor>},
    {"smin_32", 3, atomic<u32, smin>},       {"smin_64", 3, atomic<u64, smin>},
    {"smax_32", 3, atomic<u32, smax>},       {"smax_64", 3, atomic<u64, smax>},
    {"umin_32", 3, atomic<u32, umin>},       {"umin_64", 3, atomic<u64, umin>},
    {"umax_32", 3, atomic<u32, umax>},       {"umax_64", 3, atomic<u64, umax>},
    {"cmpswap_32", 3, atomic<u32, cmpswap>}, {"cmpswap_64", 3, atomic<u64, cmpswap>},
    {"inc_32", 3, atomic<u32, inc>},         {"dec_32", 3, atomic<u32, dec>},
    {"timestamp", 1, timestamp},             {"merge", 4, merge, false},
    {"produce", 3, produce, false},
};
// clang-format on

}  // namespace

const Kernel* find_kernel(std::string_view name) {
  const auto* it = std::ranges::find(kKernels, name, &Kernel::name);
  return it == std::end(kKernels) ? nullptr : it;
}

}  // namespace stand_in
