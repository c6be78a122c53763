// What the machine itself recorded when a device failed: Xid lines of the kernel log, ECC counters.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace assay {

/// "; Xid 31: <the driver's words>" and "; <n> uncorrected ECC errors", each where it can be read and is there; else
/// "".
std::string incident_notes(pid_t process);

/// The last Xid event in kernel log text that names the process, as "Xid 31: <words>"; empty if there is none.
std::string last_xid(std::string_view log, pid_t process);

}  // namespace assay
