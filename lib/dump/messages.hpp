// SPDX-License-Identifier: MIT
#pragma once
// What kernels and runtimes print about copies: one table of messages, each a phrase with typed places (phrase.hpp).
// Internal: the reader of logs (log.hpp) finds them, and the doctor says what they mean.
//
//   if (const auto f = find_message("amdgpu: ring sdma0 timeout, signaled seq=5, emitted seq=7"))
//     use(f->message->means, f->match["ring"]);
//
// Adding a message is adding a row to message_table.cpp, with the versions that print it, what it means for copies, and
// what to do. If several rows fit a line, the first one counts. Source: the driver of each version, and public reports.
//
// Pure functions, of which the first call builds an index; any thread. No errors.
#include "phrase.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// What a message is for. The lines of a fault stand in the order of their enumerators.
enum class LogWord : std::uint8_t {
  fault,           ///< the first line of a page fault: {hub}, {vmid}, {pasid}; perhaps {program} and {pid}
  process,         ///< of a fault or a ring's timeout: {program}, {pid}
  page,            ///< of a fault: {address}
  die,             ///< of a fault: {die}
  status,          ///< of a fault: {status}
  client,          ///< of a fault: {client}
  detail,          ///< of a fault: a field of the status
  access,          ///< of a fault: {write} is 1 for a write
  whole_fault,     ///< a fault in one line: {device}, {address}
  dumped_process,  ///< of a devcoredump: {program}, {pid}
  dumped_fault,    ///< of a devcoredump: the last fault's {address}, 0 if there was none
  timeout,         ///< a line of a process may follow, which is not a fault's
  event,           ///< anything else that says something about copies
};

struct Message {
  LogWord what{};
  std::string_view phrase{};
  std::string_view versions{};  ///< of Linux, or what else prints it
  std::string_view means{};     ///< what it says of the queues of copies: one sentence or more
  std::string_view to_do{};     ///< what to do, without a full stop
};
std::span<const Message> messages() noexcept;

struct FoundMessage {
  const Message* message{};
  PhraseMatch match{};  ///< its views lie in the text
};
/// The first message of the table that the text has.
std::optional<FoundMessage> find_message(std::string_view text);

}}}  // namespace sdma::v0_3::detail
