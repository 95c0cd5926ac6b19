/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a program for the OpenCL side of the Arm Compute Library against its NEON side, so that
 * it runs without any GPU: g++ -include cl_on_neon.h ...
 *
 * The names of the OpenCL side become classes around those of the NEON side, which are stricter
 * than either. Each of these throws std::logic_error:
 *
 *  - configure() before CLScheduler::default_init(), or while any tensor has memory,
 *  - configure() with arguments that validate() of the NEON side refuses,
 *  - access of the processor to a tensor that is not mapped, or map() of one without memory,
 *  - map() after a run() without CLScheduler::sync() between them,
 *  - run() while any tensor is mapped.
 *
 * It shows nothing of the numerics, the padding or the kernels of the OpenCL side. A process may
 * have only one artifact at a time.
 */

#ifndef CL_ON_NEON_H
#define CL_ON_NEON_H

/* The real headers become empty, under the include guards of version 20.08 and of later ones. */
#define ARM_COMPUTE_CLFUNCTIONS_H
#define ARM_COMPUTE_CLSCHEDULER_H
#define ARM_COMPUTE_CLTENSOR_H
#define ACL_ARM_COMPUTE_RUNTIME_CL_CLFUNCTIONS_H
#define ACL_ARM_COMPUTE_RUNTIME_CL_CLSCHEDULER_H
#define ACL_ARM_COMPUTE_RUNTIME_CL_CLTENSOR_H

#include <arm_compute/core/Types.h>
#include <arm_compute/runtime/NEON/NEFunctions.h>
#include <arm_compute/runtime/Tensor.h>
#include <arm_compute/runtime/TensorAllocator.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace arm_compute
{
namespace cl_on_neon
{

/** What the rules are checked with. */
struct State {
    int functions = 0;      /**< configure(), run() and prepare() that are being called */
    int allocated = 0;      /**< tensors with memory */
    int mapped = 0;         /**< tensors that the processor may access */
    bool scheduler = false; /**< CLScheduler::default_init() was called */
    bool pending = false;   /**< a function has run since the last CLScheduler::sync() */
};

inline State &state()
{
    static State only;
    return only;
}

inline void require(bool kept, const char *rule)
{
    if (!kept) {
        throw std::logic_error(std::string("cl_on_neon: ") + rule);
    }
}

/** While it exists, the library itself may access the tensors. */
struct InFunction {
    InFunction()
    {
        ++state().functions;
    }
    ~InFunction()
    {
        --state().functions;
    }
    InFunction(const InFunction &) = delete;
    InFunction &operator=(const InFunction &) = delete;
};

} // namespace cl_on_neon

class ICLTensor : public ITensor
{
};

class CLTensorAllocator
{
  public:
    explicit CLTensorAllocator(Tensor &tensor) : _tensor(tensor)
    {
    }
    ~CLTensorAllocator()
    {
        free();
    }
    CLTensorAllocator(const CLTensorAllocator &) = delete;
    CLTensorAllocator &operator=(const CLTensorAllocator &) = delete;
    void init(const TensorInfo &info)
    {
        _tensor.allocator()->init(info);
    }
    TensorInfo &info()
    {
        return _tensor.allocator()->info();
    }
    void allocate()
    {
        cl_on_neon::require(!_allocated, "allocate() of a tensor that has memory");
        _tensor.allocator()->allocate();
        _allocated = true;
        ++cl_on_neon::state().allocated;
    }
    void free()
    {
        if (_allocated) {
            _tensor.allocator()->free();
            _allocated = false;
            --cl_on_neon::state().allocated;
        }
    }

  private:
    Tensor &_tensor;
    bool _allocated = false;
};

class CLTensor : public ICLTensor
{
  public:
    CLTensor() : _allocator(_tensor)
    {
    }
    ~CLTensor() override
    {
        unmap();
    }
    CLTensor(const CLTensor &) = delete;
    CLTensor &operator=(const CLTensor &) = delete;
    CLTensorAllocator *allocator()
    {
        return &_allocator;
    }
    ITensorInfo *info() const override
    {
        return _tensor.info();
    }
    ITensorInfo *info() override
    {
        return _tensor.info();
    }
    uint8_t *buffer() const override
    {
        cl_on_neon::require(_mapped || cl_on_neon::state().functions > 0,
                            "access to a tensor that is not mapped");
        return _tensor.buffer();
    }
    void map(bool blocking = true)
    {
        cl_on_neon::require(blocking, "map() that does not wait");
        cl_on_neon::require(_tensor.buffer() != nullptr, "map() of a tensor without memory");
        cl_on_neon::require(!cl_on_neon::state().pending,
                            "map() after run() without CLScheduler::sync()");
        if (!_mapped) {
            _mapped = true;
            ++cl_on_neon::state().mapped;
        }
    }
    void unmap()
    {
        if (_mapped) {
            _mapped = false;
            --cl_on_neon::state().mapped;
        }
    }

  private:
    Tensor _tensor;
    CLTensorAllocator _allocator;
    bool _mapped = false;
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
        cl_on_neon::state().scheduler = true;
    }
    bool is_initialised() const
    {
        return cl_on_neon::state().scheduler;
    }
    void sync()
    {
        cl_on_neon::state().pending = false;
    }
};

