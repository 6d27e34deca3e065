// SPDX-License-Identifier: MIT
#include "sdma/schedule/meet.hpp"

#include "../core/words.hpp"
#include "place.hpp"
#include "reception.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace sdma { inline namespace v0_3 {

namespace {

using detail::Answer;
using detail::Descriptor;

std::string of_process(std::uint64_t pid, const char* file) {
  return read_file(fmt::format("/proc/{}/{}", pid, file)).value_or("");
}
/// The field of /proc/PID/stat with this number, from 1; the second one may have blanks, and ends with a bracket.
std::string stat_field(std::uint64_t pid, int number) {
  const auto text = of_process(pid, "stat");
  auto rest = std::string_view(text).substr(std::min(text.rfind(')') + 1, text.size()));
  std::string_view field;
  for (int i = 2; i < number; ++i) field = detail::take_word(rest);
  return std::string(field);
}

/// Names the process that has started the ranks. A script between it and this process has the variables of the rank.
std::string starter(const Launched& at) {
  auto pid = static_cast<std::uint64_t>(::getppid());
  const auto of_this_rank = [&] {
    const auto all = std::string(1, '\0') + of_process(pid, "environ");
    for (const auto& setting : {at.rank_variable, at.size_variable})
      if (all.find('\0' + setting + '\0') == all.npos) return false;
    return true;
  };
  while (pid > 1 && of_this_rank()) pid = detail::whole_number<std::uint64_t>(stat_field(pid, 4)).value_or(0);
  return fmt::format("{} {}.{}", at.launcher, pid, stat_field(pid, 22));
}

/// Where rank 0 listens, and what all ranks know.
struct Plan {
  std::string place{}, token{};
};

Result<Plan, Diagnostic> plan_of(const Launched& at, const MeetOptions& o) {
  const auto fails = [&](std::string message, std::string hint) {
    return Diagnostic{.where = fmt::format("rank {}", at.rank), .message = std::move(message), .hint = std::move(hint)};
  };
  const bool one_host = at.local_size == at.size;
  Plan p{.place = o.address, .token = o.token};
  if (p.place.empty() && !one_host) p.place = at.address;
  if (!p.place.empty() && (p.place.starts_with('@') || !detail::is_place(p.place)))
    return fails(fmt::format("the place '{}' is not HOST:PORT", p.place),
                 "name rank 0's host, and a port from 1 to 65535");
  if (o.address.empty() && !p.place.empty() && at.address_taken) {
    const auto colon = p.place.rfind(':') + 1;
    const auto port = std::stoul(p.place.substr(colon));
    p.place = p.place.substr(0, colon) + std::to_string(port == 65535 ? port - 1 : port + 1);
  }
  if (p.place.empty() && !one_host && at.local_size)
    return fails(
        fmt::format("{} of {} ranks are on this host, and nothing says where rank 0 listens", *at.local_size, at.size),
        "give all ranks its host and a free port of it: --meet=HOST:PORT, or MASTER_ADDR and MASTER_PORT");
  const auto job = !at.job.empty() ? at.job : p.place.empty() || one_host ? starter(at) : "";
  if (p.place.empty()) p.place = fmt::format("@sdma-meet-{}-{}", ::geteuid(), job);
  const auto* const secret = std::getenv("SDMA_MEET_TOKEN");
  if (p.token.empty()) p.token = secret && *secret ? secret : job;
  if (p.token.empty())
    return fails(fmt::format("{} does not name the job, so any process could come to {}", at.launcher, p.place),
                 "set SDMA_MEET_TOKEN to the same secret word in all ranks");
  if (p.token.size() > detail::kLongestToken || p.token.find('\0') != p.token.npos)
    return fails(fmt::format("the token has {} bytes", p.token.size()),
                 fmt::format("use at most {}, none of which is 0", detail::kLongestToken));
  return p;
}

/// Longer and longer naps, so that many ranks do not keep the host of rank 0 busy.
class Naps {
 public:
  bool nap(Deadline d) {
    if (d.passed()) return false;
    detail::nap(std::min(next_, d.left()));
    next_ = std::min(next_ * 2, std::chrono::nanoseconds(std::chrono::milliseconds(50)));
    return true;
  }

 private:
  std::chrono::nanoseconds next_ = std::chrono::milliseconds(1);
};

class Rank {
 public:
  Rank(const Launched& at, Plan p, Deadline d)
      : plan_(std::move(p)),
        d_(d),
        there_(at.size),
        hello_{.rank = at.rank, .size = at.size, .place = {}, .token = plan_.token} {
    there_[at.rank] = true;
  }

  Result<Meeting, Diagnostic> first() {
    auto listener = detail::listen_at(plan_.place);
    // The port of a job that has just met is free in a moment.
    const auto soon = d_.within(std::chrono::seconds(1));
    for (Naps naps; !listener && naps.nap(soon);) listener = detail::listen_at(plan_.place);
    if (!listener)
      return fails(fmt::format("it cannot listen at {}: {}", plan_.place, listener.error()),
                   "end the other process that is rank 0 there, or meet elsewhere: --meet=HOST:PORT");
    detail::Reception all(hello_, std::move(*listener));
    if (const auto good = all.until_all(d_); !good) {
      const auto& e = good.error();
      all.answer_all({Answer::Kind::refused, fmt::format("{}: {}\n{}", e.where, e.message, e.hint)},
                     d_.within(std::chrono::seconds(1)));
      return e;
    }
    std::string places;
    for (const auto& place : all.places()) (places += place) += '\n';
    all.answer_all({Answer::Kind::places, places}, d_);
    return meeting(all);
  }

