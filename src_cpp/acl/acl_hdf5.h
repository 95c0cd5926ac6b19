/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of the Arm Compute Library in HDF5 files.
 *
 * The extents of a dataset are those of the tensor in reverse order: a tensor (W, H, C, N) is a
 * dataset (N, C, H, W). The types are little endian: float32, float16, int8, uint8 and int32.
 * Nothing is converted: a dataset of another type, rank or extent is an error. All functions throw
 * std::runtime_error, which names the file, the dataset, what was found and what was expected.
 */

#ifndef ACL_HDF5_H
#define ACL_HDF5_H

#include <arm_compute/core/Helpers.h>
#include <arm_compute/core/ITensor.h>
#include <arm_compute/core/Window.h>

#include <hdf5.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are copied as little endian"
#endif

namespace acl_hdf5
{

using Extents = std::vector<hsize_t>;

/** An object of the HDF5 library, which is closed with its owner. */
class Handle
{
  public:
    Handle(hid_t id, herr_t (*close)(hid_t)) : _id(id), _close(close)
    {
    }
    ~Handle()
    {
        if (_id >= 0) {
            _close(_id);
        }
    }
    Handle(Handle &&other) noexcept : _id(other._id), _close(other._close)
    {
        other._id = -1;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    Handle &operator=(Handle &&) = delete;
    explicit operator bool() const
    {
        return _id >= 0;
    }
    hid_t id() const
    {
        return _id;
    }

  private:
    hid_t _id;
    herr_t (*_close)(hid_t);
};

/** Stops the HDF5 library from printing its errors, which become exceptions here. */
inline void quiet()
{
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

inline std::string text(const Extents &extents)
{
    std::string made = "[";
    for (const hsize_t extent : extents) {
        made += (made.size() > 1 ? ", " : "") + std::to_string(extent);
    }
    return made + "]";
}

/** Returns the type of a tensor's elements in a file. */
inline Handle file_type(const arm_compute::ITensorInfo &info)
{
    using arm_compute::DataType;
    switch (info.data_type()) {
    case DataType::F32:
        return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
    case DataType::F16: {
        Handle half(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
        H5Tset_fields(half.id(), 15, 10, 5, 0, 10);
        H5Tset_size(half.id(), 2);
        H5Tset_ebias(half.id(), 15);
        return half;
    }
    case DataType::S8:
    case DataType::QASYMM8_SIGNED:
    case DataType::QSYMM8:
    case DataType::QSYMM8_PER_CHANNEL:
        return {H5Tcopy(H5T_STD_I8LE), H5Tclose};
    case DataType::U8:
    case DataType::QASYMM8:
        return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
    case DataType::S32:
        return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
    default:
        throw std::runtime_error("a tensor of this type cannot be in an HDF5 file");
    }
}

/** Describes a type, such as "float, 32 bits, big endian". */
inline std::string text(hid_t type)
{
    const H5T_class_t kind = H5Tget_class(type);
    std::string made = "neither float nor integer";
    if (kind == H5T_FLOAT) {
        made = "float";
    } else if (kind == H5T_INTEGER) {
        made = H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned integer" : "integer";
    }
    made += ", " + std::to_string(8 * H5Tget_size(type)) + " bits";
    if (H5Tget_size(type) > 1 && (kind == H5T_FLOAT || kind == H5T_INTEGER)) {
        made += H5Tget_order(type) == H5T_ORDER_LE ? ", little endian" : ", big endian";
    }
    return made;
}

/** Returns the extents of a tensor's dataset; the library drops those that are 1 at the start. */
inline Extents extents_of(const arm_compute::ITensorInfo &info)
{
    Extents extents;
    for (std::size_t i = std::max<std::size_t>(1, info.num_dimensions()); i-- > 0;) {
        extents.push_back(info.dimension(i));
    }
    return extents;
}

inline Extents without_leading_ones(const Extents &extents)
{
    return {std::find_if(extents.begin(), extents.end(), [](hsize_t n) { return n != 1; }),
            extents.end()};
}

template <class Tensor> auto map(Tensor &tensor, int) -> decltype(tensor.map(true))
{
    tensor.map(true);
}
template <class Tensor> void map(Tensor &, long)
{
}
template <class Tensor> auto unmap(Tensor &tensor, int) -> decltype(tensor.unmap())
{
    tensor.unmap();
}
template <class Tensor> void unmap(Tensor &, long)
{
}

/** Gives the processor access to a tensor while it exists. */
template <class Tensor> class Mapped
{
  public:
    explicit Mapped(Tensor &tensor) : _tensor(tensor)
    {
        map(_tensor, 0);
    }
    ~Mapped()
    {
        unmap(_tensor, 0);
    }
    Mapped(const Mapped &) = delete;
    Mapped &operator=(const Mapped &) = delete;

  private:
    Tensor &_tensor;
};

/** Calls a function with the address and the bytes of each row; rows have padding between them. */
template <class Tensor, class Function> void for_each_row(Tensor &tensor, Function function)
{
    arm_compute::Window rows;
    rows.use_tensor_dimensions(tensor.info()->tensor_shape(), arm_compute::Window::DimY);
    const std::size_t bytes = tensor.info()->dimension(0) * tensor.info()->element_size();
    const Mapped<Tensor> scope(tensor);
    arm_compute::execute_window_loop(rows, [&](const arm_compute::Coordinates &at) {
        function(reinterpret_cast<char *>(tensor.ptr_to_element(at)), bytes);
    });
}

inline std::size_t size_bytes(const arm_compute::ITensorInfo &info)
{
    return info.tensor_shape().total_size() * info.element_size();
}

/** A file that is open. */
class File
{
  public:
    static File reading(const std::string &path)
    {
        quiet();
        return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), path,
                "cannot be opened, expected an HDF5 file"};
    }
    static File writing(const std::string &path)
    {
        quiet();
        return {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), path,
                "cannot be created"};
    }

