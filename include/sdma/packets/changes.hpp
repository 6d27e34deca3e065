// SPDX-License-Identifier: MIT
#pragma once
// What a packet with a C++ type has in 5.2 to 7.1 that its type does not hold: fields that other generations lack, and
// those in whose bits they lie. Internal: catalogue() adds them.
//
//   {"copy_linear", k12, "src_policy", fields}      in 7.0: without that field, and with these
//
// A field that the packet already has takes its place, and keeps its member. The others have no member: text, JSON, the
// assembler and the rules know them, and the typed value leaves them out, as it leaves out reserved bits. scoped.hpp
// has types that hold those of 7.1.
//
// Where sources of 7.0 or 7.1 give the same bits to different fields, every bit that one of them names has a name here.
// In 7.0, PAL has two bits for the last level where the kernel's header, which is that of 6.0, has the top of a policy
// of three; so the policy keeps the two bits below. In 7.1 and 6.1, scopes and hints are those that ROCr writes into
// user queues (docs/packets.md).
//
// Constants: any thread may read them. No errors.
#include "sdma/packets/condition.hpp"
#include "sdma/packets/scoped_forms.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// What is different for a packet in some generations.
struct Change {
  std::string_view packet;              ///< its name
  Generations generations;              ///< those for which the row holds
  std::string_view without;             ///< fields that it does not have there, with a space between two
  std::span<const FieldInfo> fields{};  ///< those that it has there
};

namespace later {
// clang-format off
inline constexpr auto kLatest = only(v7_1);
/// A policy of two bits, and above it that for the last level.
constexpr auto split(std::string_view policy, std::string_view last, int d, int lo) noexcept {
  return list(Bits{policy, d, lo, lo + 1, "cache policy"}, Bits{last, d, lo + 2, lo + 3, "policy in the last level"});
}
inline constexpr auto kNpd = list(Bits{"npd", 0, 28, 28, "npd: no source says what it does"});
inline constexpr auto kTwoScopes = fields(scoped("dst_scope", "dst_hint", 2, 18), scoped("src_scope", "src_hint", 2, 26), kNpd);
inline constexpr auto kTwoMalls = fields(split("dst_policy", "dst_mall", 2, 18), split("src_policy", "src_mall", 2, 26));
inline constexpr auto kCipher = fields(list(Bits{"alg", 0, 28, 29, "algorithm of the encryption"}, Bits{"aes", 0, 30, 30, "aes"}));
inline constexpr auto kThreeMalls = fields(split("dst2_policy", "dst2_mall", 2, 10), split("dst1_policy", "dst1_mall", 2, 18), split("src_policy", "src_mall", 2, 26));
inline constexpr auto kStructMalls = fields(split("linear_policy", "linear_mall", 5, 18), split("table_policy", "table_mall", 5, 26));
inline constexpr auto kBoxScopes = fields(scoped("dst_scope", "dst_hint", 12, 18), scoped("src_scope", "src_hint", 12, 26), kNpd);
inline constexpr auto kDirtyMalls = fields(mall("dst_mall", 2, 2), mall("src_mall", 2, 10),
    list(Bits{"dst_mtype", 2, 4, 5, "memory type of the destination"}, Bits{"src_mtype", 2, 12, 13, "memory type of the source"}));
inline constexpr auto kNsd = list(Bits{"nsd", 0, 28, 28, "nsd: no source says what it does"});
inline constexpr auto kPhysicalMalls = fields(kNsd, mall("dst_mall", 2, 8), mall("src_mall", 2, 16),
    list(Bits{"dst_swap", 2, 18, 18, "endian swap of the destination, upper bit"}));
inline constexpr auto kPhysicalScopes = fields(kNsd, scoped("dst_scope", "dst_hint", 2, 6), scoped("src_scope", "src_hint", 2, 14));
inline constexpr auto kSwapScopes = fields(list(Bits{"a", 3, 0, 63, "one buffer"}.aligned(32).required(), Bits{"b", 5, 0, 63, "the other"}.aligned(32).required()),
    scoped("b_scope", "b_hint", 2, 18), scoped("a_scope", "a_hint", 2, 26), list(Bits{"tmz", 0, 18, 18, "trusted memory"}));
inline constexpr auto kWriteMall = fields(memory(3), list(Bits{"policy", 3, 26, 27, "cache policy"}, Bits{"mall", 3, 28, 29, "policy in the last level"}));
inline constexpr auto kWriteScope = fields(memory(3), list(Bits{"mtype", 3, 24, 25, "memory type"}), scoped("scope", "hint", 3, 26));
inline constexpr auto kFillMall = fields(memory(0), list(Bits{"comp", 0, 16, 16, "compress although no page table entry says so"},
    Bits{"swap", 0, 17, 17, "endian swap, upper bit"}), split("policy", "mall", 0, 24));
inline constexpr auto kFillNpd = list(Bits{"npd", 0, 29, 29, "npd: no source says what it does"});
inline constexpr auto kFillScope = fields(memory(0), list(Bits{"mtype", 0, 16, 17, "memory type"}), scoped("scope", "hint", 0, 24), kFillNpd);
inline constexpr auto kOlderFillScope = fields(scoped("scope", "hint", 0, 24), kFillNpd);
inline constexpr auto kMall26 = fields(mall("mall", 0, 26));
inline constexpr auto kScope24 = fields(scoped("scope", "hint", 0, 24));
inline constexpr auto kConditionMall = fields(split("policy", "mall", 0, 24));
inline constexpr auto kAtomicMall = fields(split("policy", "mall", 0, 20));
inline constexpr auto kPollMall = fields(kBlock, split("policy", "mall", 0, 20), list(Bits{"mode", 0, 27, 27, "mode: with hdp, two bits"}));
inline constexpr auto kStoreBlock = fields(kBlock, mall("mall", 0, 22), list(Bits{"data", 4, 0, 31, "index of the graphics block"}.hex()));
inline constexpr auto kDirtyBits = fields(mall("mall", 0, 16), list(Bits{"dp", 0, 23, 23, "dp: no source says what it does"}, Bits{"vfid", 0, 24, 28, "virtual function"}));
inline constexpr auto kContext = fields(list(Bits{"context", 1, 0, 31, "passed to the handler"}.required()));
inline constexpr auto kEntryScope = fields(list(Bits{"mtype", 0, 16, 17, "memory type"}), memory(0), scoped("scope", "hint", 0, 24));
inline constexpr auto kModifyScope = fields(list(Bits{"scope", 0, 24, 25, "scope of the access"}.named(names<Scope>), Bits{"hint", 0, 26, 27, "temporal hint"}));
inline constexpr auto kRegisterBlock = fields(list(Bits{"reg_high", 1, 18, 19, "bits 19:18 of the register, which is in bytes"}.hex()), kBlock);
inline constexpr auto kRegisterBytes = fields(list(Bits{"reg_high", 1, 18, 19, "bits 19:18 of the register, which is in bytes"}.hex()));
inline constexpr auto kBroadcast = fields(list(Bits{"broadcast", 1, 1, 1, "broadcast"}, Bits{"control_19", 3, 3, 3, "control bit 19"}));
// clang-format on
}  // namespace later

