// The mutant program: a worker whose kernels include the planted faults of the catalogue. Never part of a campaign.
#include <cstdio>
#include <string_view>

#include "kernels/worker.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "worker") return assay::serve_worker(0, 1);
  std::fputs("usage: assay_mutants worker\nserves mutant kernels to assay on standard input and output\n", stderr);
  return 2;
}
