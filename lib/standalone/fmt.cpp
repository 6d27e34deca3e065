// SPDX-License-Identifier: MIT
// What the headers of fmt 9 declare and do not define. Debian has the definitions in a shared library only.
#include <fmt/format-inl.h>

#include <locale>

namespace dragonbox = fmt::detail::dragonbox;

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template char fmt::detail::decimal_point_impl(fmt::detail::locale_ref);
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl(fmt::detail::locale_ref);
template std::locale fmt::detail::locale_ref::get<std::locale>() const;
