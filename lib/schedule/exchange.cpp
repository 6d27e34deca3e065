// SPDX-License-Identifier: MIT
#include "sdma/schedule/exchange.hpp"

#include "sdma/core/file.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace sdma { inline namespace v0_3 {
namespace {

Diagnostic no_handles(std::uint32_t rank, std::string why) {
  return {.where = fmt::format("rank {}", rank),
          .message = "its handles have not come: " + std::move(why),
          .hint = "start all ranks with the same schedule and the same number of ranks, and see what that one reports"};
}

}  // namespace

Exchange::~Exchange() = default;

Result<void, Diagnostic> FolderExchange::publish(std::span<const std::byte> mine, Deadline) {
  return save_file(path(rank_), std::string_view(reinterpret_cast<const char*>(mine.data()), mine.size()));
}

Result<std::vector<std::byte>, Diagnostic> FolderExchange::receive(std::uint32_t rank, Deadline d) {
  // The file appears whole, or not at all.
  for (Backoff backoff; access(path(rank).c_str(), F_OK) != 0;)
    if (!backoff.step(d)) return no_handles(rank, path(rank) + " does not appear in time");
  const auto text = read_file(path(rank));
  if (!text) return text.error();
  const auto* const at = reinterpret_cast<const std::byte*>(text->data());
  return std::vector<std::byte>(at, at + text->size());
}

Result<void, Diagnostic> SocketExchange::publish(std::span<const std::byte> mine, Deadline) {
  for (std::uint32_t r = 0; r < came_.size(); ++r) {
    if (!came_[r].empty()) came_[r].pop_front();  // of the last time
    if (sockets_.connects(r)) sockets_.send(r, {mine.begin(), mine.end()});
  }
  return {};
}

/// Sends and receives at once, because each rank's socket holds less than the handles of a large schedule.
Result<std::vector<std::byte>, Diagnostic> SocketExchange::receive(std::uint32_t rank, Deadline d) {
  for (auto& from = came_[rank];;) {
    while (auto m = sockets_.receive()) came_[m->from].push_back(std::move(m->bytes));
    if (!from.empty() && sockets_.unsent() == 0) return from.front();
    if (from.empty() && sockets_.ended(rank)) return no_handles(rank, "it has ended");
    if (d.passed()) return no_handles(rank, "the time is over");
    sockets_.wait(d);
  }
}

}}  // namespace sdma::v0_3
