/* SPDX-License-Identifier: Apache-2.0
 *
 * Artifacts that record their tensors after each layer, and the time that each layer takes.
 */

#ifndef ACL_TRACE_H
#define ACL_TRACE_H

#include "acl_hdf5.h"

#include <chrono>
#include <iostream>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace acl_trace
{

/** A tensor of the network in the files of a trace. */
struct Entry {
    std::string dataset;
    acl_hdf5::Extents extents;
};

/** The tensors of a network by their names in it. */
using Entries = std::map<std::string, Entry>;

template <class Scheduler> auto wait(int) -> decltype(Scheduler::get().sync())
{
    Scheduler::get().sync();
}
template <class Scheduler> void wait(long)
{
}

/** An artifact whose layers are observed. The files must outlive it. */
template <class Artifact, class Tensor, class Scheduler> class Traced : public Artifact
{
  public:
    Traced(const std::string &parameters, Entries entries)
        : Artifact(parameters), _entries(std::move(entries))
    {
    }

    /**
     * From now on, records the tensors of all layers in a file, and gives each tensor that the
     * other file has the value there, so that the differences of layers do not add up.
     */
    void trace(const acl_hdf5::File *record, const acl_hdf5::File *replacement)
    {
        _record = record;
        _replacement = replacement;
    }

    /** Runs and writes a line "layer<TAB>tensor<TAB>microseconds" for each tensor. */
    void profile(std::ostream &out)
    {
        _times.clear();
        _timing = true;
        wait<Scheduler>(0);
        _last = Clock::now();
        this->Inference();
        _timing = false;
        for (const Time &time : _times) {
            out << time.layer << '\t' << time.name << '\t' << time.microseconds << '\n';
        }
    }

  protected:
    void afterLayer(const char *layer, const char *name, Tensor &tensor) override
    {
        if (!_timing && _record == nullptr && _replacement == nullptr) {
            return;
        }
        wait<Scheduler>(0);
        if (_timing) {
            const std::chrono::duration<double, std::micro> spent = Clock::now() - _last;
            _times.push_back({layer, name, spent.count()});
            _last = Clock::now();
            return;
        }
        const Entry &entry = _entries.at(name);
        if (_record != nullptr) {
            _record->write(tensor, entry.dataset, entry.extents);
        }
        if (_replacement != nullptr && _replacement->contains(entry.dataset)) {
            _replacement->read(tensor, entry.dataset, entry.extents);
        }
    }

  private:
    using Clock = std::chrono::steady_clock;
    struct Time {
        std::string layer;
        std::string name;
        double microseconds;
    };

    Entries _entries;
    const acl_hdf5::File *_record = nullptr;
    const acl_hdf5::File *_replacement = nullptr;
    bool _timing = false;
    std::vector<Time> _times;
    Clock::time_point _last;
};

/** What a program of traces was called with. */
struct Arguments {
    std::string parameters;
    std::string input;
    std::string record;      /**< "--profile" measures instead */
    std::string replacement; /**< none if empty; "--outputs" records the outputs only */
};

/** Tensors of an artifact by their names in the network. */
template <class Tensor> using Tensors = std::vector<std::pair<const char *, Tensor *>>;

/** Runs an artifact on the inputs in a file, and records all its tensors in another one. */
template <class Artifact, class Tensor, class Scheduler>
void run(Traced<Artifact, Tensor, Scheduler> &artifact, const Entries &entries,
         const Arguments &arguments, const Tensors<Tensor> &inputs, const Tensors<Tensor> &outputs)
{
    const acl_hdf5::File source = acl_hdf5::File::reading(arguments.input);
    for (const auto &input : inputs) {
        const Entry &entry = entries.at(input.first);
        source.read(*input.second, entry.dataset, entry.extents);
    }
    if (arguments.record == "--profile") {
        artifact.Inference();
        artifact.profile(std::cout);
        return;
    }
    const acl_hdf5::File record = acl_hdf5::File::writing(arguments.record);
    if (arguments.replacement == "--outputs") {
        artifact.Inference();
    } else if (arguments.replacement.empty()) {
        artifact.trace(&record, nullptr);
        artifact.Inference();
    } else {
        const acl_hdf5::File replacement = acl_hdf5::File::reading(arguments.replacement);
        artifact.trace(&record, &replacement);
        artifact.Inference();
    }
    artifact.trace(nullptr, nullptr);
    for (const auto &output : outputs) {
        const Entry &entry = entries.at(output.first);
        if (!record.contains(entry.dataset)) {
            record.write(*output.second, entry.dataset, entry.extents);
        }
    }
    record.flush();
}

} // namespace acl_trace

#endif /* ACL_TRACE_H */
