// SPDX-License-Identifier: MIT
// Decodes the packets of one submit, with the values of its epoch.
#include "program.hpp"
#include "sdma/packets/footprint.hpp"

#include <array>
#include <set>

namespace sdma::explore::detail {
namespace {

using Kind = Packet::Kind;
using Op = Packet::Op;

std::vector<std::uint8_t> bytes_of(std::span<const std::uint32_t> dwords) {
  std::vector<std::uint8_t> out;
  for (const auto d : dwords)
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(d >> (8 * i)));
  return out;
}

class Decoder {
 public:
  Decoder(const Schedule& s, RawPacket& out, std::string& unsupported) : s_(s), out_(out), unsupported_(unsupported) {}

  void operator()(const Nop&) {}
  void operator()(const Trap&) {}
  void operator()(const HdpFlush&) {}
  void operator()(const CopyLinear& p) { copy(p.src, p.dst, p.bytes); }
  void operator()(const CopyBroadcast& p) {
    copy(p.src, p.dst1, p.bytes);
    copy(p.src, p.dst2, p.bytes);
  }
  void operator()(const CopySwap& p) {
    copy(p.a, p.b, p.bytes);
    copy(p.b, p.a, p.bytes);
    out_.packet.is_swap = true;
  }
  void operator()(const CopySubwindow& p) {
    const auto from = source(p), to = destination(p);
    for (std::uint32_t z = 0; z < from.slices; ++z)
      for (std::uint32_t y = 0; y < from.rows; ++y)
        copy(from.va + (z * from.slice_pitch + y * from.pitch), to.va + (z * to.slice_pitch + y * to.pitch),
             from.bytes);
  }
  void operator()(const Write& p) {
    out_.packet.is_write = true;
    constant(p.dst, p.data.size_bytes(), bytes_of(p.data));
  }
  void operator()(const Fill& p) {
    auto pattern = bytes_of({&p.data, 1});
    pattern.resize(std::size_t{1} << static_cast<unsigned>(p.unit));
    constant(p.dst, bytes_written(p), std::move(pattern));
  }
  /// Its value differs each time.
  void operator()(const Timestamp& p) {
    out_.packet.is_stamp = true;
    const std::uint32_t time = 0x51a3 + 2 * out_.packet.dword + 0x10000 * out_.packet.epoch;
    constant(p.addr, 8, bytes_of(std::array{time, time ^ 0x77u}));
  }
  void operator()(const Fence& p) { post(p.addr, Op::store, 4, p.value); }
  void operator()(const Atomic& p) {
    const auto bytes = static_cast<std::uint8_t>(width(p.op));
    if (p.loop) return refuse("an atomic that loops");
    switch (p.op) {
      case AtomicOp::add_rtn_32:
      case AtomicOp::add_rtn_64:
      case AtomicOp::add_32:
      case AtomicOp::add_64: return post(p.addr, Op::add, bytes, p.value);
      case AtomicOp::sub_rtn_32:
      case AtomicOp::sub_rtn_64:
      case AtomicOp::sub_32:
      case AtomicOp::sub_64: return post(p.addr, Op::add, bytes, std::uint64_t{0} - p.value);
      case AtomicOp::swap_rtn_32:
      case AtomicOp::swap_rtn_64:
      case AtomicOp::swap_32:
      case AtomicOp::swap_64: return post(p.addr, Op::swap, bytes, p.value);
      case AtomicOp::and_rtn_32:
      case AtomicOp::and_rtn_64: return post(p.addr, Op::bit_and, bytes, p.value);
      case AtomicOp::or_rtn_32:
      case AtomicOp::or_rtn_64: return post(p.addr, Op::bit_or, bytes, p.value);
      case AtomicOp::xor_rtn_32:
      case AtomicOp::xor_rtn_64: return post(p.addr, Op::bit_xor, bytes, p.value);
      case AtomicOp::umin_rtn_32:
      case AtomicOp::umin_rtn_64: return post(p.addr, Op::umin, bytes, p.value);
      case AtomicOp::umax_rtn_32:
      case AtomicOp::umax_rtn_64: return post(p.addr, Op::umax, bytes, p.value);
      case AtomicOp::cmpswap_rtn_32:
      case AtomicOp::cmpswap_rtn_64: out_.packet.compare = p.compare; return post(p.addr, Op::cmpswap, bytes, p.value);
      case AtomicOp::inc_rtn_32:
      case AtomicOp::inc_rtn_64: return post(p.addr, Op::inc, bytes, p.value);
      case AtomicOp::dec_rtn_32:
      case AtomicOp::dec_rtn_64: return post(p.addr, Op::dec, bytes, p.value);
      default: return refuse("this atomic operation");
    }
  }
  void operator()(const PollMem& p) {
    word(Kind::poll, p.addr, 4, p.reference);
    out_.packet.func = p.func;
    out_.packet.mask = p.mask;
    out_.packet.may_expire = p.retry != PollMem{}.retry;
  }
  void operator()(const CondExec& p) {
    word(Kind::condition, p.addr, 4, p.reference);
    out_.packet.func = Compare::eq;
    out_.skip = p.dwords;
  }
  void operator()(const PreExec& p) {
    out_.packet.kind = Kind::selection;
    out_.skip = p.dwords;
  }

