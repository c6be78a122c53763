// FindingStore: findings on disk, one folder per kernel and signature, for several processes at once.
//
//   DIR/<kernel>--<signature slug>/smallest.case   the smallest case of the signature seen so far, one line
//                                  worst.case      the case with the largest error in units of its bound
//                                  repro.txt       the commands that give both again
//                                  finding.json    {version, kernel, signature, count, first, last, seen_as,
//                                                  environment, smallest, worst: {case, repro, used, record}}
//   DIR/.lock
//
// finding.json is the truth; the other three are views of it that are made again if they are missing or differ. Every
// change is made under the lock, beside its place, synced and renamed: a process that dies at any point leaves an older
// or a newer state, and names that begin with kUnfinished, which the next process to open the store removes.
//
// Two findings count as one cause if their signatures agree once each is as small as it gets. `shrink` makes a case
// smaller; it is asked when a signature is new to the kernel, and again when its count reaches 4, 8, 16, ...: so a
// second cause behind the same signature is seen too, at a cost of a few runs. What a signature shrank to is remembered
// as seen_as.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/signature.h"

namespace assay {

enum class Stored : std::uint8_t { kNew, kSmaller, kWorse, kKnown };
std::string_view stored_name(Stored stored);  ///< "new", "smaller", "worse", "known"

/// One entry, as its folder says.
struct StoredFinding {
  std::string folder;  ///< its name inside the store
  std::string kernel;
  Signature signature;
  std::int64_t count = 0;
  std::vector<std::string> seen_as;  ///< slugs of signatures that shrank to this one, this one among them
  std::string smallest_line, worst_line;
  double worst_used = 0;  ///< ElementReport::used of the worst case; 0 where nothing was measured
};

class FindingStore {
 public:
  /// A record of a case no larger than the given failure's, with the same cause; e.g. fuzz/minimize.h.
  using Shrink = std::function<Record(const Record&)>;

  /// Makes the folder if it is missing and removes what killed processes left. Throws EnvironmentError naming the file.
  explicit FindingStore(std::string dir);
  ~FindingStore();  ///< flushes; what cannot be written then is lost
  FindingStore(const FindingStore&) = delete;
  FindingStore& operator=(const FindingStore&) = delete;

  struct Added {
    Stored stored = Stored::kKnown;
    std::string folder;
  };
  /// Takes in a failure (is_failure) of record.kernel on record.case_line, with record.repro if `assay repro` is not
  /// what repeats it. What is new or smaller is on disk afterwards; counts and worse cases follow with the next call a
  /// second later, with `flush` or at the end. Throws EnvironmentError where the disk is full; what is on disk is then
  /// as it was before.
  Added add(const Record& record, const Shrink& shrink = {});

  /// Writes counts and worse cases that are not on disk yet.
  void flush();

  /// Every entry on disk, by folder name, other processes' too. Throws InputError for a finding.json that is none.
  std::vector<StoredFinding> findings() const;

 private:
  /// What this process knows of one kernel and signature, as it was before shrinking.
  struct Seen {
    std::string folder;
    std::int64_t count = 0;      ///< in this process
    std::int64_t unwritten = 0;  ///< of them not on disk
    double worst_used = 0;
    bool own = false;             ///< it is the entry's signature: a smaller case may take the place of the smallest
    std::int64_t elements = 0;    ///< of the smallest case
    std::optional<Record> worse;  ///< not on disk yet
  };
  Seen* known(const std::string& kernel, const std::string& slug);
  Added enter(const Record& smallest, const Record& raw, const std::string& seen_as);
  std::string path(const std::string& folder, const char* file) const;

  std::string dir_;
  std::map<std::string, Seen> seen_;  ///< by "<kernel> <slug>"
  std::string environment_;           ///< JSON text
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace assay
