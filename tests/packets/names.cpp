// SPDX-License-Identifier: MIT
// The names and the order of fields are the text form's, and frozen with its version: a stream that somebody keeps must
// read the same later. The list is written by hand; (in parentheses) what may be left out, with its default unless 0.
#include <map>
#include <sstream>

#include "packets/generic.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

constexpr std::string_view kSpelling = R"(
nop (dwords=1)
copy_linear bytes src dst (encrypt tmz src_swap src_policy dst_swap dst_policy)
copy_broadcast bytes src dst1 dst2 (encrypt tmz src_swap src_policy dst1_swap dst1_policy dst2_swap dst2_policy)
copy_struct table start count stride linear (tmz detile linear_swap table_swap linear_policy table_policy)
copy_subwindow element_log2 src src_pitch dst dst_pitch x (src_x src_y src_z src_slice=1 dst_x dst_y dst_z dst_slice=1 y=1 z=1 tmz dst_swap src_swap dst_policy src_policy)
copy_dirty_page bytes src dst (all tmz dst_swap dst_gcc dst_sys dst_snoop dst_gpa src_swap src_sys src_snoop src_gpa dst_policy src_policy)
copy_physical bytes src dst (tmz dst_swap dst_gcc dst_sys dst_snoop dst_gpa src_swap src_sys src_snoop src_gpa dst_log src_gcc dst_policy src_policy more)
copy_swap bytes a b (b_swap b_policy a_swap a_policy)
write dst data (swap policy encrypt tmz)
indirect base dwords (vmid priv csa)
fence addr value (l2_policy llc_policy)
trap context
semaphore addr (write_one signal mailbox)
mem_incr addr
poll_mem addr func reference (mask=4294967295 interval=4 retry=4095 policy hdp)
hdp_flush
poll_reg reg func reference (request mask=4294967295 interval=10 retry=4095 hdp policy)
poll_reg_to_mem reg dst (policy)
poll_dirty_bits dst page pages (ea policy)
poll_verify pattern a a_end b b_end record (mode policy)
cond_exec addr reference dwords (policy)
atomic op addr value (compare loop interval tmz policy)
fill dst data bytes unit (swap policy)
fill_multi dst stride count bytes (memlog_clear policy)
pte_generate dst flags init increment entries
pte_copy src dst mask entries (pde dst_policy src_policy)
pte_modify addr mask value (gcc sys snoop gpa entries=1)
pte_copy_backwards src dst mask_first mask_last blocks (pte_size forwards pde)
timestamp_set value
timestamp_local addr (l2_policy llc_policy)
timestamp addr (l2_policy llc_policy)
srbm_write reg value (byte_en=15)
pre_exec dwords devices
dummy_trap context
gcr (gl2_writeback gl2_invalidate gl2_discard gl2_range gl2_us gl1_invalidate glv_invalidate glk_invalidate glk_writeback glm_invalidate glm_writeback gl1_range gli_invalidate base limit vmid form=1)
)";

std::string spelling(const PacketInfo& p) {
  std::string out{p.name};
  bool open = false;
  for (const auto& f : p.fields) {
    out += ' ';
    if (f.optional && !open) out += '(';
    open = open || f.optional;
    out += f.name;
    if (f.optional && f.default_value) out += '=' + std::to_string(f.default_value);
    if (open && !f.optional) out += "<required behind an optional field>";
  }
  return open ? out + ')' : out;
}

TEST_CASE("packets and fields have the names, the order and the defaults of the text form") {
  std::istringstream lines{std::string(kSpelling.substr(1))};
  std::size_t i = 0;
  for (std::string line; std::getline(lines, line); ++i) {
    REQUIRE(i < kPackets.size());
    CHECK(spelling(kPackets[i]) == line);
  }
  CHECK(i == Packets::size);
}

TEST_CASE("no two packets have one name") {
  std::map<std::string_view, int> seen;
  for (const auto& p : kPackets)
    if (p.index < Packets::size || !p.foreign) CHECK(++seen[p.name] == 1);
}

TEST_CASE("every packet and every field says what it is") {
  for (const auto& p : kPackets) {
    CHECK_FALSE(p.doc.empty());
    for (const auto& f : p.fields) CHECK_FALSE(f.doc.empty());
    for (const auto& r : p.rules) {
      CHECK_FALSE(r.id.empty());
      CHECK_FALSE(r.text.empty());
    }
  }
}

/// Converts to whatever a member is.
struct Anything {
  template <class T> operator T() const noexcept;
};
template <class P, class... A> consteval std::size_t members() {
  if constexpr (requires { P{A{}..., Anything{}}; }) return members<P, A..., Anything>();
  else return sizeof...(A);
}

TEST_CASE("every member of a packet is described by one field") {
  each_packet([]<class P>() { holds(packet_info<P>.name, members<P>() == grammar::layout<P>.fields.size()); });
}

TEST_CASE("what the headers say of privilege") {
  for (const auto& p : kPackets) {
    const bool kernel = p.name.starts_with("pte_") || p.name == "srbm_write" || p.name == "copy_physical";
    CHECK((p.privilege == Privilege::kernel) == kernel);
  }
}

std::string_view counted_by(const PacketInfo& i) { return i.counted ? i.counted->name : std::string_view{}; }

void same_field(const FieldInfo& f, const FieldInfo& g, std::uint64_t number) {
  CHECK(f.name == g.name);
  CHECK((f.dword == g.dword && f.lo == g.lo && f.hi == g.hi && f.bias == g.bias && f.kind == g.kind));
  CHECK((f.alignment == g.alignment && f.limit == g.limit));
  if (g.kind != Kind::payload) CHECK(f.default_value == number);
}

void same_shape(const PacketInfo& i, std::size_t fields, std::string_view counted) {
  REQUIRE(i.fields.size() == fields);
  CHECK(i.head <= PacketInfo::kMaxHead);
  CHECK(counted_by(i) == counted);
}

TEST_CASE("the info of a packet is its layout") {
  each_packet([]<class P>() {
    const PacketInfo& i = *find(packet_info<P>.name);
    same_shape(i, detail::kFields<P>, grammar::layout<P>.length.counted);
    each_field<P>([&]<std::size_t I>() { same_field(i.fields[I], detail::field<P, I>, detail::number<P, I>(P{})); });
  });
}

}  // namespace