  /// Q15. The halves of a swap overlap only if its two buffers do.
  void overlap() {
    const auto& parts = out_.parts;
    const auto meet = [](std::uint64_t a, std::uint64_t n, std::uint64_t b, std::uint64_t m) {
      return a < b + m && b < a + n;
    };
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t j = 0; j < parts.size(); ++j) {
        const auto &a = parts[i], &b = parts[j];
        const bool across =
            a.from == Part::From::copy && meet(a.source, a.bytes, b.to, b.bytes) && !(out_.packet.is_swap && i != j);
        const bool twice = i < j && meet(a.to, a.bytes, b.to, b.bytes);
        out_.packet.undefined = out_.packet.undefined || across || twice;
      }
  }

 private:
  void refuse(const char* what) {
    if (unsupported_.empty()) unsupported_ = what;
  }
  void copy(GpuVa from, GpuVa to, std::uint64_t bytes) {
    out_.packet.kind = Kind::data;
    out_.parts.push_back(
        {.from = Part::From::copy, .source = canonical(s_, from), .to = canonical(s_, to), .bytes = bytes});
  }
  void constant(GpuVa to, std::uint64_t bytes, std::vector<std::uint8_t> content) {
    out_.packet.kind = Kind::data;
    out_.parts.push_back(
        {.from = Part::From::bytes, .to = canonical(s_, to), .bytes = bytes, .content = std::move(content)});
  }
  void word(Kind kind, GpuVa va, std::uint8_t bytes, std::uint64_t value) {
    out_.packet.kind = kind;
    out_.packet.value = value;
    out_.packet.word.bytes = bytes;
    out_.word_va = canonical(s_, va);
  }
  void post(GpuVa va, Op op, std::uint8_t bytes, std::uint64_t value) {
    word(Kind::release, va, bytes, value);
    out_.packet.op = op;
  }

  const Schedule& s_;
  RawPacket& out_;
  std::string& unsupported_;
};

}  // namespace

std::vector<RawPacket> decode_submit(const Schedule& s, const Schedule::Queue& q, std::uint32_t epoch,
                                     std::string& unsupported) {
  auto dwords = q.dwords;
  if (store_epoch(q, epoch, dwords)) unsupported = "an epoch whose values do not fit";
  std::vector<RawPacket> out;
  std::set<std::uint32_t> fenced;  // since the last trap
  for (Reader r{dwords}; r;) {
    RawPacket raw;
    raw.packet.dword = static_cast<std::uint32_t>(r.position_dwords());
    raw.packet.epoch = epoch;
    const auto v = r.next();
    raw.packet.dwords = static_cast<std::uint32_t>(v.dwords.size());
    bool known = false;
    if (v.whole())
      visit(*v.info, v.dwords, [&](const auto& p) {
        Decoder d{s, raw, unsupported};
        if constexpr (requires { d(p); }) {
          d(p);
          d.overlap();
          known = true;
        }
      });
    if (v.is<Fence>()) fenced.insert(decode<Fence>(v.dwords).value);
    if (v.is<Trap>()) {
      if (!fenced.contains(decode<Trap>(v.dwords).context)) unsupported = "a trap without its mailbox";
      fenced.clear();
    }
    if (!known && unsupported.empty()) unsupported = v.info ? std::string(v.info->name) : "an unknown packet";
    out.push_back(std::move(raw));
  }
  return out;
}

}  // namespace sdma::explore::detail
