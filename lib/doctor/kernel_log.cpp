// SPDX-License-Identifier: MIT
#include "sdma/doctor/kernel_log.hpp"

#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::inline v0::doctor {
namespace {

constexpr std::string_view kDriver = "amdgpu ",
                           kFault = " page fault (src_id:", kAddress = "in page starting at address ",
                           kOldAddress = "at address ", kPid = " pid ", kClient = "Faulty UTCL2 client ID: ";

/// What follows `key` in a line; nothing if the key is not in it.
std::optional<std::string_view> after(std::string_view line, std::string_view key) noexcept {
  const auto at = line.find(key);
  return at == line.npos ? std::nullopt : std::optional(line.substr(at + key.size()));
}

std::string_view first_word(std::string_view text) noexcept { return text.substr(0, text.find_first_of(" \t,);")); }

/// "[  812.400123] ..." of dmesg, or "3,1234,812400123,-;..." of /dev/kmsg.
std::optional<double> time_of(std::string_view before) {
  const auto decimal = [](std::string_view text) { return bare_number<std::uint64_t>(text, 10); };
  if (const auto open = before.find('['); open != before.npos) {
    auto text = before.substr(open + 1, before.find(']', open) - open - 1);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto dot = std::min(text.find('.'), text.size());
    const auto digits = text.substr(std::min(dot + 1, text.size()));
    const auto seconds = decimal(text.substr(0, dot)), fraction = decimal(digits);
    if (!seconds || !fraction) return std::nullopt;
    double part = static_cast<double>(*fraction);
    for (std::size_t i = 0; i < digits.size(); ++i) part /= 10;
    return static_cast<double>(*seconds) + part;
  }
  const auto first = before.find(','), second = before.find(',', first + 1), third = before.find(',', second + 1);
  if (first == before.npos || second == before.npos || third == before.npos) return std::nullopt;
  const auto us = decimal(before.substr(second + 1, third - second - 1));
  return us ? std::optional(static_cast<double>(*us) / 1e6) : std::nullopt;
}

/// "NAME pid 4711 thread ...": names may have spaces.
void read_process(std::string_view text, LoggedFault& f) {
  const auto pid = text.find(kPid);
  const auto n = bare_number<std::uint32_t>(
      first_word(text.substr(std::min(pid == text.npos ? pid : pid + kPid.size(), text.size()))), 10);
  if (pid == text.npos || !n) return;
  f.process = *n;
  f.program = text.substr(0, pid);
}

void read_address(std::string_view text, LoggedFault& f) {
  if (const auto va = bare_hex<std::uint64_t>(first_word(text).substr(text.starts_with("0x") ? 2 : 0)))
    f.page = GpuVa{*va};
}

/// What is not in the members of a PageFault.
std::string rest_of(const LoggedFault& f) {
  std::string text;
  if (!f.client.empty()) text = "unit " + f.client;
  if (f.seconds) text += fmt::format("{}{:.3f} s after the start of the machine", text.empty() ? "" : ", ", *f.seconds);
  return text;
}

}  // namespace

std::vector<LoggedFault> page_faults(std::string_view text) {
  std::vector<LoggedFault> all;
  const auto open_fault = [&](std::string_view device) -> LoggedFault* {
    const auto last = std::find_if(all.rbegin(), all.rend(), [&](auto& f) { return f.device == device; });
    return last == all.rend() ? nullptr : &*last;
  };
  while (!text.empty()) {
    const auto line = take_line(text);
    const auto driver = line.find(kDriver);
    if (driver == line.npos) continue;
    const auto said = line.substr(driver + kDriver.size());
    const auto device = said.substr(0, said.find(": "));
    if (const auto rest = after(said, kFault)) {
      all.push_back({.seconds = time_of(line.substr(0, driver)), .device = std::string(device)});
      if (const auto process = after(*rest, "for process ")) read_process(*process, all.back());
      continue;
    }
    auto* f = open_fault(device);
    if (!f) continue;
    if (const auto process = after(said, "Process "); process && f->process == 0) read_process(*process, *f);
    if (const auto client = after(said, kClient); client && f->client.empty()) f->client = first_word(*client);
    if (f->page) continue;
    if (const auto address = after(said, kAddress)) read_address(*address, *f);
    else if (const auto old = after(said, kOldAddress)) read_address(*old, *f);
  }
  return all;
}

PageFault to_page_fault(const LoggedFault& f, std::string_view from) {
  return {.page = f.page.value_or(GpuVa{}), .gpu = {}, .device = f.device, .by = rest_of(f), .from = std::string(from)};
}

Result<void, Diagnostic> add_kernel_log(Snapshot& s, std::string_view text, std::string_view name,
                                        std::optional<std::uint32_t> process) {
  auto all = page_faults(text);
  std::erase_if(all, [&](const LoggedFault& f) { return !f.page || (process && f.process != *process); });
  for (const auto& f : all)
    if (f.process != all.front().process)
      return Diagnostic{
          .where = std::string(name),
          .message = fmt::format("has page faults of several processes: {} and {}", all.front().process, f.process),
          .hint = "keep the lines of the process that hangs"};
  for (const auto& f : all) s.page_faults.push_back(to_page_fault(f, name));
  return {};
}

}  // namespace sdma::inline v0::doctor
