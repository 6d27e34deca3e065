// SPDX-License-Identifier: MIT
#pragma once
// Processes that a launcher has started find each other, without MPI, and connect: two sockets between each two ranks.
//
//   auto meeting = meet(mine, Deadline::in(30s));   // `mine`: what launched() has found (sdma/schedule/launcher.hpp)
//   if (!meeting) return fail(meeting.error());     // "ranks 2 and 3 of 4 have not come in time"
//   SocketExchange exchange(meeting->exchange());
//   SocketTransport network(meeting->transport());  // between nodes
//   auto bound = bind(schedule, device, {.rank = mine.rank, .ranks = mine.size, .exchange = &exchange});
//                                                   // the end of `meeting`, after that of `bound`, closes the sockets
//
//   rank 0                                         rank 1, and the others
//   listens at the place   <---- hello ----------  connects, again and again until rank 0 listens
//                          ----- rank 1 came --->  learns who is there, for its error at the deadline
//   when all have come     ----- where each is ->  connects to each lower rank, and listens for the higher ones
//
// The place, in this order:
//   1  MeetOptions::address, HOST:PORT: a name or address of rank 0's host, and a port that is free there
//   2  all ranks on this host, by Launched::local_size: a Unix socket named after user and job, which leaves no file
//   3  Launched::address (MASTER_ADDR, MASTER_PORT). If torchrun's agent listens there itself, the next port, which
//      is MASTER_PORT + 1
//   4  local_size unknown: as 2, because ranks that meet there are on one host
//   5  none: an error
// The name of the job in 2 is Launched::job. If the launcher names no job, the number and the start time of the process
// that has started the ranks name it: of the youngest ancestor whose environment lacks the variables of this rank.
//
// The token keeps other jobs away. It is MeetOptions::token, or SDMA_MEET_TOKEN of the environment, or the job's name.
// A process with another token, another version of sdma, another number of ranks or a rank that is there already is
// refused, with a sentence, and the others still wait. What connects and says nothing, or anything else, is
// ignored. On one host, the kernel says that a process is of the same user. Between hosts, the token passes as plain
// text, and the name of a job is not a secret: set SDMA_MEET_TOKEN, and use a network that you trust.
//
// The sockets block, are closed by exec, and do not depend on rank 0 any more. One thread at a time. Errors: a
// Diagnostic names the ranks that have not come; no descriptor is left. Everything ends at the deadline, except the
// search for the address of a host name, which takes as long as the resolver needs.
#include "sdma/core/deadline.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/launcher.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// What all ranks give alike.
struct MeetOptions {
  std::string address{};  ///< "HOST:PORT", where rank 0 listens; "": as above
  std::string token{};    ///< "": as above
};

/// The sockets of this rank. They close with it.
class Meeting {
 public:
  /// The vectors as `exchange` and `transport` return them; the Meeting closes the descriptors.
  Meeting(std::vector<int> exchange, std::vector<int> transport) noexcept
      : exchange_(std::move(exchange)), transport_(std::move(transport)) {}
  Meeting(Meeting&& o) noexcept : exchange_(std::move(o.exchange_)), transport_(std::move(o.transport_)) {
    o.exchange_.clear();
    o.transport_.clear();
  }
  Meeting& operator=(Meeting&&) = delete;
  ~Meeting();
  /// A connected stream socket to each other rank; the entry of this rank is -1. For a SocketExchange.
  const std::vector<int>& exchange() const noexcept { return exchange_; }
  /// Others, for a SocketTransport.
  const std::vector<int>& transport() const noexcept { return transport_; }

 private:
  std::vector<int> exchange_, transport_;
};

/// All ranks call it, and each returns when it is connected to all others, or at the deadline.
Result<Meeting, Diagnostic> meet(const Launched&, Deadline, const MeetOptions& = {});

}}  // namespace sdma::v0_3
