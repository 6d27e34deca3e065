// SPDX-License-Identifier: MIT
// The dwords of packets, worked out by hand from the formats and not by this library: most are checked by the compiler.
// Every packet stands here with all its fields at values that are not zero and not alike, so that two fields cannot
// change places unseen; the short ones below are those of public runtimes.
#include "packets/generic.hpp"

using namespace sdma;

namespace {

constexpr GpuVa kS{0x7f1122334000}, kD{0x7f5566778000}, kD2{0x7f99aabbc000}, kA{0x7f0000001008};

template <std::size_t N> using Dwords = std::array<std::uint32_t, N>;

// Bytes, addresses and counts: what public runtimes send.
static_assert(encode(CopyLinear{.src = kS, .dst = kD, .bytes = 4096}) ==
              Dwords<7>{0x00000001, 0x00000fff, 0, 0x22334000, 0x00007f11, 0x66778000, 0x00007f55});
static_assert(encode(CopyLinear{.src = kS, .dst = kD, .bytes = 1u << 30})[1] == 0x3fffffff);
static_assert(encode(CopyBroadcast{.src = kS, .dst1 = kD, .dst2 = kD2, .bytes = 64 << 10}) ==
              Dwords<9>{0x08000001, 0x0000ffff, 0, 0x22334000, 0x00007f11, 0x66778000, 0x00007f55, 0xaabbc000,
                        0x00007f99});
static_assert(encode(CopySwap{.a = kS, .b = kD, .bytes = 4096}) ==
              Dwords<7>{0x00000901, 0x00000fff, 0, 0x22334000, 0x00007f11, 0x66778000, 0x00007f55});
static_assert(encode(Fence{.addr = kA, .value = 0xdeadbeef}) ==
              Dwords<4>{0x00000005, 0x00001008, 0x00007f00, 0xdeadbeef});
static_assert(encode(Trap{.context = 0x123}) == Dwords<2>{0x00000006, 0x00000123});
static_assert(encode(PollMem{.addr = kA}) == Dwords<6>{0xb0000008, 0x00001008, 0x00007f00, 0, 0xffffffff, 0x0fff0004});
static_assert(encode(HdpFlush{}) == Dwords<6>{0x00000008, 0, 0x80000000, 0, 0, 0});
static_assert(encode(Atomic{.addr = kA, .value = ~0ull}) ==
              Dwords<8>{0x5e00000a, 0x00001008, 0x00007f00, 0xffffffff, 0xffffffff, 0, 0, 0});
static_assert(encode(Fill{.dst = kD, .data = 0xa5a5a5a5, .bytes = 4093}) ==
              Dwords<5>{0x8000000b, 0x66778000, 0x00007f55, 0xa5a5a5a5, 0x00000ffc});
static_assert(encode(Fill{.dst = kD, .data = 0xa5a5a5a5, .bytes = 4096}) ==
              Dwords<5>{0x8000000b, 0x66778000, 0x00007f55, 0xa5a5a5a5, 0x00000fff});
static_assert(encode(Timestamp{.addr = GpuVa{0x7f0000001020}}) == Dwords<3>{0x0000020d, 0x00001020, 0x00007f00});
static_assert(encode(Indirect{.base = kS, .dwords = 64}) ==
              Dwords<6>{0x00000004, 0x22334000, 0x00007f11, 0x00000040, 0, 0});

// Every field of every packet.
constexpr GpuVa kP{0x0123456789abcde0}, kQ{0xfedcba9876543200}, kR{0x1122334455667780};
static_assert(encode(CopyLinear{.src = kP,
                                .dst = kQ,
                                .bytes = 0x2aaaaaab,
                                .encrypt = true,
                                .tmz = true,
                                .src_swap = 1,
                                .src_policy = 5,
                                .dst_swap = 2,
                                .dst_policy = 3}) ==
              Dwords<7>{0x00050001, 0x2aaaaaaa, 0x150e0000, 0x89abcde0, 0x01234567, 0x76543200, 0xfedcba98});
static_assert(encode(CopyBroadcast{.src = kP,
                                   .dst1 = kQ,
                                   .dst2 = kR,
                                   .bytes = 0x15555556,
                                   .encrypt = true,
                                   .tmz = true,
                                   .src_swap = 1,
                                   .src_policy = 5,
                                   .dst1_swap = 2,
                                   .dst1_policy = 3,
                                   .dst2_swap = 3,
                                   .dst2_policy = 6}) == Dwords<9>{0x08050001, 0x15555555, 0x150e1b00, 0x89abcde0,
                                                                   0x01234567, 0x76543200, 0xfedcba98, 0x55667780,
                                                                   0x11223344});
static_assert(encode(CopySwap{
                  .a = kQ, .b = kR, .bytes = 0x2aaaaaab, .b_swap = 1, .b_policy = 5, .a_swap = 2, .a_policy = 3}) ==
              Dwords<7>{0x00000901, 0x2aaaaaaa, 0x150e0000, 0x76543200, 0xfedcba98, 0x55667780, 0x11223344});
static_assert(encode(CopyStruct{.table = kP,
                                .linear = kQ,
                                .start = 0x11111111,
                                .count = 0x22222222,
                                .stride = 0x555,
                                .tmz = true,
                                .detile = true,
                                .linear_swap = 2,
                                .table_swap = 1,
                                .linear_policy = 5,
                                .table_policy = 3}) == Dwords<8>{0x80040301, 0x89abcde0, 0x01234567, 0x11111111,
                                                                 0x22222222, 0x0d160555, 0x76543200, 0xfedcba98});
static_assert(encode(CopySubwindow{.src = kP,
                                   .dst = kQ,
                                   .element_log2 = 3,
                                   .src_pitch = 0x55556,
                                   .dst_pitch = 0x2aaab,
                                   .src_slice = 0x5555556,
                                   .dst_slice = 0xaaaaaab,
                                   .x = 0x1556,
                                   .y = 0x2aab,
                                   .z = 0x556,
                                   .src_x = 0x1111,
                                   .src_y = 0x2222,
                                   .src_z = 0x333,
                                   .dst_x = 0x3111,
                                   .dst_y = 0x1222,
                                   .dst_z = 0x444,
                                   .tmz = true,
                                   .dst_swap = 2,
                                   .src_swap = 1}) ==
              Dwords<13>{0x60040401, 0x89abcde0, 0x01234567, 0x22221111, 0xaaaaa333, 0x05555555, 0x76543200, 0xfedcba98,
                         0x12223111, 0x55554444, 0x0aaaaaaa, 0x2aaa1555, 0x01020555});
static_assert(encode(CopyDirtyPage{.src = kP,
                                   .dst = kQ,
                                   .bytes = 0x2aaaab,
                                   .all = true,
                                   .tmz = true,
                                   .dst_swap = 2,
                                   .dst_gcc = true,
                                   .dst_snoop = true,
                                   .src_swap = 1,
                                   .src_snoop = true}) ==
              Dwords<7>{0x80040701, 0x002aaaaa, 0x414a0000, 0x89abcde0, 0x01234567, 0x76543200, 0xfedcba98});
static_assert(encode(CopyDirtyPage{.bytes = 1, .dst_sys = true, .dst_gpa = true, .src_sys = true, .src_gpa = true}) ==
              Dwords<7>{0x00000701, 0, 0x90900000, 0, 0, 0, 0});
// Where a debugger's tables have cache policies, from 4.4 on.
static_assert(encode(CopySubwindow{.dst_policy = 2, .src_policy = 5})[12] == 0x14080000);
static_assert(encode(CopyDirtyPage{.bytes = 1, .dst_policy = 2, .src_policy = 1})[2] == 0x00002040);
static_assert(decode<CopyPhysical>(Dwords<7>{0x00000801, 0, 0x00004040, 0, 0, 0, 0}).dst_policy == 2);
static_assert(decode<CopyPhysical>(Dwords<7>{0x00000801, 0, 0x00004040, 0, 0, 0, 0}).src_policy == 2);
static_assert(encode(PteCopy{.entries = 1, .dst_policy = 5, .src_policy = 6})[7] == 0xc1400001);
static_assert(encode(Fence{.addr = kP, .value = 0x12345678, .l2_policy = 2, .llc_policy = true}) ==
              Dwords<4>{0x06000005, 0x89abcde0, 0x01234567, 0x12345678});
static_assert(encode(Atomic{.addr = kP,
                            .op = AtomicOp::dec_64,
                            .value = 0x1111222233334444,
                            .compare = 0x5555666677778888,
                            .loop = true,
                            .interval = 0x1555,
                            .tmz = true,
                            .policy = 5}) == Dwords<8>{0xf255000a, 0x89abcde0, 0x01234567, 0x33334444, 0x11112222,
                                                       0x77778888, 0x55556666, 0x00001555});
static_assert(encode(Semaphore{.addr = kP, .write_one = true, .mailbox = true}) ==
              Dwords<3>{0xa0000007, 0x89abcde0, 0x01234567});
static_assert(encode(MemIncr{.addr = kP}) == Dwords<3>{0x00000107, 0x89abcde0, 0x01234567});
static_assert(encode<Generation::v6_0>(Gcr{.base = 0x155555555,
                                           .limit = 0x1aaaaaaaaaa,
                                           .gl2_invalidate = true,
                                           .gl2_range = 2,
                                           .gl1_invalidate = true,
                                           .glk_invalidate = true,
                                           .glm_invalidate = true,
                                           .gl1_range = 1,
                                           .gli_invalidate = 2,
                                           .vmid = 9,
                                           .disputed = 5}) ==
              Dwords<5>{0x00000111, 0xaaaaaa80, 0x52a600aa, 0x55555505, 0x0900d555});
static_assert(encode<Generation::v6_0>(Gcr{.gl2_writeback = true,
                                           .gl2_discard = true,
                                           .gl2_us = true,
                                           .glv_invalidate = true,
                                           .glk_writeback = true,
                                           .glm_writeback = true}) == Dwords<5>{0x00000111, 0, 0xa5500000, 0, 0});
static_assert(encode(Semaphore{.addr = kP, .signal = true}) == Dwords<3>{0x40000007, 0x89abcde0, 0x01234567});
static_assert(encode(PollMem{.addr = kP,
                             .func = Compare::gt,
                             .reference = 0x11112222,
                             .mask = 0x33334444,
                             .interval = 0x5556,
                             .retry = 0x789,
                             .policy = 5,
                             .hdp = true}) ==
              Dwords<6>{0xe4500008, 0x89abcde0, 0x01234567, 0x11112222, 0x33334444, 0x07895556});
static_assert(encode(PollReg{.reg = 0x12340,
                             .request = 0x56780,
                             .func = Compare::ne,
                             .reference = 0x11112222,
                             .mask = 0x33334444,
                             .interval = 0x5556,
                             .retry = 0x789,
                             .hdp = true,
                             .policy = 5}) ==
              Dwords<6>{0x44500008, 0x00012340, 0x00056780, 0x11112222, 0x33334444, 0x07895556});
static_assert(encode(PollRegToMem{.reg = 0x12340, .dst = kP, .policy = 5}) ==
              Dwords<4>{0x05000108, 0x00012340, 0x89abcde0, 0x01234567});
static_assert(encode(PollDirtyBits{.dst = kP, .page = 0x12345670, .pages = 0x89, .ea = 2, .policy = 5}) ==
              Dwords<5>{0x05020208, 0x89abcde0, 0x01234567, 0x12345670, 0x00000089});
static_assert(
    encode(PollVerify{
        .a = kP, .a_end = kQ, .b = kR, .b_end = kS, .record = kD, .pattern = 0xdeadbeef, .mode = true, .policy = 5}) ==
    Dwords<13>{0x85000308, 0xdeadbeef, 0x89abcde0, 0x01234567, 0x76543200, 0xfedcba98, 0x55667780, 0x11223344,
               0x22334000, 0x00007f11, 0x66778000, 0x00007f55, 0});
static_assert(encode(CondExec{.addr = kP, .reference = 0x11112222, .dwords = 0x1556, .policy = 5}) ==
              Dwords<5>{0x05000009, 0x89abcde0, 0x01234567, 0x11112222, 0x00001556});
static_assert(encode(PreExec{.dwords = 0x1556, .devices = 0xa5}) == Dwords<2>{0x00a5000f, 0x00001556});
static_assert(encode(Indirect{.base = kP, .dwords = 0xabcde, .vmid = 9, .priv = true, .csa = kQ}) ==
              Dwords<6>{0x80090004, 0x89abcde0, 0x01234567, 0x000abcde, 0x76543200, 0xfedcba98});
static_assert(encode(Trap{.context = 0xabcdef1}) == Dwords<2>{0x00000006, 0x0abcdef1});
static_assert(encode(DummyTrap{.context = 0xabcdef1}) == Dwords<2>{0x00000010, 0x0abcdef1});
static_assert(encode(SrbmWrite{.reg = 0x2abcd, .value = 0x12345678, .byte_en = 5}) ==
              Dwords<3>{0x5000000e, 0x0002abcd, 0x12345678});
static_assert(
    encode(Fill{.dst = kP, .data = 0x12345678, .bytes = 0x2aaaaaab, .unit = FillUnit::half, .swap = 2, .policy = 5}) ==
    Dwords<5>{0x4502000b, 0x89abcde0, 0x01234567, 0x12345678, 0x2aaaaaaa});
static_assert(
    encode(FillMulti{
        .dst = kP, .stride = 0x11112222, .count = 0x33334444, .bytes = 0x2aaaaaa, .memlog_clear = true, .policy = 5}) ==
    Dwords<6>{0x8500010b, 0x11112222, 0x33334444, 0x89abcde0, 0x01234567, 0x02aaaaaa});
static_assert(encode(Timestamp{.addr = kP, .l2_policy = 2, .llc_policy = true}) ==
              Dwords<3>{0x0600020d, 0x89abcde0, 0x01234567});
static_assert(encode(TimestampLocal{.addr = kP, .l2_policy = 1, .llc_policy = true}) ==
              Dwords<3>{0x0500010d, 0x89abcde0, 0x01234567});
static_assert(encode(TimestampSet{.value = 0x1122334455667788}) == Dwords<3>{0x0000000d, 0x55667788, 0x11223344});
static_assert(encode(PteGenerate{.dst = kP,
                                 .flags = 0x1111222233334444,
                                 .init = 0x5555666677778888,
                                 .increment = 0x9999aaaabbbbcccc,
                                 .entries = 0x55556}) == Dwords<10>{0x0000000c, 0x89abcde0, 0x01234567, 0x33334444,
                                                                    0x11112222, 0x77778888, 0x55556666, 0xbbbbcccc,
                                                                    0x9999aaaa, 0x00055555});
static_assert(encode(PteCopy{.src = kP, .dst = kQ, .mask = 0x1111222233334444, .entries = 0x55555, .pde = true}) ==
              Dwords<8>{0x8000010c, 0x89abcde0, 0x01234567, 0x76543200, 0xfedcba98, 0x33334444, 0x11112222,
                        0x00055555});
static_assert(encode(PteModify{
                  .addr = kP, .mask = 0x1111222233334444, .value = 0x5555666677778888, .gcc = true, .snoop = true}) ==
              Dwords<8>{0x0048020c, 0x89abcde0, 0x01234567, 0x33334444, 0x11112222, 0x77778888, 0x55556666, 1});
static_assert(encode(PteModify{.sys = true, .gpa = true, .entries = 0x12345678}) ==
              Dwords<8>{0x0090020c, 0, 0, 0, 0, 0, 0, 0x12345678});
static_assert(encode<Generation::v4_4_2_header>(PteModify{.sys = true, .gpa = true}) ==
              Dwords<7>{0x0090020c, 0, 0, 0, 0, 0, 0});
static_assert(encode(PteCopyBackwards{.src = kP,
                                      .dst = kQ,
                                      .mask_first = 0xa5,
                                      .mask_last = 0x3c,
                                      .blocks = 0x15555,
                                      .pte_size = 2,
                                      .forwards = true}) ==
              Dwords<7>{0x6000030c, 0x89abcde0, 0x01234567, 0x76543200, 0xfedcba98, 0x00003ca5, 0x00015555});
static_assert(encode(PteCopyBackwards{.pde = true}) == Dwords<7>{0x8000030c, 0, 0, 0, 0, 0, 0});

// Packets of variable length, in constant expressions too.
constexpr std::array kData{0x11223344u, 0x55667788u};
template <std::size_t N, Packet P> constexpr Dwords<N> spelled(const P& p) {
  Dwords<N> out{};
  if (length(p) != N || encode_to(p, out.data()) != out.data() + N) return {};
  return out;
}
static_assert(spelled<6>(Write{.dst = kD, .data = kData}) ==
              Dwords<6>{0x00000002, 0x66778000, 0x00007f55, 0x00000001, 0x11223344, 0x55667788});
static_assert(spelled<6>(Write{.dst = kP, .data = kData, .swap = 2, .policy = 5, .encrypt = true, .tmz = true}) ==
              Dwords<6>{0x00050002, 0x89abcde0, 0x01234567, 0x16000001, 0x11223344, 0x55667788});
constexpr std::array kPair{0x55667780u, 0x11223344u, 0x22334000u, 0x00007f11u};
static_assert(spelled<11>(CopyPhysical{.src = kP,
                                       .dst = kQ,
                                       .bytes = 0x2aaaab,
                                       .tmz = true,
                                       .dst_swap = 2,
                                       .dst_gcc = true,
                                       .dst_snoop = true,
                                       .src_swap = 1,
                                       .src_snoop = true,
                                       .dst_log = true,
                                       .src_gcc = true,
                                       .more = kPair}) == Dwords<11>{0x00040801, 0x012aaaaa, 0x496a0000, 0x89abcde0,
                                                                     0x01234567, 0x76543200, 0xfedcba98, 0x55667780,
                                                                     0x11223344, 0x22334000, 0x00007f11});
static_assert(spelled<7>(CopyPhysical{
                  .bytes = 1, .dst_sys = true, .dst_gpa = true, .src_sys = true, .src_gpa = true}) ==
              Dwords<7>{0x00000801, 0, 0x90900000, 0, 0, 0, 0});
static_assert(spelled<1>(Nop{}) == Dwords<1>{0});
static_assert(spelled<16>(Nop{.dwords = 16}) == Dwords<16>{0x000f0000});

TEST_CASE("the hand-written vectors cover every packet with each field at a value of its own") {
  // The asserts above are the test; this says that no packet was forgotten when one is added: bump it with the vectors.
  CHECK(Packets::size == 35);
}

TEST_CASE("decoding a public vector gives its meaning") {
  const Dwords<6> poll{0xb0000008, 0x00001008, 0x00007f00, 0, 0xffffffff, 0x0fff0004};
  const auto p = decode<PollMem>(poll);
  CHECK(p.addr == kA);
  CHECK(p.func == Compare::eq);
  CHECK(p.mask == 0xffffffff);
  CHECK(p.interval == 4);
  CHECK(p.retry == 4095);

  const Dwords<8> atomic{0x5e00000a, 0x00001008, 0x00007f00, 0xffffffff, 0xffffffff, 0, 0, 0};
  CHECK(decode<Atomic>(atomic).op == AtomicOp::add_rtn_64);
  CHECK(decode<Atomic>(atomic).value == ~0ull);

  const Dwords<7> copy{0x00000001, 0x3fffffff, 0, 0x22334000, 0x00007f11, 0x66778000, 0x00007f55};
  CHECK(decode<CopyLinear>(copy).bytes == 1u << 30);
  CHECK(decode<CopyLinear>(copy).src == kS);
  CHECK(decode<CopyLinear>(copy).dst == kD);
}

}  // namespace
