package sdk

import (
	"testing"
	"time"
)

func TestATimedWindowEndsAtItsEndAndLeavesOutWhatWasInFlight(t *testing.T) {
	const duration = 1_000_000
	spec := &Spec{Workload: "rr", DurationNs: duration, Operations: 9}
	window := OpenWindow(spec)
	one, other := window.NewTally(), window.NewTally()
	start := window.Start()
	one.Succeed(start, start+10, 5)
	one.Succeed(start, start+duration+1, 5)
	time.Sleep(2 * duration)
	other.Fail("reset")
	other.Fail("timeout")
	done := window.Close([]*Tally{one, other})
	if done.EndNs-done.StartNs != duration || done.Operations != 1 || done.Bytes != 5 || done.InFlight != 3 {
		t.Fatalf("%+v", done)
	}
	if len(done.Errors) != 1 || done.Errors["timeout"] != 1 || len(done.Latency.Pairs) != 1 {
		t.Fatalf("%+v", done)
	}
}

type hidden struct{ error }

func (hidden) Timeout() bool { return true }

func TestAnExceededDeadlineIsATimeoutInWhateverErrorALibraryHidesIt(t *testing.T) {
	if kind := StreamError(hidden{}, 0); kind != "timeout" {
		t.Fatal(kind)
	}
}

func TestAWindowWhoseOperationsAreUsedUpEndsWithTheLastOfThem(t *testing.T) {
	window := OpenWindow(&Spec{Workload: "rr", DurationNs: uint64(time.Hour), Operations: 2})
	tally := window.NewTally()
	tally.Succeed(window.Start(), window.Start()+10, 1)
	if half := window.Close([]*Tally{tally}); half.EndNs-half.StartNs != uint64(time.Hour) {
		t.Fatalf("one of two operations: %+v", half)
	}
	tally.Succeed(window.Start(), window.Start()+20, 1)
	if done := window.Close([]*Tally{tally}); done.EndNs-done.StartNs != 20 || done.InFlight != 0 {
		t.Fatalf("%+v", done)
	}
}

func TestTransfersInFlightAreFinishedAndCount(t *testing.T) {
	const duration = 1_000_000
	window := OpenWindow(&Spec{Workload: "stream", DurationNs: duration, Bytes: 100})
	tally := window.NewTally()
	tally.Streamed(100, 100, 10)
	if early := window.Close([]*Tally{tally}); early.EndNs-early.StartNs < duration {
		t.Fatalf("%+v", early)
	}
	time.Sleep(2 * duration)
	tally.Streamed(100, 100, 10)
	if done := window.Close([]*Tally{tally}); done.EndNs-done.StartNs <= duration || done.Operations != 20 || done.InFlight != 0 {
		t.Fatalf("%+v", done)
	}
}
