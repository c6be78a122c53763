// What the suites edge and adversarial combine for merges of partial states.
#include "fuzz/pairwise.h"

namespace assay {
namespace {

const Levels kShapes{"parts=1 rows=3",  "parts=2 rows=1",  "parts=2 rows=5",   "parts=3 rows=4",   "parts=4 rows=7",
                     "parts=5 rows=2",  "parts=7 rows=3",  "parts=8 rows=16",  "parts=9 rows=2",   "parts=16 rows=5",
                     "parts=31 rows=2", "parts=64 rows=3", "parts=128 rows=2", "parts=300 rows=1", "parts=2 rows=130"};
const Levels kDims{"dv=64", "dv=1", "dv=3", "dv=8", "dv=17", "dv=40", "dv=128"};
const Levels kFormats{"dtype=bf16",          "dtype=fp16",          "dtype=fp32",
                      "dtype=bf16 out=fp32", "dtype=fp32 out=bf16", "dtype=fp16 out=fp32"};
const Levels kBases{"", "base=2"};
const Levels kLse{"", "", "lse=no"};
const Levels kEmpty{"", "empty=nan", "empty_lse=inf", "empty=nan empty_lse=inf"};
const Levels kNonfinite{"", "masked_nonfinite=ignored"};
const Levels kMemory{"", "layout=rows", "pad=5", "layout=rows pad=3"};
const Levels kPoisons{"", "poison=inf", "poison=max", "poison=tag", "poison=zero"};

const Levels kEdgeRecipes{
    "o_parts=normal@{s} lse_parts=normal@{s}",
    "o_parts=tags lse_parts=constant(1)",
    "o_parts=ones lse_parts=normal(3)@{s}",
    "o_parts=small_integers(4)@{s} lse_parts=small_integers(2)@{s}",
    "o_parts=normal@{s} lse_parts=part_holes(2)@{s}",
    "empty_part=either o_parts=normal@{s} lse_parts=part_holes(2,1)@{s}",
    "o_parts=one_hot@{s} lse_parts=part_levels(-1)@{s}",
};

const Levels kAdversarialRecipes{
    "o_parts=normal@{s} lse_parts=normal@{s}",
    "o_parts=normal@{s} lse_parts=normal(8)@{s}",
    "o_parts=normal@{s} lse_parts=normal(1,1000)@{s}",
    "o_parts=normal@{s} lse_parts=normal(1,-50000)@{s}",
    "o_parts=normal@{s} lse_parts=constant(2)",
    "o_parts=normal(1,2)@{s} lse_parts=part_near_ties@{s}",
    "o_parts=cancelling_pairs@{s} lse_parts=normal(0.1)@{s}",
    "o_parts=cancelling_pairs(100)@{s} lse_parts=normal(0.01,3)@{s}",
    "o_parts=normal@{s} lse_parts=part_levels(1)@{s}",
    "o_parts=normal@{s} lse_parts=part_levels(-1,0.5)@{s}",
    "o_parts=same_sign@{s} lse_parts=part_levels(0.1,1)@{s}",
    "o_parts=normal@{s} lse_parts=part_levels(50)@{s}",
    "o_parts=normal@{s} lse_parts=part_levels(-200)@{s}",
    "o_parts=normal@{s} lse_parts=part_holes(2)@{s}",
    "o_parts=normal@{s} lse_parts=part_holes(3)@{s}",
    "o_parts=hole_values(3,2)@{s} lse_parts=part_holes(3)@{s}",
    "o_parts=hole_values(3,3)@{s} lse_parts=part_holes(3)@{s}",
    "o_parts=hole_values(2,1)@{s} lse_parts=part_holes(2,-1,5)@{s}",
    "empty_part=either o_parts=hole_values(5,0)@{s} lse_parts=part_holes(5,1)@{s}",
    "empty_part=either o_parts=hole_values(2,2)@{s} lse_parts=part_holes(2,1)@{s}",
    "empty_part=either o_parts=normal@{s} lse_parts=part_holes(4)@{s}",
    "o_parts=normal@{s} lse_parts=part_holes(64,1)@{s}",
    "o_parts=subnormal@{s} lse_parts=normal@{s}",
    "o_parts=mixed_exponents@{s} lse_parts=mixed_exponents@{s}",
    "o_parts=outlier_channel(50)@{s} lse_parts=normal@{s}",
    "o_parts=massive(400)@{s} lse_parts=normal@{s}",
    "o_parts=normal@{s} lse_parts=uniform(-20,20)@{s}",
    "o_parts=normal@{s} lse_parts=range_exponents(20,40)@{s}",
};

}  // namespace

Plan merge_plan(std::string_view suite) {
  const bool edge = suite == "edge";
  return {"merge",
          {edge ? kEdgeRecipes : kAdversarialRecipes, kShapes, kDims, kFormats, kBases, kLse, kEmpty, kNonfinite,
           kMemory, kPoisons},
          edge ? std::size_t{120} : std::size_t{220},
          edge ? std::uint64_t{31} : std::uint64_t{32}};
}

}  // namespace assay
