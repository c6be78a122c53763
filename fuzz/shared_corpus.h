// The corpus folder that engines share: torn files out of it, and the merge that keeps it small.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace assay {

/// Removes files that a kill or a full disk cut short: those that libFuzzer named by a SHA-1 that their content has
/// not. `others`: engines may be writing; a file counts as torn only if it still is a second later. Returns how many.
std::int64_t remove_torn(const std::filesystem::path& corpus, bool others);

/// Number of files.
std::int64_t corpus_size(const std::filesystem::path& corpus);

/// Makes the corpus a smallest set with the same features. `merge(out)` fills the empty folder `out` with the chosen
/// inputs of the corpus, and returns whether it came to its end. Chosen files are put into the corpus before others
/// leave, and only files that were there at the beginning leave: the corpus is whole at every moment, whoever is killed
/// or goes on writing. `work`: a folder for `out`. Returns whether anything was merged.
bool merge_corpus(const std::filesystem::path& corpus, const std::filesystem::path& work,
                  const std::function<bool(const std::filesystem::path& out)>& merge);

}  // namespace assay
