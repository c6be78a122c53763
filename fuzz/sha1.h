// SHA-1, because libFuzzer names its files by it: a file whose content has another sum is torn.
#pragma once

#include <string>
#include <string_view>

namespace assay {

/// 40 lower-case hexadecimal digits (FIPS 180-4, section 6.1).
std::string sha1(std::string_view bytes);

}  // namespace assay
