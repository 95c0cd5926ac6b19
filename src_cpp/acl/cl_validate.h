/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a program for the OpenCL side of the Arm Compute Library so that it only checks the
 * arguments of each configure(), with the OpenCL side's own validate(): g++ -include cl_validate.h
 * ... It needs no GPU and no OpenCL library, and computes nothing.
 *
 * configure() throws std::logic_error with the reason of validate(). Version 20.08 cannot validate
 * depthwise convolutions without a device, so they are not checked there.
 */

#ifndef CL_VALIDATE_H
#define CL_VALIDATE_H

#include <arm_compute/core/Helpers.h>
#include <arm_compute/core/ITensor.h>
#include <arm_compute/core/Types.h>
#include <arm_compute/core/Window.h>
#include <arm_compute/runtime/CL/CLFunctions.h>
#include <arm_compute/runtime/CL/CLScheduler.h>
#include <arm_compute/runtime/CL/CLTensor.h>
#include <arm_compute/runtime/NEON/NEFunctions.h>
#include <arm_compute/runtime/NEON/NEScheduler.h>
#include <arm_compute/runtime/Tensor.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/** Names of the library that are looked up here: what follows replaces those of the OpenCL side. */
namespace cl_validate
{

using namespace arm_compute;
using ICLTensor = ITensor;

class CLTensor : public Tensor
{
  public:
    void map(bool = true)
    {
    }
    void unmap()
    {
    }
};

class CLScheduler
{
  public:
    static CLScheduler &get()
    {
        static CLScheduler only;
        return only;
    }
    void default_init()
    {
    }
    void sync()
    {
    }
};

inline ITensorInfo *described(const ITensor *tensor)
{
    return tensor == nullptr ? nullptr : tensor->info();
}
inline ITensorInfo *described(std::nullptr_t)
{
    return nullptr;
}
inline std::vector<ITensorInfo *> described(const std::vector<ITensor *> &tensors)
{
    std::vector<ITensorInfo *> infos;
    for (const ITensor *tensor : tensors) {
        infos.push_back(tensor->info());
    }
    return infos;
}
inline std::vector<const ITensorInfo *> described(const std::vector<const ITensor *> &tensors)
{
    std::vector<const ITensorInfo *> infos;
    for (const ITensor *tensor : tensors) {
        infos.push_back(tensor->info());
    }
    return infos;
}
template <class Value, class = typename std::enable_if<
                           !std::is_convertible<const Value &, const ITensor *>::value>::type>
const Value &described(const Value &value)
{
    return value;
}

/** A function of the OpenCL side, of which only validate() is called. */
template <class Function> class Validated : public IFunction
{
  public:
    template <class... Arguments> void configure(const Arguments &...arguments)
    {
        const Status status = Function::validate(described(arguments)...);
        if (!status) {
            throw std::logic_error("cl_validate: " + status.error_description());
        }
    }
    void run() override
    {
    }
};

/** A function of the OpenCL side that cannot be validated without a device. */
class Unchecked : public IFunction
{
  public:
    template <class... Arguments> void configure(const Arguments &...)
    {
    }
    void run() override
    {
    }
};

#define CL_VALIDATE(name)                                                                          \
    class name : public Validated<arm_compute::name>                                               \
    {                                                                                              \
    };

CL_VALIDATE(CLActivationLayer)
CL_VALIDATE(CLArgMinMaxLayer)
CL_VALIDATE(CLArithmeticAddition)
CL_VALIDATE(CLArithmeticDivision)
CL_VALIDATE(CLArithmeticSubtraction)
CL_VALIDATE(CLBatchNormalizationLayer)
CL_VALIDATE(CLCast)
CL_VALIDATE(CLConcatenateLayer)
CL_VALIDATE(CLConvolutionLayer)
CL_VALIDATE(CLDeconvolutionLayer)
#ifdef ACL_ARM_COMPUTE_RUNTIME_CL_CLFUNCTIONS_H
CL_VALIDATE(CLDepthwiseConvolutionLayer)
#else
class CLDepthwiseConvolutionLayer : public Unchecked
{
};
#endif
CL_VALIDATE(CLDequantizationLayer)
CL_VALIDATE(CLDirectConvolutionLayer)
CL_VALIDATE(CLElementwiseMax)
CL_VALIDATE(CLElementwiseMin)
CL_VALIDATE(CLElementwiseSquaredDiff)
CL_VALIDATE(CLExpLayer)
CL_VALIDATE(CLFlattenLayer)
CL_VALIDATE(CLFloor)
CL_VALIDATE(CLFullyConnectedLayer)
CL_VALIDATE(CLGEMM)
CL_VALIDATE(CLGather)
CL_VALIDATE(CLL2NormalizeLayer)
CL_VALIDATE(CLLogSoftmaxLayer)
CL_VALIDATE(CLNegLayer)
CL_VALIDATE(CLPReluLayer)
CL_VALIDATE(CLPadLayer)
CL_VALIDATE(CLPermute)
CL_VALIDATE(CLPixelWiseMultiplication)
CL_VALIDATE(CLPoolingLayer)
CL_VALIDATE(CLQuantizationLayer)
CL_VALIDATE(CLReduceMean)
CL_VALIDATE(CLReductionOperation)
CL_VALIDATE(CLReshapeLayer)
CL_VALIDATE(CLRoundLayer)
CL_VALIDATE(CLRsqrtLayer)
CL_VALIDATE(CLScale)
CL_VALIDATE(CLSinLayer)
CL_VALIDATE(CLSlice)
CL_VALIDATE(CLSoftmaxLayer)
CL_VALIDATE(CLSplit)
CL_VALIDATE(CLStridedSlice)
CL_VALIDATE(CLTranspose)

#undef CL_VALIDATE

} // namespace cl_validate

/* From here on, arm_compute::CLTensor is the class above, and arm_compute::TensorShape is found
 * through the using-directive. */
#define arm_compute cl_validate

#endif /* CL_VALIDATE_H */
