// SPDX-License-Identifier: MIT
#pragma once
// A value, or the reason why there is no value: a subset of std::expected, with the same names, for C++20 without
// exceptions.
//
//   Result<Slot> slot = ring.reserve(7);
//   if (!slot) return slot.error();            // an Errc: a number, made without allocation
//   slot->dwords[0] = 0;
//
// Where an Errc says too little, E is a Diagnostic or a StallReport. As with std::expected, reading the value of a
// failed Result, or the error of a successful one, is undefined behaviour. A Result is a plain value: any thread may
// hold one, but two threads must not share one.
#include "sdma/core/standard.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace sdma { inline namespace v0_3 {

/// Why a call on a hot path failed; `ok` if it did not. A function whose error is lost with its result is
/// [[nodiscard]]; those of a Writer are not, because the Writer keeps its first error.
enum class Errc : std::uint8_t {
  ok,
  no_space,          ///< no room at the moment: retry after the engine has read more
  too_large,         ///< a slot that this ring can never grant: the whole ring or more
  bad_packet,        ///< a field is out of range, or the packet breaks one of its rules: check(packet) says which
  bad_ring,          ///< the memory cannot be a ring: validate(memory) says why
  bad_argument,      ///< the request contradicts itself, or names something that does not exist
  timed_out,         ///< the deadline passed
  unmapped,          ///< no memory is mapped at this address for this GPU
  stopped,           ///< the queue has stopped after a fault, or was destroyed
  wrong_generation,  ///< the packets are of another generation than the ring: RingMemory::generation
  two_producers,     ///< wptr is not what this producer left: another Ring publishes on the same memory
  epoch_overflow,    ///< the next epoch does not fit its field: restart the timeline, or the schedule
  unknown,           ///< the driver does not give a number that this needs, such as the rate of a clock
};

/// What `e` means, in one phrase. It cannot name the packet, the address or the queue.
constexpr std::string_view message(Errc e) noexcept {
  switch (e) {
    case Errc::ok: return "no error";
    case Errc::no_space: return "no room right now; retry after the engine has read more";
    case Errc::too_large: return "a slot is shorter than the ring";
    case Errc::bad_packet: return "a field is out of range, or the packet breaks a rule";
    case Errc::bad_ring: return "this memory cannot be a ring";
    case Errc::bad_argument: return "the request contradicts itself, or names something that does not exist";
    case Errc::timed_out: return "the deadline passed";
    case Errc::unmapped: return "no memory is mapped at this address for this GPU";
    case Errc::stopped: return "the queue has stopped";
    case Errc::wrong_generation: return "the packets are of another generation than the ring's engines";
    case Errc::two_producers: return "another producer publishes on this ring, and neither knows of the other";
    case Errc::epoch_overflow: return "the next epoch does not fit its field (a poll compares 32 bits): restart";
    case Errc::unknown: return "the driver does not give a number that this needs, such as the rate of a clock";
  }
  return "unknown error";
}

namespace detail {

/// For trivial types: a union and a flag, which compilers keep in registers.
template <class T, class E> class PlainResult {
 public:
  constexpr PlainResult(T v) noexcept : value_(v), has_(true) {}
  constexpr PlainResult(E e) noexcept : error_(e), has_(false) {}
  constexpr bool has() const noexcept { return has_; }
  constexpr T& value() noexcept { return value_; }
  constexpr const T& value() const noexcept { return value_; }
  constexpr E& error() noexcept { return error_; }
  constexpr const E& error() const noexcept { return error_; }

 private:
  union {
    T value_;
    E error_;
  };
  bool has_;
};

template <class T, class E> class RichResult {
 public:
  RichResult(T v) noexcept : v_(std::in_place_index<0>, std::move(v)) {}
  RichResult(E e) noexcept : v_(std::in_place_index<1>, std::move(e)) {}
  bool has() const noexcept { return v_.index() == 0; }
  T& value() noexcept { return *std::get_if<0>(&v_); }
  const T& value() const noexcept { return *std::get_if<0>(&v_); }
  E& error() noexcept { return *std::get_if<1>(&v_); }
  const E& error() const noexcept { return *std::get_if<1>(&v_); }

 private:
  std::variant<T, E> v_;
};

template <class T, class E>
using ResultStorage = std::conditional_t<std::is_trivially_copyable_v<T> && std::is_trivially_copyable_v<E> &&
                                             std::is_trivially_destructible_v<T> && std::is_trivially_destructible_v<E>,
                                         PlainResult<T, E>, RichResult<T, E>>;

}  // namespace detail

/// A `T`, or an `E` that says why there is none.
template <class T, class E = Errc> class [[nodiscard]] Result {
 public:
  using value_type = T;  ///< what a success holds
  using error_type = E;  ///< what a failure holds
  constexpr Result(T v) noexcept : s_(std::move(v)) {}
  constexpr Result(E e) noexcept : s_(std::move(e)) {}
  /// Is it a success? The same as a conversion to bool.
  constexpr bool has_value() const noexcept { return s_.has(); }
  constexpr explicit operator bool() const noexcept { return s_.has(); }
  constexpr T& operator*() & noexcept { return s_.value(); }
  constexpr const T& operator*() const& noexcept { return s_.value(); }
  constexpr T&& operator*() && noexcept { return std::move(s_.value()); }
  constexpr T* operator->() noexcept { return &s_.value(); }
  constexpr const T* operator->() const noexcept { return &s_.value(); }
  constexpr E& error() & noexcept { return s_.error(); }
  constexpr const E& error() const& noexcept { return s_.error(); }
  /// The error. Requires that there is no value.
  constexpr E&& error() && noexcept { return std::move(s_.error()); }
  constexpr T value_or(T other) const& noexcept { return s_.has() ? s_.value() : std::move(other); }
  /// The value, or `other` if there is none.
  constexpr T value_or(T other) && noexcept { return std::move(s_.has() ? s_.value() : other); }

 private:
  detail::ResultStorage<T, E> s_;
};

/// Success, or an `E` that says why not: `return {};` is success.
template <class E> class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;  ///< a success holds no value
  using error_type = E;     ///< what a failure holds
  constexpr Result() noexcept : s_(std::monostate{}) {}
  constexpr Result(E e) noexcept : s_(std::move(e)) {}
  /// Is it a success? The same as a conversion to bool.
  constexpr bool has_value() const noexcept { return s_.has(); }
  constexpr explicit operator bool() const noexcept { return s_.has(); }
  constexpr E& error() & noexcept { return s_.error(); }
  constexpr const E& error() const& noexcept { return s_.error(); }
  /// The error. Requires that there is no value.
  constexpr E&& error() && noexcept { return std::move(s_.error()); }

 private:
  detail::ResultStorage<std::monostate, E> s_;
};

}}  // namespace sdma::v0_3
