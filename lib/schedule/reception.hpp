// SPDX-License-Identifier: MIT
#pragma once
// The side of a rank that listens while ranks meet (sdma/schedule/meet.hpp): it takes the connections of each higher
// rank, two of each, and refuses what does not belong to the job. Internal.
//
//   Reception reception(own_hello, std::move(listener));
//   auto good = reception.until_all(d);                 // then reception.sockets has them
//
// Rank 0 also answers: it says to each rank who has come, and `answer_all` sends the last answer. Nothing that connects
// can make it wait: it reads what is there, and drops the oldest connection if too many say nothing. One thread.
// Errors: a Diagnostic names the ranks that have not come, or the one that came and ended.
#include "../core/descriptor.hpp"
#include "hello.hpp"
#include "sdma/core/diagnostic.hpp"

#include <deque>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// "rank 2 of 4 has", "ranks 2 and 3 of 4 have", of those that are not there; ready for "not come in time".
std::string absent_text(const std::vector<bool>& there);
/// They have not come until the deadline.
Diagnostic absent(std::uint32_t rank, const std::vector<bool>& there, std::string hint);

class Reception {
 public:
  Reception(Hello own, Descriptor listener);
  Result<void, Diagnostic> until_all(Deadline);
  /// To each rank that has come, as far as its socket takes it until the deadline.
  void answer_all(const Answer&, Deadline);
  /// Where each rank listens, as the ranks of other hosts reach it: its HOST is empty if it is on this host.
  const std::vector<std::string>& places() const noexcept { return places_; }

  std::vector<Descriptor> sockets[2];  ///< of each rank: for the Exchange, for the Transport

 private:
  /// A connection that has not said all of its hello.
  struct Guest {
    Descriptor socket{};
    std::string said{};
  };
  bool first() const noexcept { return own_.rank == 0; }
  bool all_there() const noexcept;
  Result<void, Diagnostic> admit();
  void listen_to(Guest&);
  void decide(Guest&);
  std::optional<Answer> refusal(const Hello&) const;
  Diagnostic not_come() const;

  Hello own_;
  Descriptor listener_;
  std::deque<Guest> guests_{};
  std::vector<std::string> places_;
  std::string refused_{};  ///< the last that was refused, and why
};

}}}  // namespace sdma::v0_3::detail
