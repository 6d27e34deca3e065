// SPDX-License-Identifier: MIT
// Processes that meet as a launcher's ranks do: over Unix sockets and over TCP, with strangers among them.
#include "sdma/schedule/meet.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "core/abstract_address.hpp"
#include "device/process.hpp"
#include "schedule/hello.hpp"
#include "schedule/place.hpp"
#include "sdma/schedule/exchange.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;
using detail::Answer;

namespace {

/// A port of 127.0.0.1 that is this test's, and at which a process of it may listen.
class Port {
 public:
  explicit Port(std::uint16_t number = 0) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(number);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    auto* const a = reinterpret_cast<sockaddr*>(&at);
    if (bind(fd_, a, bytes) == 0 && getsockname(fd_, a, &bytes) == 0) number_ = ntohs(at.sin_port);
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port() { close(fd_); }
  std::uint16_t number() const { return number_; }  ///< 0: another process has it
  std::string at(const std::string& host = "127.0.0.1") const { return host + ":" + std::to_string(number_); }
  int fd() const { return fd_; }

 private:
  int fd_;
  std::uint16_t number_ = 0;
};

/// One job of this test, on one host.
Launched job(std::uint32_t size) {
  static int jobs = 0;
  Launched at{.size = size, .local_size = size};
  at.launcher = "test";
  at.job = "test " + std::to_string(getpid()) + " " + std::to_string(++jobs);
  return at;
}
std::string unix_place(const Launched& at) { return "@sdma-meet-" + std::to_string(geteuid()) + "-" + at.job; }

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* const at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Meets, and passes bytes to each other rank over both sockets. "met 0 2", with the ranks whose bytes came, or the
/// error.
std::string meets(const Launched& at, Deadline d, const MeetOptions& o) {
  const auto before = descriptors().size();
  std::string out;
  {
    auto meeting = meet(at, d, o);
    if (!meeting) return descriptors().size() == before ? to_string(meeting.error()) : "descriptors are left";
    SocketExchange exchange(meeting->exchange());
    SocketTransport transport(meeting->transport());
    for (std::uint32_t twice = 0; twice < 2; ++twice) {
      const auto text = [&](std::uint32_t r) { return "rank " + std::to_string(r) + std::string(100'000, 'a'); };
      if (!exchange.publish(bytes_of(text(at.rank)), soon())) return "nothing can be published";
      out = "met";
      for (std::uint32_t r = 0; r < at.size; ++r) {
        if (r == at.rank) continue;
        transport.send(r, bytes_of(text(at.rank)));
        const auto got = exchange.receive(r, soon());
        if (!got) return to_string(got.error());
        if (text_of(*got) == text(r)) out += " " + std::to_string(r);
      }
      std::uint32_t came = 0;
      for (const auto end = soon(); (came + 1 < at.size || transport.unsent() != 0) && !end.passed();)
        if (const auto m = transport.receive()) came += text_of(m->bytes) == text(m->from);
        else transport.wait(end);
      if (came + 1 != at.size) return "bytes of the transport are lost";
    }
  }
  return descriptors().size() == before ? out : "descriptors are left";
}

/// One process that meets, and what it says.
class Member {
 public:
  Member(Launched at, std::uint32_t rank, const MeetOptions& o = {}, std::chrono::nanoseconds patience = 60s,
         const char* token = nullptr)
      : process_(std::make_unique<Process>([=](Socket say) mutable {
          at.rank = rank;
          if (token) setenv("SDMA_MEET_TOKEN", token, 1);
          auto text = meets(at, Deadline::in(patience), o);
          text.resize(500);
          for (const char c : text) say.send(c);
          return 0;
        })) {}
  std::string said() {
    std::string out;
    while (const auto c = process_->socket().receive<char>()) out += *c;
    return out.substr(0, out.find('\0'));
  }
  int fd() const { return process_->socket().fd(); }

 private:
  std::unique_ptr<Process> process_;
};

void all_meet(std::uint32_t size, const MeetOptions& o) {
  const auto at = job(size);
  std::vector<Member> members;
  for (std::uint32_t r = size; r-- > 0;) members.emplace_back(at, r, o);  // the last one first
  for (std::uint32_t r = 0; r < size; ++r) {
    std::string others = "met";
    for (std::uint32_t other = 0; other < size; ++other)
      if (other != r) others += " " + std::to_string(other);
    CHECK(members[size - 1 - r].said() == others);
  }
}

/// A connection of the test itself, as soon as there is one.
detail::Descriptor reach(const std::string& place) {
  for (const auto end = soon(); !end.passed(); detail::nap(1ms))
    if (auto s = detail::connect_to(place, end)) return std::move(*s);
  return detail::Descriptor();
}
/// The answers to a hello, until rank 0 refuses or closes: "came 0, refused: ...".
std::string answers(const std::string& place, const detail::Hello& h, std::size_t most = 100) {
  const auto s = reach(place);
  REQUIRE(detail::send_hello(s.get(), h, soon()));
  std::string out;
  for (std::size_t i = 0; i < most; ++i) {
    const auto a = detail::receive_answer(s.get(), soon());
    if (!a) break;
    out += a->kind == Answer::Kind::came ? "came " + a->text + " " : a->text;
  }
  return out;
}

TEST_CASE("processes meet on one host") {
  for (const std::uint32_t size : {2u, 3u, 5u}) all_meet(size, {});
}

TEST_CASE("processes meet over TCP") {
  for (const std::uint32_t size : {2u, 4u}) {
    const Port one, all;
    all_meet(size, {.address = one.at()});
    all_meet(size, {.address = all.at("0.0.0.0"), .token = "secret"});  // not a loopback: listens at all addresses
  }
}

TEST_CASE("the address of the launcher is used where ranks are on several hosts") {
  // Two neighbouring ports, of which torchrun's agent has the first.
  std::unique_ptr<Port> agent, next;
  for (const auto end = soon(); !next || next->number() == 0;) {
    REQUIRE_FALSE(end.passed());
    agent = std::make_unique<Port>();
    next = std::make_unique<Port>(static_cast<std::uint16_t>(agent->number() + 1));
  }
  REQUIRE(listen(agent->fd(), 1) == 0);
  auto at = job(2);
  at.local_size = 1;
  at.address = agent->at();
  at.address_taken = true;
  Member first(at, 0), second(at, 1);
  CHECK(first.said() == "met 1");
  CHECK(second.said() == "met 0");

  at.address_taken = false;
  Member stranger(at, 0);
  CHECK_THAT(stranger.said(), Catch::Contains("it cannot listen at " + agent->at() + ": Address already in use"));
}

TEST_CASE("who does not belong to the job is refused, and the others meet") {
  const auto at = job(3);
  const Port port;
  const MeetOptions o{.address = port.at()};
  Member first(at, 0, o, 60s, "right"), second(at, 1, o, 60s, "right");
  Member wrong(at, 2, o, 60s, "wrong");
  CHECK_THAT(wrong.said(), Catch::Contains("rank 2: error: rank 0 ends the meeting: its token is not that of rank 0"));
  const detail::Hello good{.rank = 2, .size = 3, .place = ":1", .token = "right"};
  auto h = good;
  h.version = "0.2.9";
  CHECK_THAT(answers(port.at(), h), Catch::Contains("rank 2 is sdma 0.2.9, and rank 0 is sdma " + good.version));
  h = good;
  h.protocol = 2;
  h.version = "9.0";
  CHECK_THAT(
      answers(port.at(), h),
      Catch::Contains("it speaks version 2 of the protocol (sdma 9.0), and rank 0 version 1 (sdma " + good.version));
  h = good;
  h.size = 4;
  CHECK_THAT(answers(port.at(), h), Catch::Contains("rank 2 is one of 4 ranks, and rank 0 one of 3"));
  h.rank = 3;
  h.size = 3;
  CHECK_THAT(answers(port.at(), h), Catch::Contains("rank 3 is not below 3, the number of ranks"));
  h.rank = 0;
  CHECK_THAT(answers(port.at(), h), Catch::Contains("rank 0 of 3 is there already"));
  h = good;
  h.socket = 2;
  CHECK_THAT(answers(port.at(), h), Catch::Contains("is there already"));
  Member third(at, 2, o, 60s, "right");
  CHECK(first.said() == "met 1 2");
  CHECK(second.said() == "met 0 2");
  CHECK(third.said() == "met 0 1");
}

TEST_CASE("strangers say nothing, or anything") {
  const auto at = job(3);
  Member first(at, 0);
  const auto place = unix_place(at);
  std::vector<detail::Descriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(reach(place));
  for (const auto& text : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(2000, 'x'), std::string(512, '\0'),
                           std::string("sdma-meet\0x\0", 12) + std::string(500, '\0'),
                           std::string("sdma-meet\0001\0000.3.0\0x\0", 21) + std::string(491, '\0')}) {
    const auto s = reach(place);
    (void)send(s.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  Member second(at, 1), third(at, 2);
  CHECK(first.said() == "met 1 2");
  CHECK(second.said() == "met 0 2");
  CHECK(third.said() == "met 0 1");
}

TEST_CASE("the same rank twice") {
  const auto at = job(3);
  Member first(at, 0), one(at, 1), two(at, 1);
  // Which of the two comes first is open; the other one ends.
  pollfd ended[] = {{one.fd(), POLLIN, 0}, {two.fd(), POLLIN, 0}};
  REQUIRE(poll(ended, 2, 60'000) > 0);
  auto& refused = ended[0].revents != 0 ? one : two;
  auto& there = ended[0].revents != 0 ? two : one;
  CHECK_THAT(refused.said(), Catch::Contains("rank 0 ends the meeting: rank 1 of 3 is there already"));
  Member third(at, 2);
  CHECK(first.said() == "met 1 2");
  CHECK(there.said() == "met 0 2");
  CHECK(third.said() == "met 0 1");
}

TEST_CASE("rank 0 twice") {
  const auto at = job(2);
  Member one(at, 0), two(at, 0);
  pollfd ended[] = {{one.fd(), POLLIN, 0}, {two.fd(), POLLIN, 0}};
  REQUIRE(poll(ended, 2, 60'000) > 0);
  auto& refused = ended[0].revents != 0 ? one : two;
  auto& there = ended[0].revents != 0 ? two : one;
  CHECK_THAT(refused.said(),
             Catch::Contains("rank 0: error: it cannot listen at " + unix_place(at) + ": Address already"));
  Member second(at, 1);
  CHECK(there.said() == "met 1");
  CHECK(second.said() == "met 0");
}

TEST_CASE("at the deadline, each rank names those that have not come") {
  const auto late = [](const std::string& text, const char* ranks) {
    return text.find("error: " + std::string(ranks) + " of 4 have not come in time") != std::string::npos;
  };
  // On a busy machine, a rank may also miss one that has come late: then all get more time.
  for (auto patience = 100ms;; patience *= 2) {
    REQUIRE(patience < 60s);
    const auto at = job(4);
    Member first(at, 0, {}, patience), second(at, 2, {}, patience);
    const auto of_first = first.said(), of_second = second.said();
    CHECK_THAT(of_first + of_second, Catch::Contains("in time"));
    // Rank 0 says it to the others, if its deadline comes first.
    const auto passed_on = of_second.find("rank 0 ends the meeting: rank 0: ranks 1 and 3 of 4 have not come in time");
    if (late(of_first, "ranks 1 and 3") && (late(of_second, "ranks 1 and 3") || passed_on != std::string::npos)) break;
  }
  Member alone(job(2), 1, {}, 50ms);
  CHECK_THAT(alone.said(), Catch::Contains("rank 1: error: rank 0 of 2 is not at @sdma-meet-") &&
                               Catch::Contains("in time: Connection refused"));
}

TEST_CASE("a rank that knows who has come says so at its own deadline") {
  // The test is rank 0, which does not say more.
  const auto at = job(5);
  const auto listener = detail::listen_at(unix_place(at));
  REQUIRE(listener);
  for (auto patience = 100ms;; patience *= 2) {
    REQUIRE(patience < 60s);
    Member third(at, 3, {}, patience);
    std::vector<detail::Descriptor> all;
    while (detail::ready(listener->get(), POLLIN, Deadline::in(2 * patience))) {
      auto& s = all.emplace_back(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
      for (const char* rank : {"3", "1"}) (void)detail::send_answer(s.get(), {Answer::Kind::came, rank}, soon());
      if (all.size() == 2) break;
    }
    const auto said = third.said();
    if (said.find("rank 3: error: ranks 2 and 4 of 5 have not come in time") != std::string::npos) break;
  }
}

TEST_CASE("a rank that comes and ends ends the meeting") {
  const auto at = job(4);
  Member first(at, 0), second(at, 1, {}, 10s);  // it may come when rank 0 has gone
  CHECK(answers(unix_place(at), {.rank = 2, .size = 4, .place = "@1", .token = at.job}, 1).starts_with("came "));
  CHECK_THAT(first.said(), Catch::Contains("rank 2: error: it has ended before all ranks had come"));
  const auto said = second.said();
  const auto heard = said.find("rank 0 ends the meeting: rank 2: it has ended before all ranks had come") != said.npos;
  CHECK((heard || said.find("is not at") != said.npos));
}

TEST_CASE("what rank 0 says must be sdma's") {
  const auto at = job(2);
  const auto listener = detail::listen_at(unix_place(at));
  REQUIRE(listener);
  Member second(at, 1, {}, 300ms);
  std::vector<detail::Descriptor> all;
  while (detail::ready(listener->get(), POLLIN, Deadline::in(1s))) {
    auto& s = all.emplace_back(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    (void)send(s.get(), "HTTP/1.1 400 Bad Request\r\n", 26, MSG_NOSIGNAL);
  }
  CHECK_THAT(second.said(), Catch::Contains("in time: "));
}

TEST_CASE("a user cannot come to the ranks of another one") {
  if (geteuid() != 0) return;
  const auto at = job(2);
  Member first(at, 0);
  const auto place = unix_place(at);
  (void)reach(place);  // rank 0 listens
  CHECK(::test::elsewhere(
      [&] {
        const auto none = detail::connect_to(place, soon());
        if (none || none.error() != "another user's process listens there") return false;
        const detail::Descriptor s(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const detail::AbstractAddress to(place.substr(1));
        if (connect(s.get(), to.get(), to.bytes()) != 0) return false;
        (void)detail::send_hello(s.get(), {.rank = 1, .size = 2, .place = "@1", .token = at.job}, soon());
        const auto answer = detail::receive_answer(s.get(), soon());
        return !answer && answer.error() == detail::NoAnswer::ended;
      },
      true));
  Member second(at, 1);
  CHECK(first.said() == "met 1");
  CHECK(second.said() == "met 0");
}

TEST_CASE("a job without a name is that of the process that has started it") {
  auto at = job(2);
  at.job.clear();
  at.rank_variable = "PMI_RANK=0";
  at.size_variable = "PMI_SIZE=2";
  Member first(at, 0), second(at, 1);
  CHECK(first.said() == "met 1");
  CHECK(second.said() == "met 0");
}

TEST_CASE("a meeting without a place or a token is an error at once") {
  auto at = job(4);
  at.local_size = 2;
  const auto error = [&](const MeetOptions& o) {
    const auto m = meet(at, soon(), o);
    return m ? std::string("met") : to_string(m.error());
  };
  CHECK_THAT(error({}), Catch::Contains("2 of 4 ranks are on this host, and nothing says where rank 0 listens"));
  at.job.clear();
  CHECK_THAT(error({.address = "node0:1"}),
             Catch::Contains("test does not name the job, so any process could come to"));
  for (const auto* place : {"node0", "node0:", "node0:0", "node0:65536", ":29500", "@name", "node0:29500x"})
    CHECK_THAT(error({.address = place}), Catch::Contains("the place '" + std::string(place) + "' is not HOST:PORT"));
  CHECK_THAT(error({.address = "node0:1", .token = std::string(257, 'x')}), Catch::Contains("the token has 257 bytes"));
}

}  // namespace
