/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the parameter file of a generated class: the constants of a network, one after the other
 * without any gap, little endian. The class knows the size and the CRC-32 of its file.
 */

#ifndef ACL_PARAMETERS_H
#define ACL_PARAMETERS_H

#include <arm_compute/core/Helpers.h>
#include <arm_compute/core/ITensor.h>
#include <arm_compute/core/Window.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "parameter files are little endian, and are read as they are"
#endif

namespace acl_parameters
{

/** The CRC-32 of ISO 3309, as in zlib, of data that arrives in pieces. */
class Crc32
{
  public:
    void add(const char *data, std::size_t bytes)
    {
        static const std::array<std::uint32_t, 256> table = make_table();
        for (std::size_t i = 0; i < bytes; ++i) {
            const auto byte = static_cast<std::uint8_t>(data[i]);
            _state = table[(_state ^ byte) & 0xFFU] ^ (_state >> 8U);
        }
    }
    std::uint32_t value() const
    {
        return ~_state;
    }

  private:
    static std::array<std::uint32_t, 256> make_table()
    {
        std::array<std::uint32_t, 256> table{};
        for (std::uint32_t i = 0; i < table.size(); ++i) {
            std::uint32_t entry = i;
            for (int bit = 0; bit < 8; ++bit) {
                entry = (entry >> 1U) ^ ((entry & 1U) != 0U ? 0xEDB88320U : 0U);
            }
            table[i] = entry;
        }
        return table;
    }
    std::uint32_t _state = 0xFFFFFFFFU;
};

/**
 * Opens a parameter file and checks that it is the one of the class.
 *
 * Throws std::runtime_error, with the path and what was expected, if the file is missing, has
 * another size or another checksum.
 */
inline void open(std::ifstream &stream, const std::string &path, std::uint64_t bytes,
                 std::uint32_t checksum)
{
    const auto fail = [&path](const std::string &problem) {
        throw std::runtime_error("the parameter file '" + path + "' " + problem);
    };
    stream.open(path, std::ios_base::in | std::ios_base::binary);
    if (!stream) {
        fail("cannot be opened, expected a file of " + std::to_string(bytes) + " bytes");
    }
    Crc32 sum;
    std::uint64_t found = 0;
    std::vector<char> part(65536);
    while (stream && found <= bytes) {
        stream.read(part.data(), static_cast<std::streamsize>(part.size()));
        const auto count = static_cast<std::size_t>(stream.gcount());
        sum.add(part.data(), count);
        found += count;
    }
    if (stream.bad()) {
        fail("cannot be read, expected " + std::to_string(bytes) + " bytes");
    }
    if (found != bytes) {
        const std::string size =
            found > bytes ? "more than " + std::to_string(bytes) : std::to_string(found);
        fail("has " + size + " bytes, expected " + std::to_string(bytes));
    }
    if (sum.value() != checksum) {
        std::ostringstream text;
        text << std::hex << "has the CRC-32 0x" << sum.value() << ", expected 0x" << checksum
             << ": it is damaged or belongs to another network";
        fail(text.str());
    }
    stream.clear();
    stream.seekg(0);
}

/** Reads the elements of a tensor, row by row since rows can have padding between them. */
inline void read(std::istream &stream, arm_compute::ITensor &tensor)
{
    arm_compute::Window rows;
    rows.use_tensor_dimensions(tensor.info()->tensor_shape(), arm_compute::Window::DimY);
    const std::size_t bytes = tensor.info()->dimension(0) * tensor.info()->element_size();
    arm_compute::execute_window_loop(rows, [&](const arm_compute::Coordinates &at) {
        stream.read(reinterpret_cast<char *>(tensor.ptr_to_element(at)),
                    static_cast<std::streamsize>(bytes));
    });
    if (!stream) {
        throw std::runtime_error("the parameter file ends within a tensor");
    }
}

} // namespace acl_parameters

#endif /* ACL_PARAMETERS_H */
