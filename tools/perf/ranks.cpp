// SPDX-License-Identifier: MIT
#include "ranks.hpp"

#include "sdma/core/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr int kFailedCode = 1;
/// The first byte of what a rank publishes.
enum class Tag : std::uint8_t { bytes, failed };

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* const at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Texts, each with a zero at its end.
std::string joined(std::initializer_list<std::string_view> all) {
  std::string out;
  for (const auto one : all) (out += one) += '\0';
  return out;
}
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size(); at += all.back().size() + 1) all.emplace_back(text.c_str() + at);
  return all;
}

}  // namespace

Result<void, Diagnostic> Ranks::publish(std::span<const std::byte> mine, Deadline d) {
  drain();
  if (failure_) return chosen();
  std::vector<std::byte> message{std::byte{static_cast<std::uint8_t>(Tag::bytes)}};
  message.insert(message.end(), mine.begin(), mine.end());
  auto given = between_.publish(message, d);
  exchanging_ = given.has_value();
  if (!given) failure_ = {rank_, kFailedCode, 0, given.error()};
  return given;
}

Result<std::vector<std::byte>, Diagnostic> Ranks::receive(std::uint32_t rank, Deadline d) {
  take(rank, d);
  if (!failure_) return *got_[rank];
  drain();
  return chosen();
}

/// Receives what is left of this exchange: so that the next begins with its own bytes, and all choose among the same
/// errors.
void Ranks::drain() {
  if (!exchanging_) return;
  const auto d = Deadline::in(patience_);
  for (std::uint32_t r = 0; r < count_; ++r)
    if (r != rank_) take(r, d);
  exchanging_ = false;
  for (auto& one : got_) one.reset();
}

void Ranks::take(std::uint32_t rank, Deadline d) {
  if (got_[rank]) return;
  auto& to = got_[rank].emplace();
  const auto bytes = between_.receive(rank, d);
  std::optional<Failure> f;
  if (!bytes) {
    f = {rank, kFailedCode, 0, bytes.error()};
  } else if (bytes->empty() || bytes->front() == std::byte{static_cast<std::uint8_t>(Tag::bytes)}) {
    if (!bytes->empty()) to.assign(bytes->begin() + 1, bytes->end());
  } else if (const auto parts = parts_of(text_of(std::span(*bytes).subspan(1))); parts.size() == 6) {
    f = {rank, std::stoi(parts[0]), std::stoi(parts[1]), {}};
    f->what = {.where = parts[2], .message = parts[3], .hint = parts[4], .excerpt = parts[5]};
  }
  if (f && (!failure_ || std::pair(f->order, f->rank) < std::pair(failure_->order, failure_->rank))) failure_ = f;
}

Diagnostic Ranks::chosen() const {
  auto d = failure_->what;
  const auto name = fmt::format("rank {}", failure_->rank);
  if (failure_->rank != 0 && !d.where.starts_with(name)) d.where = name + (d.where.empty() ? "" : ": " + d.where);
  return d;
}

Result<std::vector<std::string>, Diagnostic> Ranks::all(const std::string& mine) {
  const auto d = Deadline::in(patience_);
  if (auto r = publish(bytes_of(mine), d); !r) return std::move(r.error());
  std::vector<std::string> out;
  for (std::uint32_t r = 0; r < count_; ++r) {
    if (r == rank_) {
      out.push_back(mine);
      continue;
    }
    const auto bytes = receive(r, d);
    if (!bytes) return bytes.error();
    out.push_back(text_of(*bytes));
  }
  return out;
}

Result<std::chrono::steady_clock::time_point, Diagnostic> Ranks::meet() {
  const auto now = std::chrono::steady_clock::now();
  const auto texts = all(text_of(std::as_bytes(std::span(&now, 1))));
  if (!texts) return texts.error();
  auto last = now;
  for (const auto& text : *texts)
    if (auto there = now; text.size() == sizeof there) {
      std::memcpy(&there, text.data(), sizeof there);
      last = std::max(last, there);
    }
  return last;
}

