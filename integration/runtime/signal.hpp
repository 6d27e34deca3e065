// SPDX-License-Identifier: MIT
#pragma once
// A signal as a command needs it: its words, and its value as it was when it was read.
//
//   const amd_signal_t& s = *reinterpret_cast<amd_signal_t*>(handle.handle);
//   SignalView out = view(s);                      // a signal of ROCr, or any type with its members
//   out.start_stamp = GpuVa{...};                  // if the runtime keeps the time stamps elsewhere
//
// The value decides how many polls a dependency needs, and what a fence stores. A command is measured first and written
// later, so both have to see the same value: a view is read once. Members are named as ROCr names them, because
// sdma/sync/hsa.hpp reads them by these names.
//
// A plain value; any thread may use a copy. No errors.
#include "sdma/sync/hsa.hpp"

#include <cstdint>

namespace runtime {

struct SignalView {
  sdma::GpuVa value_word{};           ///< the 64-bit value; 8-byte aligned. 0: nothing is completed
  std::int64_t value{};               ///< what it was
  std::uint64_t event_mailbox_ptr{};  ///< where the interrupt leaves its message; 0: no thread sleeps on the signal
  std::uint32_t event_id{};           ///< the message; 28 bits
  sdma::GpuVa start_stamp{};          ///< a 64-bit word for the time before the copies; 0: not stored
  sdma::GpuVa end_stamp{};            ///< a 64-bit word for the time after them; 0: not stored
  std::uint64_t handle{};             ///< what the runtime calls it: of a ROCr signal, hsa_signal_t::handle
};

// What sdma::hsa calls instead of taking the address of a member.
inline sdma::GpuVa value_va(const SignalView& s) noexcept { return s.value_word; }
inline sdma::GpuVa start_stamp_va(const SignalView& s) noexcept { return s.start_stamp; }
inline sdma::GpuVa end_stamp_va(const SignalView& s) noexcept { return s.end_stamp; }

/// Reads a signal of ROCr. Engines have to reach it at the host's address, as they reach ROCr's.
template <class S> SignalView view(const S& s) noexcept {
  return {.value_word = sdma::hsa::value_va(s),
          .value = __atomic_load_n(&s.value, __ATOMIC_RELAXED),
          .event_mailbox_ptr = s.event_mailbox_ptr,
          .event_id = s.event_id,
          .start_stamp = sdma::hsa::start_stamp_va(s),
          .end_stamp = sdma::hsa::end_stamp_va(s),
          .handle = reinterpret_cast<std::uintptr_t>(&s)};
}

}  // namespace runtime
