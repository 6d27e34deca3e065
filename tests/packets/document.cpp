// SPDX-License-Identifier: MIT
// What is generated from the registry: tables of docs/packets.md and rows of include/sdma/packets/length_table.hpp.
//
//   document KIND FILE            exit code 1 and a message if the part of FILE after its marker line is out of date
//   document KIND --write FILE    replaces that part; the text before the marker is written by hand and kept
//
// KIND is `page` or `lengths`.
#include <bit>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/generated_part.hpp"
#include "sdma/packets/catalogue.hpp"
#include "sdma/packets/later.hpp"

namespace {

using namespace sdma;

constexpr std::string_view kMarker = "Generated from include/sdma/packets from here on: ninja -C build bless";

std::string hex(std::uint64_t v) {
  std::ostringstream out;
  out << "0x" << std::hex << v;
  return out.str();
}
/// 2^n and 2^n - 1 as such, from 4096 on.
std::string number(std::uint64_t v) {
  if (v < 4095) return std::to_string(v);
  if (std::has_single_bit(v)) return "2^" + std::to_string(std::countr_zero(v));
  if (std::has_single_bit(v + 1)) return "2^" + std::to_string(std::countr_zero(v + 1)) + " - 1";
  return v == ~std::uint64_t{} ? "2^64 - 1" : std::to_string(v);
}
std::string bits(unsigned dword, unsigned lo, unsigned hi) {
  if (hi > 63)
    return "dw" + std::to_string(dword) + "[31:" + std::to_string(lo) + "] to dw" + std::to_string(dword + 2) + '[' +
           std::to_string(hi - 64) + ":0]";
  if (hi > 31) return "dw" + std::to_string(dword) + ", dw" + std::to_string(dword + 1);
  auto out = "dw" + std::to_string(dword);
  if (lo == 0 && hi == 31) return out;
  return out + '[' + std::to_string(hi) + (lo == hi ? "" : ':' + std::to_string(lo)) + ']';
}

/// "op 1, sub_op 0, dw0[27] = 0": the constant bits, run by run.
std::string constants(const Pattern& p) {
  std::string out = "op " + std::to_string(p.value[0] & 0xff);
  const auto sub_mask = p.mask[0] >> 8 & 0xff;
  const bool sub = sub_mask == 0xff;
  if (sub) out += ", sub_op " + std::to_string(p.value[0] >> 8 & 0xff);
  if (sub_mask == 0) out += ", any sub_op";
  for (unsigned d = 0; d < Pattern::kDwords; ++d)
    for (unsigned lo = d ? 0 : sub ? 16 : 8; lo < 32; ++lo) {
      if (!(p.mask[d] >> lo & 1)) continue;
      auto hi = lo;
      while (hi < 31 && (p.mask[d] >> (hi + 1) & 1)) ++hi;
      const auto run = (p.value[d] >> lo) & static_cast<std::uint32_t>((std::uint64_t{1} << (hi - lo + 1)) - 1);
      out += ", " + bits(d, lo, hi) + " = " + (run > 9 ? hex(run) : std::to_string(run));
      lo = hi;
    }
  return out;
}

/// "7 + 4 * more"; "14, with dcc 17"
std::string dwords(const grammar::Length& l) {
  const std::string counted{l.counted};
  if (l.fixed == 0) return counted;
  const auto more = counted.empty() ? "" : " + " + (l.stride > 1 ? std::to_string(l.stride) + " * " : "") + counted;
  auto least = l.fixed + 0u;
  for (const auto& part : l.parts) least -= part.dwords;
  auto out = std::to_string(least) + more;
  for (const auto& part : l.parts)
    if (part.dwords) out += ", with `" + std::string(part.flag) + "` " + std::to_string(least + part.dwords) + more;
  return out;
}
/// Of a packet of kPackets, in 4.4.2.
std::string dwords(const PacketInfo& p) {
  return dwords(grammar::Length{.fixed = p.fixed,
                                .counted = !p.counted         ? std::string_view{}
                                           : p.fields_unknown ? std::string_view{"count"}
                                                              : p.counted->name,
                                .stride = p.stride});
}

std::string values(const FieldInfo& f, unsigned stride) {
  if (f.kind == Kind::flag) return "flag";
  if (f.kind == Kind::address) return "address";
  std::string out;
  if (f.bias == 0 && f.max() == f.mask() && f.width() % 32 == 0) out = std::to_string(f.width()) + " bits";
  else out = number(f.bias) + " to " + number(f.max());
  if (f.kind == Kind::payload) out += stride > 1 ? " times " + std::to_string(stride) + " dwords" : " dwords";
  return out;
}
std::string default_value(const FieldInfo& f) {
  if (!f.optional) return "";
  for (const auto& n : f.enumerants)
    if (n.value == f.default_value) return std::string(n.text);
  if (f.kind == Kind::payload) return "none";
  return f.kind == Kind::hex || f.kind == Kind::address ? (f.default_value ? hex(f.default_value) : "0")
                                                        : std::to_string(f.default_value);
}
std::string notes(const FieldInfo& f) {
  std::string out;
  const auto note = [&](const std::string& s) { out += (out.empty() ? "" : "; ") + s; };
  if (f.alignment > 1) note("multiple of " + std::to_string(f.alignment));
  if (f.bias) note("stored minus one");
  if (f.enumerants.size() > 8) note(std::to_string(f.enumerants.size()) + " names, below");
  else
    for (const auto& n : f.enumerants) note(std::to_string(n.value) + " " + std::string(n.text));
  for (const auto& m : {f.moved, f.moved_again})
    if (m.generations.mask) note(bits(m.dword, m.lo, m.hi) + " in " + to_string(m.generations));
  if (f.generations != kAllGenerations) note("only in " + to_string(f.generations));
  return out;
}

void describe(std::ostream& out, const PacketInfo& p, std::string_view type) {
  out << "\n## " << p.name << "\n`" << type << "`: " << p.doc << ".\n\n"
      << constants(p.pattern) << "; dwords: " << dwords(p) << ".";
  if (p.privilege == Privilege::kernel) out << " **Kernel only.**";
  if (p.generations != kAllGenerations) out << " Only in " << to_string(p.generations) << ".";
  if (p.exception && p.exception->pattern_generations.mask)
    out << " In " << to_string(p.exception->pattern_generations) << ": " << constants(p.exception->pattern) << ".";
  if (p.exception && p.exception->length_generations.mask)
    out << " In " << (p.exception->length_generations.contains(Generation::v4_4_2_header) ? "4.4.2-header, " : "")
        << to_string(p.exception->length_generations) << ": " << dwords(p.exception->length) << " dwords.";
  if (p.undescribed.mask) out << " Not described for " << to_string(p.undescribed) << ", which has it.";
  out << '\n';
  const std::span fields{p.fields.data(), p.all_fields};
  if (!fields.empty()) out << "\n| field | bits | meaning | values | default | |\n|---|---|---|---|---|---|\n";
  for (const auto& f : fields)
    out << "| `" << f.name << "` | " << bits(f.dword, f.lo, f.hi) << " | " << f.doc << " | " << values(f, p.stride)
        << " | " << default_value(f) << " | " << notes(f) << " |\n";
  for (const auto& r : p.rules) out << "\nRule `" << r.id << "`: " << r.text << ".\n";
  for (const auto& f : p.fields) {
    if (f.enumerants.size() <= 8) continue;
    out << "\nCodes of `" << f.name << "`:";
    for (std::size_t i = 0; i < f.enumerants.size(); ++i)
      out << (i % 4 == 0 ? "\n    " : "   ") << hex(f.enumerants[i].value) << ' ' << f.enumerants[i].text;
    out << '\n';
  }
}

/// The rows of a packet that has fields without a C++ type.
std::vector<const detail::Later*> later(std::string_view name) {
  std::vector<const detail::Later*> rows;
  for (const auto& l : detail::kLaterPackets)
    if (l.name == name) rows.push_back(&l);
  return rows;
}
void describe_later(std::ostream& out, const PacketInfo& p) {
  const auto rows = later(p.name);
  if (rows.empty() || rows[0]->fields.empty()) return;
  out << "\n## " << p.name << "\nWithout a C++ type: " << p.doc << ".\n\n" << constants(p.pattern) << "; dwords: ";
  for (const auto* l : rows)
    out << (l == rows[0] ? "" : "; ") << dwords(l->length) << " in " << to_string(l->generations);
  out << '.';
  if (rows[0]->privilege == Privilege::kernel) out << " **Kernel only.**";
  out << "\n\n| field | bits | meaning | |\n|---|---|---|---|\n";
  for (const auto& f : rows[0]->fields)
    out << "| `" << f.name << "` | " << bits(f.dword, f.lo, f.hi) << " | " << f.doc << " | " << notes(f) << " |\n";
}

/// What a queue of a process can do with a packet that the kernel's own rings use, or that names what is theirs; with
/// its source. docs/packets.md explains the marks.
struct InUserQueues {
  std::string_view packet, text;
};
constexpr InUserQueues kInUserQueues[] = {
    {"cond_exec", "allowed; the driver skips preempted buffers with it (`sdma_v*.c`)"},
    {"copy_dirty_page", "[inferred] not: physical addresses (packet headers, PAL)"},
    {"copy_physical", "[inferred] not: physical addresses (packet headers, PAL)"},
    {"fence_interrupt", "DRM user queues only (igt, `amdgpu_userq_fence.c`)"},
    {"gcr", "with form=1, which has no vmid; the driver sends form=0 (`sdma_v5_0.c` and later, PAL)"},
    {"hdp_flush", "in the runtime's fixed words only (ROCr)"},
    {"indirect",
     "open: KFD never sets IB_ENABLE (`kfd_mqd_manager_v9.c`); `vmid`, `priv` [inferred] not (`sdma_v*.c`, umr)"},
    {"poll_reg", "[inferred] not: registers and flush requests (`sdma_v*.c`)"},
    {"pre_exec", "nothing forbids it; the driver's (`sdma_v*.c`)"},
    {"pte_copy", "not shown to be refused, and of no use: page tables are in vmid 0 (`sdma_v*.c`)"},
    {"pte_generate", "not shown to be refused, and of no use: page tables are in vmid 0 (`sdma_v*.c`)"},
    {"pte_modify", "not shown to be refused, and of no use: page tables are in vmid 0 (`sdma_v*.c`)"},
    {"register_modify", "no: protected registers (`sdma_v5_0.c` and later)"},
    {"srbm_write", "no: an interrupt in 4.x, an illegal instruction in the log later (`sdma_v4_4_2.c`, `sdma_v5_0.c`)"},
    {"trap", "KFD: an event (`kfd_int_process_v*.c`); DRM user queues: nothing listens (`sdma_v7_1.c`)"},
    {"vm_invalidate", "[inferred] not: no user emits it (packet headers)"},
};
std::string_view in_user_queues(std::string_view packet) {
  for (const auto& r : kInUserQueues)
    if (r.packet == packet) return r.text;
  return "";
}

/// The name of a type as the compiler spells it, without namespaces.
template <class P> std::string_view type_name() {
  std::string_view s = __PRETTY_FUNCTION__;
  s = s.substr(s.find("P = ") + 4);
  s = s.substr(0, s.find_first_of(";]"));
  return s.substr(s.rfind(':') + 1);
}

std::string page() {
  std::ostringstream out;
  out << "\n| packet | op | sub_op | dwords | | in user queues |\n|---|---|---|---|---|---|\n";
  for (const auto& p : kPackets) {
    const auto sub_mask = p.pattern.mask[0] >> 8 & 0xff;
    const auto rows = later(p.name);
    const bool data = !rows.empty() && !rows[0]->fields.empty();
    out << "| "
        << (p.index >= Packets::size && !data ? std::string(p.name)
                                              : '[' + std::string(p.name) + "](#" + std::string(p.name) + ')')
        << " | " << (p.pattern.value[0] & 0xff) << " | "
        << (sub_mask == 0xff ? std::to_string(p.pattern.value[0] >> 8 & 0xff)
            : sub_mask       ? "some"
                             : "any")
        << " | " << dwords(p) << " | " << p.doc << (p.privilege == Privilege::kernel ? " (kernel only)" : "")
        << (p.index < Packets::size ? ""
            : data                  ? " (fields in " + to_string(rows[0]->generations | rows.back()->generations) + ")"
                                    : " (recognised, no fields)")
        << (p.generations == kAllGenerations ? "" : "; " + to_string(p.generations)) << " | " << in_user_queues(p.name)
        << " |\n";
  }
  [&]<class... P>(PacketList<P...>) { (describe(out, packet_info<P>, type_name<P>()), ...); }(Packets{});
  for (const auto& p : kPackets)
    if (p.index >= Packets::size) describe_later(out, p);
  describe_later(out, detail::later::kGpuvmInvalidatePacket);
  return out.str();
}

/// Dwords [0, the last that is not 0] of a pattern, as an initialiser.
std::string initialiser(const std::array<std::uint32_t, Pattern::kDwords>& dwords, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) {
    std::ostringstream dword;
    dword << "0x" << std::hex << std::setfill('0') << std::setw(8) << dwords[i];
    out += (i ? ", " : "{") + dword.str();
  }
  return out + '}';
}
std::string lengths() {
  std::ostringstream out;
  out << "namespace sdma { inline namespace v0_3 { namespace detail {\ninline constexpr std::array<PacketLength, "
      << kPackets.size() << "> kLengths{{\n";
  for (const auto& p : kPackets) {
    if (p.parts) throw std::runtime_error(std::string(p.name) + ": PacketLength cannot describe optional parts");
    const auto n = p.pattern.dwords();
    out << "    {{" << initialiser(p.pattern.mask, n) << ", " << initialiser(p.pattern.value, n) << "}, " << int{p.head}
        << ", " << int{p.fixed} << ", " << (p.counted ? int{p.stride} : 0);
    if (const auto* f = p.counted)
      out << ", {.dword = " << int{f->dword} << ", .lo = " << int{f->lo} << ", .hi = " << int{f->hi}
          << ", .bias = " << int{f->bias} << "}";
    out << "},  // " << p.name << '\n';
  }
  out << "}};\n}}}  // namespace sdma::v0_3::detail\n";
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc > 1 ? argv[1] : "";
  const bool write = argc == 4 && std::string_view(argv[2]) == "--write";
  if ((argc != 3 && !write) || (kind != "page" && kind != "lengths")) {
    std::cerr << "usage: document page|lengths [--write] FILE\n";
    return 2;
  }
  return generated_part(argv[argc - 1], kMarker, kind == "page" ? page() : lengths(),
                        {.write = write, .source = "include/sdma/packets"});
}