Result<std::vector<double>, Diagnostic> Ranks::slowest(const std::vector<Span>& mine) {
  const auto texts = all(text_of(std::as_bytes(std::span(mine))));
  if (!texts) return texts.error();
  auto whole = mine;
  for (const auto& text : *texts)
    for (std::size_t i = 0; i < mine.size() && (i + 1) * sizeof(Span) <= text.size(); ++i) {
      Span s;
      std::memcpy(&s, text.data() + i * sizeof s, sizeof s);
      whole[i] = {std::min(whole[i].begin, s.begin), std::max(whole[i].end, s.end)};
    }
  std::vector<double> us;
  for (const auto& s : whole) us.push_back(std::chrono::duration<double, std::micro>(s.end - s.begin).count());
  return us;
}

Result<void, Diagnostic> Ranks::add(Check& check) {
  const auto texts = all(joined({std::to_string(check.wrong), check.first}));
  if (!texts) return texts.error();
  check = {};
  for (const auto& text : *texts) {
    const auto parts = parts_of(text);
    check.wrong += std::stoull(parts[0]);
    if (check.first.empty()) check.first = parts[1];
  }
  return {};
}

Result<void, Diagnostic> Ranks::agree(Settings& s, const std::string& command) {
  std::string variants, gpus;
  for (const auto& w : s.ways) variants += (variants.empty() ? "" : ",") + name(w);
  const auto each = s.options.gpus / count_;
  for (std::uint32_t g = 0; g < each; ++g)
    gpus += fmt::format("{} ", s.gpus.empty() ? rank_ * each + g : s.gpus[g].value);
  constexpr std::string_view kFields[] = {"version", "sizes in bytes", "variants", "command"};
  const auto texts = all(joined({version().string, fmt::format("{} to {}", s.least, s.most), variants, command, gpus,
                                 s.gpus.empty() ? "" : "named"}));
  if (!texts) return texts.error();
  const auto first = parts_of(texts->front());
  std::vector<GpuId> named;
  bool any = false;
  for (std::uint32_t r = 0; r < count_; ++r) {
    const auto parts = parts_of((*texts)[r]);
    for (std::size_t i = 0; i < std::size(kFields); ++i)
      if (parts[i] != first[i])
        return Diagnostic{.where = fmt::format("rank {}", r),
                          .message = fmt::format("the {} {} '{}', and rank 0 has '{}'", kFields[i],
                                                 kFields[i].ends_with('s') ? "are" : "is", parts[i], first[i]),
                          .hint = "start all ranks with one program and the same options; only --gpus may differ"};
    any = any || !parts[5].empty();
    for (auto rest = std::string_view(parts[4]); !rest.empty(); rest.remove_prefix(rest.find(' ') + 1)) {
      const GpuId g{static_cast<std::uint32_t>(std::stoul(std::string(rest)))};
      const auto node = s.ranks_per_node.first(s.ranks_per_node.of(r)) * each;
      if (const auto at = std::find(named.begin() + node, named.end(), g); at != named.end())
        return Diagnostic{.where = fmt::format("rank {}", r),
                          .message = fmt::format("it has GPU {}, as rank {} does", g.value,
                                                 static_cast<std::uint32_t>(at - named.begin()) / each),
                          .hint = "--gpus names the GPUs of one rank: give each its own, or use -g"};
      named.push_back(g);
    }
  }
  if (any) s.gpus = std::move(named);
  return {};
}

Ranks::End Ranks::end(int code, std::optional<Diagnostic> error) {
  drain();
  if (!failure_ && error) {
    const int order = error->message.starts_with("rank ") ? 1 : 0;
    std::string message(1, static_cast<char>(Tag::failed));
    message += joined(
        {std::to_string(code), std::to_string(order), error->where, error->message, error->hint, error->excerpt});
    failure_ = {rank_, code, order, *std::move(error)};
    exchanging_ = between_.publish(bytes_of(message), Deadline::in(patience_)).has_value();
    drain();
  } else if (!failure_) {
    (void)all("");  // rank 0 may fail to write its files
  }
  if (!failure_) return {code};
  return {failure_->code, chosen()};
}

BindOptions bind_options(const Settings& s) {
  BindOptions o{.gpus = s.gpus};
  if (s.ranks) o.rank = s.ranks->rank(), o.ranks = s.ranks->count(), o.exchange = s.ranks;
  o.ranks_per_node = s.ranks_per_node;
  o.transport = s.transport;
  return o;
}

}  // namespace collectives::perf
