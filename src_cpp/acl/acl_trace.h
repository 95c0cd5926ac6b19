/* SPDX-License-Identifier: Apache-2.0
 *
 * Artifacts that record their tensors after each layer, and the time that each layer takes.
 */

#ifndef ACL_TRACE_H
#define ACL_TRACE_H

#include "acl_hdf5.h"

#include <chrono>
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

} // namespace acl_trace

#endif /* ACL_TRACE_H */
