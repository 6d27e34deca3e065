// SPDX-License-Identifier: MIT
#pragma once
// What is asked for, and the first reason why it cannot be done. Internal to the settings.
//
//   Checked c{request};
//   if (s.most < s.least) c.refuse("--maxbytes", "less than --minbytes", "exchange them");
//   if (c.wrong) return *std::move(c.wrong);
//
// One thread. Errors: Diagnostics that name the option, the value, and valid values.
#include "core/nearest.hpp"
#include "core/words.hpp"
#include "request.hpp"
#include "sdma/core/diagnostic.hpp"
#include "settings.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collectives::perf {

inline std::string in_quotes(std::string_view s) { return "'" + std::string(s) + "'"; }

inline std::string hint_of(std::string_view word, std::span<const std::string> known) {
  sdma::Nearest nearest{word};
  std::string list;
  for (const auto& k : known) {
    nearest.offer(k);
    list += (list.empty() ? "" : ", ") + k;
  }
  return (nearest.best().empty() ? "" : "did you mean " + in_quotes(nearest.best()) + "? ") + "choose one of " + list;
}

inline std::vector<std::string> words_of(std::string_view text) {
  const auto all = sdma::detail::between_commas(text);
  return std::vector<std::string>(all.begin(), all.end());
}

struct Checked {
  const Request& asked;
  std::uint32_t launched = 1;  ///< processes that a launcher has started
  std::optional<sdma::Diagnostic> wrong{};

  void refuse(std::string where, std::string message, std::string hint) {
    if (!wrong) wrong = {.where = std::move(where), .message = std::move(message), .hint = std::move(hint)};
  }
  std::optional<sdma::NodeSizes> simulated_nodes{};  ///< of the machine to simulate, if it has several
  bool one_node() const noexcept { return !asked.ranks_per_node && !simulated_nodes; }
};

/// The nodes of the machine that --device=simulate names, if it has several; a machine that cannot be read is refused
/// where it is opened.
std::optional<sdma::NodeSizes> nodes_to_simulate(const Request&);

// Parts of `settings_of`, in the order of their calls.
void read_habits(Checked&, Settings&);  ///< of nccl-tests, which scripts give; after sizes and GPUs
void read_nodes(
    Checked&,
    Settings&);  ///< --ranks-per-node, or a machine of several nodes; after processes, GPUs, collective and root
void read_axes(Checked&, Settings&);  ///< --sweep; after all others

}  // namespace collectives::perf
