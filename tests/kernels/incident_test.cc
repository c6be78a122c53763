// Xid lines of a kernel log: the last of this process, and nobody else's.
#include "kernels/incident.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr const char* kLog =
    "6,913,4418,-;usb 1-1: new device\n"
    "3,914,4419,-;NVRM: Xid (PCI:0000:06:00): 31, pid=42, name=assay, Ch 00000008, MMU Fault: FAULT_PDE "
    "ACCESS_TYPE_VIRT_WRITE\n"
    "3,915,4420,-;NVRM: Xid (PCI:0000:06:00): 13, pid=421, name=other, Graphics Exception\n"
    "3,916,4421,-;NVRM: Xid (PCI:0000:06:00): 43, pid=42, name=assay, Ch 00000008\n"
    " SUBSYSTEM=pci\n"
    "3,917,4422,-;NVRM: Xid (PCI:0000:06:00): 79";

TEST(Incident, TheLastXidOfTheProcessIsNamed) {
  EXPECT_EQ(last_xid(kLog, 42), "Xid 43: pid=42, name=assay, Ch 00000008");
  EXPECT_EQ(last_xid(kLog, 421), "Xid 13: pid=421, name=other, Graphics Exception");
}

TEST(Incident, OfNobodyElseIsNone) {
  EXPECT_EQ(last_xid(kLog, 4), "");
  EXPECT_EQ(last_xid("", 42), "");
  EXPECT_EQ(last_xid("NVRM: Xid (", 42), "");
}

}  // namespace
}  // namespace assay
