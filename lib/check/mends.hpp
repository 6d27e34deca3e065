// SPDX-License-Identifier: MIT
#pragma once
// Turns hints into fixes: tries changes of the text, checks the results, and gives a finding the changes that help.
// Internal.
//
//   changes_for(text, finding)       ways to change the text, the likeliest first; none of them is checked
//   mend(text, report, check)        tries them; a finding gets the edits after which it is gone
//
// A change of one finding often leaves others, so the search continues with the first finding that is left, until the
// schedule is proved, or the search has taken kMostChecks checks. Pure text: what a change means, only a check says.
#include "source_lines.hpp"

#include <functional>

namespace sdma { inline namespace v0_3 { namespace check_detail {

/// Ways to change the text that may remove the finding of this report, the likeliest first.
std::vector<SourceLines> changes_for(const SourceLines&, const CheckReport&, const CheckFinding&);

/// Checks a changed text; nullopt if it has errors or is not worth it.
using Recheck = std::function<std::optional<CheckReport>(const std::string& source)>;
void mend(std::string_view source, CheckReport&, const Recheck&);

}}}  // namespace sdma::v0_3::check_detail
