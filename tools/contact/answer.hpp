// SPDX-License-Identifier: MIT
#pragma once
// The answer of a first contact: an archive to send, a page to read, and what it says about rules and proofs.
//
//   const auto r = read_answer(answer, {});
//   const auto saved = save_answer(answer, *r, "folder");           // folder/contact.tar.gz, folder/contact.html
//   const auto again = load_answer("contact.tar.gz");
//   const auto now = read_answer(*again, {{"relay.sdma", text}});   // puts(now->text.c_str()); return now->code;
//
// The archive has contents.txt, which lists its files, and answer.json; it has no name of a host or a user, and is
// below kMostBytes. The page needs no network.
// Errors: a file cannot be written or read, or is not an answer; an archive would be too large.
#include "contact/steps.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sdma::tool::contact {

inline constexpr std::size_t kMostBytes = 2'000'000;

/// What an answer says: refuted rules first.
struct Reading {
  std::string text{};
  Json json{};  ///< the same for programs: share/schemas/contact.json
  int code{};   ///< refuted if a rule is, or if something does not work; undecided if not everything was tried
};
/// `schedules`: names and texts; those whose proofs change under what was seen are listed; none:
/// the examples and the corrected schedules of the museum. `file`: for errors.
/// Errors: an edited answer may lack what is read.
Result<Reading, Diagnostic> read_answer(const Json& answer,
                                        const std::vector<std::pair<std::string, std::string>>& schedules,
                                        const std::string& file = {});

/// `reading`: of the same answer. The folder exists.
Result<void, Diagnostic> save_answer(const Json& answer, const Reading& reading, const std::string& folder);
Result<Json, Diagnostic> load_answer(const std::string& file);
Diagnostic no_answer(const std::string& file);

/// The page. `reading`: of the same answer.
std::string page_of(const Json& answer, const Reading& reading);

}  // namespace sdma::tool::contact