    bool contains(const std::string &dataset) const
    {
        return H5Lexists(_file.id(), dataset.c_str(), H5P_DEFAULT) > 0;
    }

    /** Returns the name of the only object in the file. */
    std::string only() const
    {
        H5G_info_t group{};
        H5Gget_info(_file.id(), &group);
        if (group.nlinks != 1) {
            fail("has " + std::to_string(group.nlinks) + " datasets, expected one");
        }
        const auto at = [this](char *name, std::size_t bytes) {
            return H5Lget_name_by_idx(_file.id(), ".", H5_INDEX_NAME, H5_ITER_INC, 0, name, bytes,
                                      H5P_DEFAULT);
        };
        std::vector<char> name(static_cast<std::size_t>(at(nullptr, 0)) + 1);
        at(name.data(), name.size());
        return name.data();
    }

    /** Reads a dataset; with no extents, leading extents of 1 are ignored. */
    template <class Tensor>
    void read(Tensor &tensor, const std::string &dataset, const Extents &extents = {}) const
    {
        const Handle source(H5Dopen2(_file.id(), dataset.c_str(), H5P_DEFAULT), H5Dclose);
        if (!source) {
            fail("has no dataset '" + dataset + "'");
        }
        const Handle wanted = file_type(*tensor.info());
        const Handle found(H5Dget_type(source.id()), H5Tclose);
        if (H5Tequal(found.id(), wanted.id()) <= 0) {
            differ(dataset, "type", text(found.id()), text(wanted.id()));
        }
        const Extents stored = extents_in(source);
        if (extents.empty()) {
            const Extents own = extents_of(*tensor.info());
            if (without_leading_ones(stored) != without_leading_ones(own)) {
                differ(dataset, "shape", text(stored), text(own));
            }
        } else if (stored.size() != extents.size()) {
            differ(dataset, "rank", std::to_string(stored.size()) + " " + text(stored),
                   std::to_string(extents.size()) + " " + text(extents));
        } else if (stored != extents) {
            differ(dataset, "shape", text(stored), text(extents));
        }
        std::vector<char> data(size_bytes(*tensor.info()));
        if (H5Dread(source.id(), wanted.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()) < 0) {
            fail("cannot be read at the dataset '" + dataset + "'");
        }
        const char *next = data.data();
        for_each_row(tensor, [&next](char *row, std::size_t bytes) {
            std::copy(next, next + bytes, row);
            next += bytes;
        });
    }

    /** Adds a dataset; with no extents, those of the tensor. */
    template <class Tensor>
    void write(Tensor &tensor, const std::string &dataset, const Extents &extents = {}) const
    {
        const Extents own = extents_of(*tensor.info());
        const Extents &stated = extents.empty() ? own : extents;
        if (without_leading_ones(stated) != without_leading_ones(own)) {
            differ(dataset, "shape", text(own), text(stated));
        }
        std::vector<char> data;
        data.reserve(size_bytes(*tensor.info()));
        for_each_row(tensor, [&data](char *row, std::size_t bytes) {
            data.insert(data.end(), row, row + bytes);
        });
        const Handle type = file_type(*tensor.info());
        const Handle space(
            H5Screate_simple(static_cast<int>(stated.size()), stated.data(), nullptr), H5Sclose);
        const Handle target(H5Dcreate2(_file.id(), dataset.c_str(), type.id(), space.id(),
                                       H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                            H5Dclose);
        if (!target ||
            H5Dwrite(target.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()) < 0) {
            fail("cannot be written at the dataset '" + dataset + "'");
        }
    }

    /** Writes everything to the disk. */
    void flush() const
    {
        if (H5Fflush(_file.id(), H5F_SCOPE_GLOBAL) < 0) {
            fail("cannot be written");
        }
    }

  private:
    File(hid_t id, std::string path, const char *problem)
        : _file(id, H5Fclose), _path(std::move(path))
    {
        if (!_file) {
            fail(problem);
        }
    }
    [[noreturn]] void fail(const std::string &problem) const
    {
        throw std::runtime_error("the file '" + _path + "' " + problem);
    }
    [[noreturn]] void differ(const std::string &dataset, const char *what, const std::string &found,
                             const std::string &wanted) const
    {
        fail("has a dataset '" + dataset + "' of " + what + " " + found + ", expected " + wanted);
    }
    static Extents extents_in(const Handle &dataset)
    {
        const Handle space(H5Dget_space(dataset.id()), H5Sclose);
        Extents extents(
            static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id()))));
        H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
        return extents;
    }

    Handle _file;
    std::string _path;
};

} // namespace acl_hdf5

/** Reads a tensor from the only dataset of a file. */
template <class Tensor> void readTensorFromHDF5File(Tensor &tensor, const std::string &file)
{
    const acl_hdf5::File opened = acl_hdf5::File::reading(file);
    opened.read(tensor, opened.only());
}

/** Writes a tensor as the only dataset of a file. */
template <class Tensor>
void writeTensorToHDF5File(Tensor &tensor, const std::string &dataset, const std::string &file)
{
    acl_hdf5::File::writing(file).write(tensor, dataset);
}

#endif /* ACL_HDF5_H */
