// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only CUDA-aware macro of the library. A function marked LARCH_HD is the single definition of
// a formula: the CPU loop (.cpp) and the CUDA kernel (.cu) both call it.
#ifdef __CUDACC__
#define LARCH_HD __host__ __device__ inline
#else
#define LARCH_HD inline
#endif
