// SPDX-License-Identifier: MIT
// Executes ATOMIC packets: integer and floating-point operations of 32 and 64 bits.
#include "../core/same_bits.hpp"
#include "execute.hpp"
#include "sdma/core/atomic_ref.hpp"

#include <atomic>
#include <cmath>
#include <limits>

namespace sdma { inline namespace v0_3 {

namespace {

/// The codes of one operation differ by 32: 32 and 64 bits, with and without a returned value, which is discarded.
AtomicOp base(AtomicOp op) noexcept { return static_cast<AtomicOp>(static_cast<unsigned>(op) % 32); }

bool flushes(AtomicOp b) noexcept {
  return b == AtomicOp::fcmpswap_flush_denorm_rtn_32 || b == AtomicOp::fmin_flush_denorm_rtn_32 ||
         b == AtomicOp::fmax_flush_denorm_rtn_32;
}

/// Bits as a number. If the operation flushes, a denormal becomes a zero of the same sign.
template <class F, class U> F number(U bits, bool flush) noexcept {
  const auto f = detail::same_bits<F>(bits);
  return flush && std::fpclassify(f) == FP_SUBNORMAL ? std::copysign(F{0}, f) : f;
}

/// minimumNumber of IEEE 754: of a number and a NaN the number, and -0 is less than +0.
template <class F> F lesser(F a, F b) noexcept {
  if (std::isnan(a)) return std::isnan(b) ? std::numeric_limits<F>::quiet_NaN() : b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class F> F greater(F a, F b) noexcept {
  return std::isnan(a) && std::isnan(b) ? std::numeric_limits<F>::quiet_NaN() : -lesser(-a, -b);
}

/// `U`: the word; `S`: the same, signed; `F`: the same, as a number.
template <class U, class S, class F> U apply(AtomicOp b, U old, U value, U compare) noexcept {
  const bool flush = flushes(b);
  const auto as_number = [&](U bits) { return number<F>(bits, flush); };
  const auto as_bits = [](F f) { return detail::same_bits<U>(f); };
  const auto less = [](U x, U y) { return static_cast<S>(x) < static_cast<S>(y); };
  switch (b) {
    case AtomicOp::fcmpswap_rtn_32:
    case AtomicOp::fcmpswap_flush_denorm_rtn_32:
      return as_number(old) == as_number(compare) ? as_bits(as_number(value)) : old;
    case AtomicOp::fmin_rtn_32:
    case AtomicOp::fmin_flush_denorm_rtn_32: return as_bits(lesser(as_number(old), as_number(value)));
    case AtomicOp::fmax_rtn_32:
    case AtomicOp::fmax_flush_denorm_rtn_32: return as_bits(greater(as_number(old), as_number(value)));
    case AtomicOp::swap_rtn_32: return value;
    case AtomicOp::cmpswap_rtn_32: return old == compare ? value : old;
    case AtomicOp::add_rtn_32: return static_cast<U>(old + value);
    case AtomicOp::sub_rtn_32: return static_cast<U>(old - value);
    case AtomicOp::smin_rtn_32: return less(value, old) ? value : old;
    case AtomicOp::umin_rtn_32: return value < old ? value : old;
    case AtomicOp::smax_rtn_32: return less(old, value) ? value : old;
    case AtomicOp::umax_rtn_32: return old < value ? value : old;
    case AtomicOp::and_rtn_32: return old & value;
    case AtomicOp::or_rtn_32: return old | value;
    case AtomicOp::xor_rtn_32: return old ^ value;
    case AtomicOp::inc_rtn_32: return old >= value ? 0 : static_cast<U>(old + 1);
    case AtomicOp::dec_rtn_32: return old == 0 || old > value ? value : static_cast<U>(old - 1);
    default: return old;
  }
}

}  // namespace

bool compares(AtomicOp op) noexcept {
  const auto b = base(op);
  return b == AtomicOp::cmpswap_rtn_32 || b == AtomicOp::fcmpswap_rtn_32 || b == AtomicOp::fcmpswap_flush_denorm_rtn_32;
}

bool matches(AtomicOp op, std::uint64_t old, std::uint64_t compare) noexcept {
  const auto b = base(op);
  const bool wide = width(op) == 8, flush = flushes(b);
  const auto old32 = static_cast<std::uint32_t>(old), compare32 = static_cast<std::uint32_t>(compare);
  if (b == AtomicOp::cmpswap_rtn_32) return wide ? old == compare : old32 == compare32;
  return wide ? number<double>(old, flush) == number<double>(compare, flush)
              : number<float>(old32, flush) == number<float>(compare32, flush);
}

std::uint64_t apply(AtomicOp op, std::uint64_t old, std::uint64_t value, std::uint64_t compare) noexcept {
  if (op == AtomicOp::write_64) return value;
  if (width(op) == 8) return apply<std::uint64_t, std::int64_t, double>(base(op), old, value, compare);
  return apply<std::uint32_t, std::int32_t, float>(base(op), static_cast<std::uint32_t>(old),
                                                   static_cast<std::uint32_t>(value),
                                                   static_cast<std::uint32_t>(compare));
}

namespace {

/// One read-modify-write of a word of type U.
template <class U> Outcome modify(const Atomic& p, Machine& m) noexcept {
  static_assert(atomic_ref<U>::is_always_lock_free);
  auto* at = m.memory.at(p.addr, sizeof(U), Access::read_write);
  if (!at) return Outcome::lost;
  const atomic_ref<U> word(*reinterpret_cast<U*>(at));
  if (base(p.op) == AtomicOp::add_rtn_32) {  // what completions use
    word.fetch_add(static_cast<U>(p.value), std::memory_order_acq_rel);
    return Outcome::done;
  }
  auto old = word.load(std::memory_order_acquire);
  do {
    if (p.loop && compares(p.op) && !matches(p.op, old, p.compare)) return Outcome::not_yet;
  } while (!word.compare_exchange_weak(old, static_cast<U>(apply(p.op, old, p.value, p.compare)),
                                       std::memory_order_acq_rel, std::memory_order_acquire));
  return Outcome::done;
}

}  // namespace

Outcome execute(const Atomic& p, Machine& m) noexcept {
  return width(p.op) == 8 ? modify<std::uint64_t>(p, m) : modify<std::uint32_t>(p, m);
}

}}  // namespace sdma::v0_3