namespace cl_on_neon
{

/* Arguments of configure() on the OpenCL side as those on the NEON side. */

inline ITensor *given(ICLTensor *tensor)
{
    return tensor;
}
inline const ITensor *given(const ICLTensor *tensor)
{
    return tensor;
}
inline ITensor *given(std::nullptr_t)
{
    return nullptr;
}
inline std::vector<ITensor *> given(const std::vector<ICLTensor *> &tensors)
{
    return {tensors.begin(), tensors.end()};
}
inline std::vector<const ITensor *> given(const std::vector<const ICLTensor *> &tensors)
{
    return {tensors.begin(), tensors.end()};
}
template <class Value, class = typename std::enable_if<
                           !std::is_convertible<const Value &, const ITensor *>::value>::type>
const Value &given(const Value &value)
{
    return value;
}

/* Arguments of configure() as those of validate(): tensors become their infos. */

inline ITensorInfo *described(const ITensor *tensor)
{
    return tensor == nullptr ? nullptr : tensor->info();
}
inline ITensorInfo *described(std::nullptr_t)
{
    return nullptr;
}
inline std::vector<ITensorInfo *> described(const std::vector<ICLTensor *> &tensors)
{
    std::vector<ITensorInfo *> infos;
    for (const ICLTensor *tensor : tensors) {
        infos.push_back(tensor->info());
    }
    return infos;
}
inline std::vector<const ITensorInfo *> described(const std::vector<const ICLTensor *> &tensors)
{
    std::vector<const ITensorInfo *> infos;
    for (const ICLTensor *tensor : tensors) {
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

/** A function of the NEON side as one of the OpenCL side. */
template <class Function> class Wrapped : public IFunction
{
  public:
    template <class... Arguments> void configure(const Arguments &...arguments)
    {
        require(state().scheduler, "configure() before CLScheduler::default_init()");
        require(state().allocated == 0, "configure() after allocate()");
        /* release builds of the library do not check in configure() */
        const Status status = Function::validate(described(arguments)...);
        if (!status) {
            throw std::logic_error("cl_on_neon: validate(): " + status.error_description());
        }
        const InFunction scope;
        _function.configure(given(arguments)...);
    }
    template <class... Arguments> static Status validate(const Arguments &...arguments)
    {
        return Function::validate(arguments...);
    }
    void run() override
    {
        require(state().mapped == 0, "run() while a tensor is mapped");
        const InFunction scope;
        _function.run();
        state().pending = true;
    }
    void prepare() override
    {
        const InFunction scope;
        _function.prepare();
    }

  private:
    Function _function;
};

} // namespace cl_on_neon

#define CL_ON_NEON_AS(cl, ne)                                                                      \
    class cl : public cl_on_neon::Wrapped<ne>                                                      \
    {                                                                                              \
    };
#define CL_ON_NEON(name) CL_ON_NEON_AS(CL##name, NE##name)

CL_ON_NEON(ActivationLayer)
CL_ON_NEON(ArgMinMaxLayer)
CL_ON_NEON(ArithmeticAddition)
CL_ON_NEON_AS(CLArithmeticDivision, NEElementwiseDivision)
CL_ON_NEON(ArithmeticSubtraction)
CL_ON_NEON(BatchNormalizationLayer)
CL_ON_NEON(Cast)
CL_ON_NEON(ConcatenateLayer)
CL_ON_NEON(ConvolutionLayer)
CL_ON_NEON(DeconvolutionLayer)
CL_ON_NEON(DepthwiseConvolutionLayer)
CL_ON_NEON(DequantizationLayer)
CL_ON_NEON(DirectConvolutionLayer)
CL_ON_NEON(ElementwiseMax)
CL_ON_NEON(ElementwiseMin)
CL_ON_NEON(ElementwiseSquaredDiff)
CL_ON_NEON(ExpLayer)
CL_ON_NEON(FlattenLayer)
CL_ON_NEON(Floor)
CL_ON_NEON(FullyConnectedLayer)
CL_ON_NEON(GEMM)
CL_ON_NEON(Gather)
CL_ON_NEON(L2NormalizeLayer)
CL_ON_NEON(LogSoftmaxLayer)
CL_ON_NEON(NegLayer)
CL_ON_NEON(PReluLayer)
CL_ON_NEON(PadLayer)
CL_ON_NEON(Permute)
CL_ON_NEON(PixelWiseMultiplication)
CL_ON_NEON(PoolingLayer)
CL_ON_NEON(QuantizationLayer)
CL_ON_NEON(ReduceMean)
CL_ON_NEON(ReductionOperation)
CL_ON_NEON(ReshapeLayer)
CL_ON_NEON(RoundLayer)
CL_ON_NEON(RsqrtLayer)
CL_ON_NEON(Scale)
CL_ON_NEON(SinLayer)
CL_ON_NEON(Slice)
CL_ON_NEON(SoftmaxLayer)
CL_ON_NEON(Split)
CL_ON_NEON(StridedSlice)
CL_ON_NEON(Transpose)

#undef CL_ON_NEON
#undef CL_ON_NEON_AS

} // namespace arm_compute

#endif /* CL_ON_NEON_H */