inline constexpr std::array kChanges{
    Change{"copy_linear", later::k12, "", later::kTwoMalls},
    Change{"copy_linear", grammar::kScopes, "", later::kTwoScopes},
    Change{"copy_broadcast", later::k12, "", later::kThreeMalls},
    Change{"copy_broadcast", grammar::since(Generation::v5_2), "", later::kCipher},
    Change{"copy_struct", later::k12, "", later::kStructMalls},
    Change{"copy_subwindow", later::kLatest, "", later::kBoxScopes},
    Change{"copy_dirty_page", later::k12, "", later::kDirtyMalls},
    Change{"copy_physical", later::k12, "dst_llc_policy src_llc_policy", later::kPhysicalMalls},
    Change{"copy_physical", later::kLatest, "dst_l2_policy dst_llc_policy src_l2_policy src_llc_policy dst_swap",
           later::kPhysicalScopes},
    Change{"copy_swap", later::kLatest, "a_swap b_swap", later::kSwapScopes},
    Change{"write", later::k12, "", later::kWriteMall},
    Change{"write", later::kLatest, "swap policy", later::kWriteScope},
    Change{"fill", later::k12, "", later::kFillMall},
    Change{"fill", grammar::only(Generation::v6_1), "", later::kOlderFillScope},
    Change{"fill", later::kLatest, "swap", later::kFillScope},
    Change{"timestamp", later::k12, "llc_policy", later::kMall26},
    Change{"timestamp", grammar::kScopes, "", later::kScope24},
    Change{"timestamp_local", later::k12, "llc_policy", later::kMall26},
    Change{"cond_exec", later::k12, "", later::kConditionMall},
    Change{"atomic", later::k12, "", later::kAtomicMall},
    Change{"poll_mem", later::k12, "", later::kPollMall},
    Change{"poll_reg", later::k12, "", later::kPollMall},
    Change{"poll_reg_to_mem", later::k12, "", later::kStoreBlock},
    Change{"poll_dirty_bits", later::k12, "ea policy cpv", later::kDirtyBits},
    Change{"trap", later::k12, "", later::kContext},
    Change{"dummy_trap", later::k12, "", later::kContext},
    Change{"mem_incr", later::k12, "llc_policy", later::kMall26},
    Change{"pte_generate", later::kLatest, "policy cpv", later::kEntryScope},
    Change{"pte_modify", later::kLatest, "l2_policy llc_policy", later::kModifyScope},
    Change{"srbm_write", later::k12, "", later::kRegisterBlock},
    Change{"srbm_write", later::kLatest, "", later::kRegisterBytes},
    Change{"gcr", later::k12, "", later::kBroadcast},
};

}}}  // namespace sdma::v0_3::detail
