package sdk

import (
	"math"
	"sync/atomic"
)

// Window is the time of a client's trial. It ends at the end of the spec's duration, or with the last of its operations;
// streams end with their last transfer if that is later.
type Window struct {
	spec       *Spec
	start, cpu uint64
	end        uint64
	used       atomic.Uint64 // the CPU time at the end; 0 before it was read
}

// OpenWindow reads the clocks; call it when all connections are established.
func OpenWindow(spec *Spec) *Window {
	w := &Window{spec: spec}
	w.Reopen()
	return w
}

// Reopen reads the clocks again: what was before is not in the window.
func (w *Window) Reopen() {
	w.start, w.cpu, w.end = Now(), CPU(), math.MaxUint64
	if w.spec.DurationNs > 0 && w.spec.DurationNs < math.MaxUint64-w.start {
		w.end = w.start + w.spec.DurationNs
	}
}

// Start returns the point of the clock at which the window was opened.
func (w *Window) Start() uint64 { return w.start }

// NewTally returns the tally of one goroutine.
func (w *Window) NewTally() *Tally { return &Tally{window: w} }

// IsOver is true if no operation may begin now. The first call after the end reads the CPU time: waiting for operations in
// flight takes none.
func (w *Window) IsOver(now uint64) bool {
	if now < w.end {
		return false
	}
	w.stop()
	return true
}

func (w *Window) stop() {
	if w.used.Load() == 0 {
		w.used.CompareAndSwap(0, CPU()-w.cpu)
	}
}

// leavesOut is true if an operation that ends now was in flight at the end. Transfers in flight are finished and count, as
// passes of dispatch do.
func (w *Window) leavesOut(now uint64) bool { return now > w.end && !w.finishes() }

func (w *Window) finishes() bool { return w.spec.Workload == "stream" || w.spec.Workload == "dispatch" }

// isUsedUp is true if the spec's operations or bytes ended the window, and not its time.
func (w *Window) isUsedUp(sum *Tally) bool {
	if w.finishes() {
		return w.spec.Bytes > 0 && (w.spec.Layer == "udp" || w.spec.Layer == "kcp")
	}
	made := sum.operations
	for _, count := range sum.errors {
		made += count
	}
	return w.spec.Operations > 0 && made >= w.spec.Operations && sum.inFlight == 0
}

// Close merges the tallies into the result.
func (w *Window) Close(tallies []*Tally) *Done {
	w.stop()
	sum := Tally{end: w.start, errors: map[string]uint64{}}
	for _, tally := range tallies {
		sum.Merge(tally)
	}
	if w.start+sum.flow > sum.end {
		sum.end = w.start + sum.flow
	}
	if w.end != math.MaxUint64 && !w.isUsedUp(&sum) && (sum.end < w.end || !w.finishes()) {
		sum.end = w.end
	}
	return &Done{
		Operations: sum.operations, Bytes: sum.bytes, StartNs: w.start, EndNs: sum.end, InFlight: sum.inFlight,
		Errors: sum.errors, Latency: sum.latency.encoded(), Connect: sum.connect.encoded(), CPUNs: w.used.Load(),
		Verified: sum.verified, Datagrams: sum.datagrams,
	}
}
