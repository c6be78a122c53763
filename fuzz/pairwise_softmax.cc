// What the suites edge and adversarial combine for softmax.
#include "fuzz/pairwise.h"

namespace assay {
namespace {

const Levels kMasks{"",
                    "mask=bool mask.data=keep(0.75)@{s}",
                    "mask=bool mask.data=empty_rows(3)",
                    "mask=bool mask.data=block(1,16,0.5)@{s}",
                    "mask=additive mask.data=bias(1)@{s}",
                    "mask=additive mask.data=neg_inf(0.25)@{s}",
                    "mask=additive mask.data=neg_inf_rows(2)",
                    "mask=additive mask.data=finite_min(0.25)@{s}"};
const Levels kShapes{"rows=2 n=1",    "rows=3 n=2",    "rows=2 n=7",   "rows=4 n=15",  "rows=2 n=16",  "rows=3 n=17",
                     "rows=5 n=33",   "rows=2 n=63",   "rows=3 n=64",  "rows=2 n=65",  "rows=2 n=100", "rows=4 n=127",
                     "rows=2 n=128",  "rows=3 n=129",  "rows=2 n=255", "rows=2 n=257", "rows=2 n=511", "rows=2 n=1024",
                     "rows=2 n=1025", "rows=2 n=1087", "rows=2 n=2048"};
const Levels kFormats{"dtype=bf16",          "dtype=fp16",          "dtype=fp32",
                      "dtype=bf16 out=fp32", "dtype=fp16 out=fp32", "dtype=fp32 out=bf16"};
const Levels kSteps{"", "steps=64", "steps=16", "steps=5", "steps=100", "steps=4096"};
const Levels kScales{"", "", "scale=0.125", "scale=-1", "scale=1.5", "scale=0.0001", "scale=0"};
const Levels kLse{"", "lse=e", "lse=2"};
const Levels kEmpty{"", "empty=nan", "empty=mean", "empty_lse=inf"};
const Levels kMemory{"", "pad=3", "offset=5", "pad=1 offset=2"};
const Levels kPoisons{"", "poison=inf", "poison=max", "poison=tag", "poison=zero"};

const Levels kEdgeRecipes{"x=normal@{s}",    "x=small_integers(3)@{s}", "x=uniform(-3,3)@{s}", "x=tags",
                          "x=constant(0.5)", "x=score_ladder(-3,3)",    "x=score_peak(5)@{s}"};

const Levels kAdversarialRecipes{
    "x=normal@{s}",
    "x=normal(4)@{s}",
    "x=normal(30)@{s}",
    "x=normal(1,1000)@{s}",
    "x=normal(1,-50000)@{s}",
    "x=uniform(-20,0)@{s}",
    "x=constant(0.5)",
    "x=score_near_ties@{s}",
    "x=score_near_ties(100,0.3)@{s}",
    "x=score_rising(4,64)@{s}",
    "x=score_rising(1,16)@{s}",
    "x=score_rising(-4,64)@{s}",
    "x=score_rising(0.5,32,100)@{s}",
    "x=score_rising(30,16)@{s}",
    "x=score_ladder",
    "x=score_ladder(-3,8,-1)",
    "x=score_peak(20)@{s}",
    "x=score_peak(-30)@{s}",
    "x=score_peak(100,5)@{s}",
    "x=subnormal@{s}",
    "x=subnormal(0.5)@{s}",
    "x=mixed_exponents@{s}",
    "x=same_sign(3)@{s}",
    "x=same_sign(-3)@{s}",
    "x=neg_inf(0.25)@{s}",
    "x=neg_inf(0.9)@{s}",
    "x=neg_inf_rows(2)",
    "x=tags",
    "x=range_exponents@{s}",
    "x=range_exponents(60,90)@{s}",
};

}  // namespace

Plan softmax_plan(std::string_view suite) {
  const bool edge = suite == "edge";
  return {"softmax",
          {edge ? kEdgeRecipes : kAdversarialRecipes, kMasks, kShapes, kFormats, kSteps, kScales, kLse, kEmpty, kMemory,
           kPoisons},
          edge ? std::size_t{120} : std::size_t{240},
          edge ? std::uint64_t{21} : std::uint64_t{22}};
}

}  // namespace assay
