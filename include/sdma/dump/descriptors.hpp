// SPDX-License-Identifier: MIT
#pragma once
// Descriptors of queues, as the driver prints them for root: /sys/kernel/debug/kfd/mqds and hqds. They are not packets.
//
//   if (has_descriptors(text)) {
//     auto all = read_descriptors(text, "mqds");                    // or a Diagnostic: file, line, what to do
//     for (const QueueDescriptor& d : all->queues) use(d.engine(), d.value("rptr"));
//     std::string s = to_text(*all);                                // each field by name
//   }
//
//   Process 4711 PASID 32770:              mqds: a queue's descriptor in memory. The driver fills it when it
//     SDMA queue on device 4d01            unmaps the queue, so rptr and wptr may be old while it is mapped.
//       00000000: 00047011 00007f10 ...
//   Node 1, gpu_id 4d01:
//     SDMA Engine 3, RLC 1                 hqds: the registers of a mapped queue. That they come in the order
//       00005080: 00047011 00007f10 ...    of the descriptor is inferred.
//
//   dword   0        1-2          3-4    5-6    8-9        11       12          13-14     15        126      127
//           control  base >> 8    rptr   wptr   rptr_va    ib_rptr  ib_offset   ib_base   ib_dwords engine   queue
//
// Sources: the descriptor's structure in the driver, 4.x; dword 0 from its register. rptr_va has its high half first.
//
// The same form is written, for a program that shows queues as the driver does:
//
//   QueueDescriptor d{.process = 4711, .device = 0x4d01};
//   d.set("ring_base", 0x7f1000000000);  d.set("engine", 3);        // 128 dwords, in which every other field is 0
//   fputs(to_debugfs({{d}}).c_str(), file);                         // what read_descriptors reads back as `d`
//
// Queues of other engines are left out, and counted. Everything here allocates. No shared state; any thread may call
// these functions. Errors: a Diagnostic with file:line for a descriptor that is cut off or has a gap.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

struct QueueDescriptor {
  bool registers = false;                                      ///< from hqds
  std::optional<std::uint32_t> process{};                      ///< its id
  std::optional<std::uint32_t> device{};                       ///< gpu_id
  std::optional<std::uint32_t> named_engine{}, named_queue{};  ///< as the heading names them
  std::vector<std::uint32_t> dwords{};                         ///< from dword 0 on; see the table above
  std::size_t line{};                                          ///< of its heading; lines count from 1

  /// A field by name: "ring_base", "ring_bytes", "rptr", "wptr", "rptr_va", "ib_base", "ib_dwords", "ib_rptr",
  /// "ib_offset", "engine", "queue"; nothing if the dwords do not reach it.
  std::optional<std::uint64_t> value(std::string_view field) const;
  /// Stores a field of a descriptor in memory. Returns false if there is no such field, or the value does not fit.
  bool set(std::string_view field, std::uint64_t value);
  /// The engine that the heading names, else the field "engine"; nothing if neither is there.
  std::optional<std::uint64_t> engine() const;
  /// The queue that the heading names, else the field "queue"; nothing if neither is there.
  std::optional<std::uint64_t> queue() const;
};

/// The descriptors of sDMA queues in one text.
struct QueueDescriptors {
  std::vector<QueueDescriptor> queues{};  ///< in the order of the text
  std::size_t others = 0;                 ///< queues of other engines
};

/// Does the text have a heading of such a descriptor?
bool has_descriptors(std::string_view text) noexcept;
Result<QueueDescriptors, Diagnostic> read_descriptors(std::string_view text, std::string_view name);

/// The descriptors in memory as `mqds` shows them: a heading per process, a heading per queue, 8 dwords a line. Those
/// of a process have to follow each other. The PASID is invented, because a QueueDescriptor does not have it.
std::string to_debugfs(const QueueDescriptors&);
/// Each queue with its fields, one a line.
std::string to_text(const QueueDescriptors&);
/// One object a line.
std::string to_json(const QueueDescriptors&);

}}  // namespace sdma::v0_3
