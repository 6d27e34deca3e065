// SPDX-License-Identifier: MIT
#pragma once
// What words hold while an execution is followed. Internal.
//
//   Memory m{snapshot, {0x1000, 0x2004}};         // the dwords that matter
//   m.dword(0x1000)                               // their values now; nullopt: not known
//   m.touches(packet)                             // which of them a packet stores to
//   m.post(packet)                                // the packet lands
//   m.after(packet, 0x1000)                       // what the dword would hold after it
#include "line.hpp"

#include <map>

namespace sdma::inline v0::doctor {

class Memory {
 public:
  /// `dwords`: addresses of the dwords that matter.
  Memory(const Snapshot&, std::vector<std::uint64_t> dwords);

  std::optional<std::uint32_t> dword(std::uint64_t va) const;
  /// `bytes`: 4 or 8.
  std::optional<std::uint64_t> word(std::uint64_t va, std::uint32_t bytes) const;
  /// The dwords that matter and that the packet stores to.
  std::vector<std::uint64_t> touches(const PacketView&) const;
  /// What the dword holds after the packet; nullopt: not known.
  std::optional<std::uint32_t> after(const PacketView&, std::uint64_t dword) const;
  /// `touched`: what touches() returned.
  void post(const PacketView&, const std::vector<std::uint64_t>& touched);
  /// A store by the host.
  void store(std::uint64_t va, std::uint64_t value, std::uint32_t bytes);

 private:
  const Snapshot& s_;
  std::vector<std::uint64_t> sorted_;
  std::map<std::uint64_t, std::optional<std::uint32_t>> now_;
};

}  // namespace sdma::inline v0::doctor
