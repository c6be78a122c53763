// Eigen for the files that are compiled for x86-64-v3: under a namespace of its own, so that none of its inline functions, which need
// AVX2 there, can be picked by the linker for a file that runs everywhere. Such a file uses no other templates across functions.
#pragma once

#define Eigen EigenV3
#include <Eigen/Core>
