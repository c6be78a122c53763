// Kernels that read the wrong page or slot.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kPagedFlashinferBf16TableOfFirst{mutant_of<"paged_flashinfer_bf16", Fault::kTableOfFirst>(
    "paged_flashinfer_bf16_table_of_first",
    "paged_flashinfer_bf16 that reads every page list from where the first begins", "page_slot_map", "sglang #26019")};
const RegisterKernel kPagedVllmBf16LastPageRepeats{mutant_of<"paged_vllm_bf16", Fault::kLastPageRepeats>(
    "paged_vllm_bf16_last_page_repeats",
    "paged_vllm_bf16 that reads the last page of a sequence from the page before it", "page_slot_map")};
const RegisterKernel kPagedSplitBf16TableIgnored{mutant_of<"paged_split_bf16", Fault::kTableIgnored>(
    "paged_split_bf16_table_ignored", "paged_split_bf16 that takes pages in order, whatever the table says",
    "page_slot_map")};
const RegisterKernel kPagedVllmBf16PageCursorOfPair{mutant_of<"paged_vllm_bf16", Fault::kPageCursorOfPair>(
    "paged_vllm_bf16_page_cursor_of_pair",
    "paged_vllm_bf16 that takes values of every second page from the page before it", "page_slot_map",
    "TensorRT-LLM #18244")};
const RegisterKernel kPagedFlashinferBf16ValueSlotOff{mutant_of<"paged_flashinfer_bf16", Fault::kValueSlotOff>(
    "paged_flashinfer_bf16_value_slot_off", "paged_flashinfer_bf16 that takes values from the next slot of the page",
    "page_slot_map")};

}  // namespace
}  // namespace assay
