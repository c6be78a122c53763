// Attention's parameter table and the layouts of its inputs and outputs, for the op's registration.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

inline constexpr std::array<ParamInfo, 44> kAttentionParams{{
    {"b", "1", "batch size"},
    {"hq", "1", "query heads"},
    {"hkv", "", "key/value heads, divides hq (default hq)"},
    {"sq", "1", "query length (the longest, if ragged)"},
    {"skv", "", "key length (the longest, if ragged; default sq)"},
    {"d", "64", "head dimension of q and k"},
    {"dv", "", "head dimension of v and o (default d)"},
    {"dtype", "bf16", "format of q, k, v: fp32, fp16, bf16, e4m3, e5m2"},
    {"out", "", "format of o (default dtype; bf16 for 8-bit inputs)"},
    {"scale", "", "softmax scale, an fp32 number (default 1/sqrt(d))"},
    {"mask", "none", "none, causal, bool, additive, block, list, causal+bool, ..."},
    {"block", "64,64", "queries,keys per element of a block mask"},
    {"list", "64", "key indices per query of mask=list"},
    {"softcap", "0", "c > 0: logits become c tanh(logit / c), before biases and masks"},
    {"alibi", "none", "slope times: distance -|p-j|, key +j, diagonal +(j-i), last +(j-kv_len+1)"},
    {"slopes", "head", "shape of the ALiBi slopes: head, batch_head"},
    {"sink", "none", "one more logit per head without a value: none, in_lse, out_of_lse"},
    {"segments", "0", "1: a key is admissible only within the query's segment"},
    {"descale", "none", "fp32 factors of q, k, v: none, tensor, head, block"},
    {"scale_block", "128", "tokens per factor of descale=block"},
    {"align", "br", "key position of query i for causal and window: br = i + kv_len - q_len, tl = i"},
    {"window", "-1,-1", "left,right keys around that position; -1 = unlimited"},
    {"window_ends", "inclusive", "inclusive: [p-left, p+right]; left_exclusive: (p-left, p+right]"},
    {"empty", "zero", "o of a row without admissible key: zero, nan, mean"},
    {"empty_lse", "-inf", "LSE of such a row: -inf, inf"},
    {"lse", "e", "none, e (natural), 2 (base two)"},
    {"masked_nonfinite", "propagates", "non-finite K/V of masked keys: ignored, propagates"},
    {"batch", "dense", "dense, packed (cu_seqlens), padded (seqlens)"},
    {"q_lens", "", "query length of each sequence (default all sq)"},
    {"kv_lens", "", "key length of each sequence (default all skv)"},
    {"layout", "bhsd", "memory order of dense and padded tensors: bhsd, bshd, bhds"},
    {"offset", "0", "unused elements in front of q, k, v, o"},
    {"expand", "none", "k, v with stride 0: none, batch, heads"},
    {"v_from", "own", "k: V is the first dv channels of K, no tensor of its own (MLA)"},
    {"prefix", "0", "keys shared by all sequences, counted in skv and kv_lens"},
    {"kv", "contiguous", "contiguous; paged: vllm, vllm_x (block table), nhd, hnd (indptr, indices)"},
    {"page", "16", "slots per page, 1 to 1024"},
    {"page_seed", "0", "physical order of the pages; 0: ascending"},
    {"spare_pages", "0", "unused pages among the used ones"},
    {"table_pad", "zero", "table entries behind the last page: zero, minus_one, huge, shared"},
    {"pad_rows", "0", "unused rows allocated behind each sequence"},
    {"pad_dim", "0", "unused elements behind each head vector"},
    {"rows", "0", "judge only this many rows (0 = all)"},
    {"rows_seed", "0", "which rows, when rows > 0"},
}};

Params canonical_attention(const Params& params);
std::vector<InputSpec> attention_inputs(const Params& params);
std::vector<TensorLayout> attention_outputs(const Params& params);
Format attention_input_format(const Params& params);

/// Coverage cells: mask, option, layout, kv, descale, dtype, residue and length.
std::map<std::string, std::string> attention_cells(const Params& params);

/// Known-wrong outputs, computed by the oracle from a sample of the judged rows, and whether the acceptance sets reject them.
std::vector<KnownWrong> attention_known_wrong(const Problem& problem, const Evaluation& evaluation);

/// Op::planted_faults, planter, plant and fault_site (plant.cc).
std::vector<PlantedFault> attention_planted_faults();
std::unique_ptr<FaultPlanter> attention_planter(const Problem& problem);
PlantedOutputs attention_plant(const Problem& problem, std::size_t fault, double size);
FaultSite attention_fault_site(const Problem& problem, std::size_t fault, std::size_t row);

/// Certified digits of one judged element.
std::string attention_digits(const Problem& problem, std::size_t output, std::int64_t index, int count);

}  // namespace assay
