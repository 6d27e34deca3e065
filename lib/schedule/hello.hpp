// SPDX-License-Identifier: MIT
#pragma once
// What ranks say to each other while they meet (sdma/schedule/meet.hpp): the bytes. Internal.
//
//   send_hello(socket, {.rank = 1, .size = 3, .place = "@0001f", .token = token}, d);   // who connects says who it is
//   auto answer = receive_answer(socket, d);                                            // of rank 0
//
// A hello has kHelloBytes in every version of the protocol, of which the first fields remain: its name, the protocol's
// number, and sdma's version. Its fields are texts, each with a zero at its end, and zeros follow. An answer is its
// kind, the length of its text, and the text. A rank takes no byte after either: those are of the
// Exchange. Any thread. Nothing waits beyond the deadline, and nothing raises SIGPIPE.
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/version.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::size_t kHelloBytes = 512;
/// Longer tokens do not fit beside the other fields.
inline constexpr std::size_t kLongestToken = 256;

struct Hello {
  std::uint32_t protocol = 1;
  std::string version{sdma::version().string};
  std::uint32_t rank{}, size{};
  std::uint32_t socket{};  ///< 0: for the Exchange, 1: for the Transport
  std::string place{};     ///< where it listens
  std::string token{};
};
std::string bytes_of(const Hello&);
/// Nothing: not a hello, or of another protocol with fields of its own, which `protocol` and `version` name.
std::optional<Hello> hello_from(std::string_view bytes);

struct Answer {
  enum class Kind : char {
    came = 'c',     ///< a rank, as a number: to it, and to those that are there
    places = 'p',   ///< where each rank listens, one per line
    refused = 'r',  ///< why, and in a second line what to do
  };
  Kind kind{};
  std::string text{};
};
/// Why no answer came.
enum class NoAnswer : std::uint8_t { ended, late, other_words };

/// False: the other end has closed, or the deadline has passed.
bool send_hello(int socket, const Hello&, Deadline);
bool send_answer(int socket, const Answer&, Deadline);
Result<Answer, NoAnswer> receive_answer(int socket, Deadline);

}}}  // namespace sdma::v0_3::detail
