// linnet: everything a training program needs, in one include.
#pragma once
#include "linnet/autograd/gradcheck.h"
#include "linnet/autograd/record.h"
#include "linnet/autograd/tape.h"
#include "linnet/autograd/variable.h"
#include "linnet/core/checkpoint.h"
#include "linnet/core/dispatch.h"
#include "linnet/core/error.h"
#include "linnet/core/random.h"
#include "linnet/core/safetensors.h"
#include "linnet/core/tensor.h"
#include "linnet/core/threads.h"