  Result<Meeting, Diagnostic> later() {
    const bool tcp = !plan_.place.starts_with('@');
    const auto host = tcp ? plan_.place.substr(0, plan_.place.rfind(':')) : "";
    auto listener = detail::listen_at(!tcp ? "@" : detail::is_loopback(host) ? host + ":0" : "[::]:0");
    if (!listener) return fails("it cannot listen: " + listener.error(), "see ip addr, and ulimit -n");
    hello_.place = detail::place_of(listener->get());
    detail::Reception all(hello_, std::move(*listener));
    const auto places = come_to_first(all);
    if (!places) return places.error();
    for (std::uint32_t r = 1; r < hello_.rank; ++r)
      for (std::uint32_t socket = 0; socket < 2; ++socket) {
        auto s = come_to((*places)[r], socket);
        if (!s)
          return fails(fmt::format("it does not reach rank {} at {}: {}", r, (*places)[r], s.error()),
                       "see whether that rank has ended, and whether a firewall is between the hosts");
        all.sockets[socket][r] = std::move(*s);
      }
    if (const auto good = all.until_all(d_); !good) return good.error();
    return meeting(all);
  }

 private:
  Diagnostic fails(std::string message, std::string hint) const {
    return {.where = fmt::format("rank {}", hello_.rank), .message = std::move(message), .hint = std::move(hint)};
  }

  /// Until it succeeds. The error is the last reason.
  Result<Descriptor, std::string> come_to(const std::string& place, std::uint32_t socket) {
    auto hello = hello_;
    hello.socket = socket;
    for (Naps naps;;) {
      auto s = detail::connect_to(place, d_);
      if (s && detail::send_hello(s->get(), hello, d_)) return s;
      if (!naps.nap(d_)) return s ? std::string("it closes the connection") : s.error();
    }
  }

  /// Connects to rank 0, and returns where each rank listens.
  Result<std::vector<std::string>, Diagnostic> come_to_first(detail::Reception& all) {
    for (Naps naps;;) {
      auto s = come_to(plan_.place, 0);
      if (!s) return no_first(s.error());
      auto answer = detail::receive_answer(s->get(), d_);
      if (answer) {
        all.sockets[0][0] = std::move(*s);
        return places_of(all.sockets[0][0].get(), std::move(*answer), all);
      }
      // Who listens there may be a job that has just met.
      const auto why = answer.error() == detail::NoAnswer::ended  ? "it closes the connection"
                       : answer.error() == detail::NoAnswer::late ? "it takes the connection, and says nothing"
                                                                  : "it is not a rank of sdma";
      if (answer.error() == detail::NoAnswer::late || !naps.nap(d_)) return no_first(why);
    }
  }

  Result<std::vector<std::string>, Diagnostic> places_of(int first, Answer a, detail::Reception& all) {
    there_[0] = true;
    for (bool connected = false;;) {
      if (a.kind == Answer::Kind::refused) {
        const auto end = std::min(a.text.find('\n'), a.text.size());
        return fails("rank 0 ends the meeting: " + a.text.substr(0, end),
                     a.text.substr(std::min(end + 1, a.text.size())));
      }
      if (a.kind == Answer::Kind::places) return lines_of(a.text, detail::host_of_peer(first));
      if (const auto r = detail::whole_number<std::uint32_t>(a.text); r && *r < there_.size()) there_[*r] = true;
      if (!std::exchange(connected, true)) {
        auto s = come_to(plan_.place, 1);
        if (!s) return no_first(s.error());
        all.sockets[1][0] = std::move(*s);
      }
      auto next = detail::receive_answer(first, d_);
      if (!next && next.error() == detail::NoAnswer::late)
        return detail::absent(hello_.rank, there_, "see what they report, and whether the launcher has started them");
      if (!next) return fails("rank 0 has ended before all ranks had come", "see what that rank reports");
      a = std::move(*next);
    }
  }

  /// A rank on rank 0's host is where rank 0 is.
  std::vector<std::string> lines_of(std::string_view text, const std::string& host) const {
    std::vector<std::string> all;
    while (!text.empty()) {
      const auto place = std::string(detail::take_line(text));
      all.push_back(place.starts_with(':') ? "[" + host + "]" + place : place);
    }
    all.resize(hello_.size);
    return all;
  }

  Diagnostic no_first(const std::string& why) {
    const bool tcp = !plan_.place.starts_with('@');
    return fails(fmt::format("rank 0 of {} is not at {} in time: {}", hello_.size, plan_.place, why),
                 tcp ? "see what rank 0 reports, and whether the place names its host"
                     : "see what rank 0 reports; ranks on several hosts need a place: --meet=HOST:PORT");
  }

  static Meeting meeting(detail::Reception& all) {
    std::vector<int> fds[2];
    for (const int i : {0, 1})
      for (auto& s : all.sockets[i]) fds[i].push_back(s.release());
    return {std::move(fds[0]), std::move(fds[1])};
  }

  Plan plan_;
  Deadline d_;
  std::vector<bool> there_;  ///< the ranks that this one knows to have come
  detail::Hello hello_;
};

}  // namespace

Meeting::~Meeting() {
  for (const auto* all : {&exchange_, &transport_})
    for (const int fd : *all)
      if (fd >= 0) ::close(fd);
}

Result<Meeting, Diagnostic> meet(const Launched& at, Deadline d, const MeetOptions& o) {
  auto plan = plan_of(at, o);
  if (!plan) return plan.error();
  Rank rank(at, std::move(*plan), d);
  return at.rank == 0 ? rank.first() : rank.later();
}

}}  // namespace sdma::v0_3
