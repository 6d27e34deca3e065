// SPDX-License-Identifier: MIT
#include "kernels.hpp"

namespace sdma { inline namespace v0_3 { namespace detail::cuda {
namespace {

/// One operation of `atom`, in both widths; null: PTX does not have it.
struct Row {
  AtomicOp op;  ///< the 32-bit form with a returned value; the others differ by multiples of 32
  const char *name_32, *name_64, *ptx_32, *ptx_64;
};
constexpr Row kRows[] = {
    {AtomicOp::swap_rtn_32, "swap_32", "swap_64", "exch.b32", "exch.b64"},
    {AtomicOp::cmpswap_rtn_32, "cmpswap_32", "cmpswap_64", "cas.b32", "cas.b64"},
    {AtomicOp::add_rtn_32, "add_32", "add_64", "add.u32", "add.u64"},
    {AtomicOp::smin_rtn_32, "smin_32", "smin_64", "min.s32", "min.s64"},
    {AtomicOp::umin_rtn_32, "umin_32", "umin_64", "min.u32", "min.u64"},
    {AtomicOp::smax_rtn_32, "smax_32", "smax_64", "max.s32", "max.s64"},
    {AtomicOp::umax_rtn_32, "umax_32", "umax_64", "max.u32", "max.u64"},
    {AtomicOp::and_rtn_32, "and_32", "and_64", "and.b32", "and.b64"},
    {AtomicOp::or_rtn_32, "or_32", "or_64", "or.b32", "or.b64"},
    {AtomicOp::xor_rtn_32, "xor_32", "xor_64", "xor.b32", "xor.b64"},
    {AtomicOp::inc_rtn_32, "inc_32", nullptr, "inc.u32", nullptr},
    {AtomicOp::dec_rtn_32, "dec_32", nullptr, "dec.u32", nullptr},
};

std::string atomic(const Row& r, bool wide) {
  const auto bits = wide ? 64 : 32;
  const auto* reg = wide ? "%rd" : "%r";
  const bool compare = r.op == AtomicOp::cmpswap_rtn_32;
  auto text = fmt::format(
      ".visible .entry {}(.param .u64 a, .param .u64 v, .param .u64 c)\n"
      "{{\n"
      "  .reg .b64 %p, %rd<4>;\n"
      "  .reg .b32 %r<4>;\n"
      "  ld.param.u64 %p, [a];\n"
      "  ld.param.u{} {}1, [v];\n"
      "  ld.param.u{} {}2, [c];\n",
      wide ? r.name_64 : r.name_32, bits, reg, bits, reg);
  text += compare ? fmt::format("  atom.acq_rel.sys.global.{} {}3, [%p], {}2, {}1;\n", wide ? r.ptx_64 : r.ptx_32, reg,
                                reg, reg)
                  : fmt::format("  atom.acq_rel.sys.global.{} {}3, [%p], {}1;\n", wide ? r.ptx_64 : r.ptx_32, reg, reg);
  return text + "  ret;\n}\n";
}

constexpr const char* kTimestamp = R"(.visible .entry timestamp(.param .u64 a)
{
  .reg .b64 %p, %t;
  ld.param.u64 %p, [a];
  mov.u64 %t, %globaltimer;
  div.u64 %t, %t, 10;
  st.release.sys.global.u64 [%p], %t;
  ret;
}
)";
constexpr const char* kMergeByte = R"(  .reg .b16 %x, %y;
  .reg .pred %same;
  add.u64 %a, %now, %i;
  ld.global.u8 %x, [%a];
  add.u64 %a, %before, %i;
  ld.global.u8 %y, [%a];
  setp.eq.u16 %same, %x, %y;
  @%same bra SKIP;
  add.u64 %a, %to, %i;
  st.global.u8 [%a], %x;
SKIP:
)";

}  // namespace

AtomicKernel kernel_of(AtomicOp op, std::uint64_t value) noexcept {
  // The codes of one operation differ by 32: 32 and 64 bits, with and without a returned value, which is discarded.
  const auto code = [](AtomicOp o) { return static_cast<unsigned>(o) % 32; };
  const bool subtract = code(op) == code(AtomicOp::sub_rtn_32);
  const auto wanted = subtract ? code(AtomicOp::add_rtn_32) : code(op);
  for (const auto& r : kRows)
    if (code(r.op) == wanted)
      return {.name = width(op) == 8 ? r.name_64 : r.name_32, .operand = subtract ? 0 - value : value};
  return {};
}

std::vector<const char*> atomic_kernels() {
  std::vector<const char*> out;
  for (const auto& r : kRows) {
    out.push_back(r.name_32);
    if (r.name_64) out.push_back(r.name_64);
  }
  return out;
}

std::string kernel_text() {
  std::string text = kPtxHeader;
  for (const auto& r : kRows) {
    text += atomic(r, false);
    if (r.name_64) text += atomic(r, true);
  }
  return text + kTimestamp + grid_kernel("merge", {"to", "now", "before", "bytes"}, "bytes", kMergeByte);
}

}}}  // namespace sdma::v0_3::detail::cuda
